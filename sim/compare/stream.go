package compare

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/sim"
)

// Load is a stream of jobs to draw.
type Load struct {
	Jobs int
	// Load is arrival rate x mean time alone on the reference class / capacity.
	Load float64
	// Shortest and Longest bound the time alone, log-uniform; 0 is the world's
	// default.
	Shortest, Longest time.Duration
	// Sizes is the mix of workers; none means the world's default.
	Sizes []sim.Size
	// Priorities draws each job's from 0, 1 and 2.
	Priorities bool
	// Elastic bounds what scaling may do.
	Elastic Elastic
}

// Reference is the class that durations and loads are stated on: of those of
// the cluster the one with the fastest devices, by the mean over workloads of
// progress alone.
func (w *World) Reference() string {
	classes := w.Classes()
	return slices.MaxFunc(classes, func(a, b string) int {
		return cmp.Compare(w.meanProgress(a), w.meanProgress(b))
	})
}

// meanProgress of single workers alone on a class, over the workloads that run
// on all classes of the cluster.
func (w *World) meanProgress(class string) float64 {
	sum, n := 0.0, 0
	for _, name := range w.Runnable() {
		if p, ok := w.Alone.Progress(class, name, 1, cluster.SpanNode, w.Classes()); ok {
			sum += p
			n++
		}
	}
	return sum / float64(max(n, 1))
}

// Runnable lists the workloads that have a rate on every class of the cluster.
func (w *World) Runnable() []string {
	var names []string
	for _, name := range w.Alone.Workloads() {
		everywhere := true
		for _, class := range w.Classes() {
			_, _, ok := w.Alone.Rate(class, name, 1, cluster.SpanNode)
			everywhere = everywhere && ok
		}
		if everywhere {
			names = append(names, name)
		}
	}
	return names
}

// Capacity is one job a device, each weighted by its class's speed over that
// of the reference class.
func (w *World) Capacity() float64 {
	base := w.meanProgress(w.Reference())
	return sim.Capacity(w.Nodes, func(class string) float64 { return w.meanProgress(class) / base })
}

func (w *World) stream(l Load, seed uint64) ([]sim.Job, error) {
	reference := w.Reference()
	s := sim.Stream{
		Jobs: l.Jobs, Load: l.Load, Workloads: w.Runnable(), Min: l.Shortest, Max: l.Longest, Sizes: l.Sizes,
		Capacity: w.Capacity(),
		Alone: func(workload string, workers int) float64 {
			p, _ := w.Alone.Progress(reference, workload, workers, cluster.SpanNode, w.Classes())
			return p
		},
	}
	out, err := s.Draw(seed)
	if err != nil {
		return nil, err
	}
	return finished(out, l, seed), nil
}

// finished gives jobs priorities and bounds where they have some.
func finished(list []sim.Job, l Load, seed uint64) []sim.Job {
	if l.Priorities {
		r := rand.New(rand.NewPCG(seed, streamPriorities))
		for i := range list {
			list[i].Priority = r.IntN(3)
		}
	}
	return l.Elastic.apply(list)
}

// Sources of a seed, apart from those of others.
const (
	streamPriorities = 0x7072696f
	streamWorkloads  = 0x776f726b
)
