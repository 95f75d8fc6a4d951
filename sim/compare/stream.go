package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/measured"
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
	for _, name := range w.runnable() {
		if p, ok := w.Alone.Progress(class, name, 1, cluster.SpanNode, w.Classes()); ok {
			sum += p
			n++
		}
	}
	return sum / float64(max(n, 1))
}

// runnable lists the workloads that have a rate on every class of the cluster.
func (w *World) runnable() []string {
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

func (w *World) stream(l Load, truth *measured.Truth, seed uint64) ([]sim.Job, error) {
	reference := w.Reference()
	base := w.meanProgress(reference)
	s := sim.Stream{
		Jobs: l.Jobs, Load: l.Load, Workloads: w.runnable(), Min: l.Shortest, Max: l.Longest, Sizes: l.Sizes,
		Capacity: sim.Capacity(w.Nodes, func(class string) float64 { return w.meanProgress(class) / base }),
		Alone: func(workload string, workers int) float64 {
			p, _ := w.Alone.Progress(reference, workload, workers, cluster.SpanNode, w.Classes())
			return p
		},
	}
	out, err := s.Draw(seed)
	if err != nil {
		return nil, err
	}
	return prioritised(out, l, seed), nil
}

// prioritised draws the priorities of jobs where they have some.
func prioritised(list []sim.Job, l Load, seed uint64) []sim.Job {
	if l.Priorities {
		r := rand.New(rand.NewPCG(seed, streamPriorities))
		for i := range list {
			list[i].Priority = r.IntN(3)
		}
	}
	return list
}

// streamPriorities tells the source of priorities from others of a seed.
const streamPriorities = 0x7072696f

// Trace is what became of the jobs of a trace.
type Trace struct {
	Jobs []sim.Job
	// Scaled counts jobs of sizes that were not measured: their rate alone is
	// scaled by the rule of history.AloneRates.Rate.
	Scaled int
	// Unknown counts the jobs left out, by workload, since it has no rate on a
	// class of the cluster.
	Unknown map[string]int
}

// Skipped says in words what was left out; empty for nothing.
func (t Trace) Skipped() string {
	if len(t.Unknown) == 0 {
		return ""
	}
	n := 0
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(t.Unknown)) {
		n += t.Unknown[name]
		parts = append(parts, fmt.Sprintf("%s (%d)", name, t.Unknown[name]))
	}
	return fmt.Sprintf("%d jobs of workloads without a rate on a class of the cluster: %s", n, strings.Join(parts, ", "))
}

// FromTrace turns the jobs of a trace into jobs of the world. The work of a
// job is its steps over its rate alone on its fastest class in the cluster.
func (w *World) FromTrace(trace []formats.TraceJob) (Trace, error) {
	out := Trace{Unknown: map[string]int{}}
	classes := w.Classes()
	for _, t := range trace {
		best, scaled := 0.0, false
		for _, c := range classes {
			if r, s, ok := w.Alone.Rate(c, t.Workload, t.Workers, cluster.SpanNode); ok && r > best {
				best, scaled = r, s
			}
		}
		if best == 0 {
			out.Unknown[t.Workload]++
			continue
		}
		if scaled {
			out.Scaled++
		}
		seconds := t.Seconds
		if t.Steps > 0 {
			seconds = t.Steps / best
		}
		job := sim.Job{Work: seconds, Job: cluster.Job{Name: t.Name, Arrival: t.Arrival, Tasks: sim.Workers(t.Name, t.Workload, t.Workers)}}
		job.Priority = int(t.Weight + 0.5)
		for i := range job.Tasks {
			job.Tasks[i].BatchSize, job.Tasks[i].Devices, job.Tasks[i].Requests = t.BatchSize, t.Devices, t.Requests
		}
		out.Jobs = append(out.Jobs, job)
	}
	if len(out.Jobs) == 0 {
		return out, fmt.Errorf("no job is left of %d: %s", len(trace), cmp.Or(out.Skipped(), "the trace is empty"))
	}
	return out, nil
}
