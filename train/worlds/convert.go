package worlds

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
	"github.com/cotenant/cotenant/train/harmony"
)

// Options of Convert. Zero values mean the defaults named.
type Options struct {
	// Jobs in an episode (500).
	Jobs int
	// Load bounds the load of episodes (0.7 to 1.3).
	Load [2]float64
	// Size bounds their clusters, as a share of the world's (0.75 to 1.5).
	Size [2]float64
	// Like, where not empty, are jobs to draw from, by workload, tasks and
	// duration together: those of a trace. They arrive at random.
	Like []sim.Job
}

func (o *Options) defaults() error {
	if o.Jobs == 0 {
		o.Jobs = 500
	}
	if o.Load == ([2]float64{}) {
		o.Load = [2]float64{0.7, 1.3}
	}
	if o.Size == ([2]float64{}) {
		o.Size = [2]float64{0.75, 1.5}
	}
	for _, r := range [][2]float64{o.Load, o.Size} {
		if !(r[0] > 0 && r[1] >= r[0]) || math.IsInf(r[1], 1) {
			return fmt.Errorf("the range %g to %g: give two numbers above 0, the smaller first", r[0], r[1])
		}
	}
	if o.Jobs < 1 {
		return fmt.Errorf("%d jobs in an episode: at least 1", o.Jobs)
	}
	return nil
}

// Convert makes a world to train in, where everything goes as fast as speeds
// believe.
func Convert(name string, w *compare.World, speeds *jobs.Speeds, o Options) (harmony.World, error) {
	if err := o.defaults(); err != nil {
		return harmony.World{}, err
	}
	if len(w.Nodes) == 0 {
		return harmony.World{}, errors.New("a world without nodes")
	}
	out := harmony.World{Name: name, Speeds: speeds}
	switch {
	case len(o.Like) > 0:
		out.Draw = func(seed uint64) (harmony.Episode, error) { return alike(w, o, seed) }
	case w.Scope == history.ScopeDevice && singles(w.Nodes):
		out.Draw = streams(w, o).Draw
	default:
		out.Draw = func(seed uint64) (harmony.Episode, error) { return generated(w, o, seed) }
	}
	return out, nil
}

// singles reports whether every node has one device.
func singles(nodes []cluster.Node) bool {
	for i := range nodes {
		if len(nodes[i].Devices) != 1 {
			return false
		}
	}
	return true
}

// streams draws single workers for clusters of single devices of all mixes of
// the world's classes.
func streams(w *compare.World, o Options) harmony.Streams {
	n := float64(len(w.Nodes))
	return harmony.Streams{
		Classes: w.Classes(), Workloads: w.Runnable(), Jobs: o.Jobs, Load: o.Load,
		Devices: [2]int{max(1, int(math.Round(o.Size[0]*n))), max(1, int(math.Round(o.Size[1]*n)))},
		Share:   w.Nodes[0].Devices[0].Slots,
		Alone: func(class, workload string, classes []string) (float64, bool) {
			return w.Alone.Progress(class, workload, 1, cluster.SpanNode, classes)
		},
	}
}

// Sources of a seed, apart from those of others.
const (
	sourceShape  = 0x73686170
	sourceLike   = 0x6c696b65
	spanShortest = 2.0 // of the logarithm of longest over shortest
	spanLongest  = 5.0
)

// generated draws jobs as the world does, of other durations and at other
// loads.
func generated(w *compare.World, o Options, seed uint64) (harmony.Episode, error) {
	rng := num.Rand(seed, sourceShape)
	nodes, share := scaled(w.Nodes, o.Size, rng)
	l := compare.Load{Jobs: o.Jobs, Load: between(o.Load, rng) * share}
	shortest := between([2]float64{0.2, 1}, rng)
	l.Shortest = time.Duration(shortest * float64(time.Hour))
	l.Longest = time.Duration(shortest * math.Exp(between([2]float64{spanShortest, spanLongest}, rng)) * float64(time.Hour))
	list, err := w.Generate(l, seed)
	return harmony.Episode{Nodes: nodes, Workloads: w.Declared, Jobs: list}, err
}

// alike draws jobs from those of a trace, which arrive at random.
func alike(w *compare.World, o Options, seed uint64) (harmony.Episode, error) {
	rng := num.Rand(seed, sourceLike)
	nodes, share := scaled(w.Nodes, o.Size, rng)
	offered := 0.0
	for i := range o.Like {
		workers := 0
		for _, t := range o.Like[i].Tasks {
			if t.Role == cluster.Worker {
				workers++
			}
		}
		offered += o.Like[i].Work * float64(workers) / float64(len(o.Like))
	}
	gap := offered / (between(o.Load, rng) * share * w.Capacity())
	e := harmony.Episode{Nodes: nodes, Workloads: w.Declared}
	now := 0.0
	for i := range o.Jobs {
		now += rng.ExpFloat64() * gap
		j := o.Like[rng.IntN(len(o.Like))]
		j.Name = fmt.Sprintf("job-%d", i)
		j.Arrival = time.Duration(now * float64(time.Second))
		tasks := make([]cluster.Task, len(j.Tasks))
		for k, t := range j.Tasks {
			t.ID = cluster.TaskID(fmt.Sprintf("%s/%d", j.Name, k))
			tasks[k] = t
		}
		j.Tasks = tasks
		e.Jobs = append(e.Jobs, j)
	}
	return e, nil
}

// scaled is a smaller or larger cluster in the proportions of one, and how many
// times as many nodes it has.
func scaled(nodes []cluster.Node, size [2]float64, rng *rand.Rand) (out []cluster.Node, share float64) {
	n := max(1, int(math.Round(between(size, rng)*float64(len(nodes)))))
	// Racks are as large as the first one.
	rack, perRack := nodes[0].Labels[cluster.RackKey], 0
	for i := range nodes {
		if nodes[i].Labels[cluster.RackKey] == rack {
			perRack++
		}
	}
	for k := range n {
		node := nodes[k*len(nodes)/n]
		node.Name = fmt.Sprintf("node-%d", k)
		if rack != "" {
			labels := map[string]string{}
			for key, v := range node.Labels {
				labels[key] = v
			}
			labels[cluster.RackKey] = fmt.Sprintf("rack-%d", k/perRack)
			node.Labels = labels
		}
		out = append(out, node)
	}
	return out, float64(n) / float64(len(nodes))
}

func between(r [2]float64, rng *rand.Rand) float64 { return r[0] + (r[1]-r[0])*rng.Float64() }
