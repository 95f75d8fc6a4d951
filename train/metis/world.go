package metis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/sim/services"
)

// Episode is a situation to learn from: one task batch, or services that come
// and go.
type Episode struct {
	// Model is what the policy believes, and what comes true.
	Model interference.Model
	// Batch is placed at once where Stream is nil.
	Batch place.Request
	// Stream is a run without its policy.
	Stream *services.Config
}

// World draws situations. Draw must depend on the seed alone.
type World struct {
	Name string
	Draw func(seed uint64) (Episode, error)
}

// Random draws clusters and what is to be placed on them: sizes of clusters,
// loads, mixes of workloads and rules all differ from seed to seed, so that
// what is learned holds for more than one of them.
type Random struct {
	// Model is the model of a seed; it may be the same for all.
	Model func(seed uint64) (interference.Model, error)
	// Nodes and Slots bound the size of the cluster, Load the tasks as a share of
	// its slots.
	Nodes, Slots [2]int
	Load         [2]float64
	// Rules is the share of episodes with anti-affinity, a maximum per node or a
	// spread over zones.
	Rules float64
	// Lifetimes, where not 0, makes streams of so many mean lifetimes instead of
	// batches.
	Lifetimes float64
}

// Draw implements World.Draw.
func (r Random) Draw(seed uint64) (Episode, error) {
	rng := num.Rand(seed, 19)
	m, err := r.Model(seed)
	if err != nil {
		return Episode{}, err
	}
	between := func(b [2]int) int { return b[0] + rng.IntN(b[1]-b[0]+1) }
	nodes, slots := between(r.Nodes), between(r.Slots)
	load := r.Load[0] + (r.Load[1]-r.Load[0])*rng.Float64()
	classes := m.Classes()
	spec := cluster.Spec{Nodes: cluster.Nodes(classes[rng.IntN(len(classes))], nodes, 1, slots)}
	workloads := m.Workloads(spec.Nodes[0].Class)
	// A few of many workloads at a time, or all.
	if most := 2 + rng.IntN(12); most < len(workloads) {
		rng.Shuffle(len(workloads), func(i, j int) { workloads[i], workloads[j] = workloads[j], workloads[i] })
		workloads = workloads[:most]
	}
	if rng.Float64() < r.Rules {
		spec.Constraints = rules(rng, workloads)
		for i := range spec.Nodes {
			spec.Nodes[i].Labels = map[string]string{cluster.ZoneKey: fmt.Sprint("zone-", i%3)}
		}
		load *= 0.7
	}
	tasks := max(1, int(load*float64(nodes*slots)))
	if r.Lifetimes > 0 {
		return r.stream(seed, m, spec, workloads, tasks)
	}
	pending := draw(rng, workloads, tasks)
	view, err := cluster.NewSnapshot(spec)
	if err != nil {
		return Episode{}, fmt.Errorf("world of seed %d: %w", seed, err)
	}
	return Episode{Model: m, Batch: place.Request{View: view, Pending: []cluster.Group{{Name: "batch", Tasks: pending}}}}, nil
}

// rules draws constraints that leave room.
func rules(rng *rand.Rand, workloads []string) cluster.Constraints {
	var c cluster.Constraints
	for _, w := range workloads {
		switch rng.IntN(5) {
		case 0:
			if c.MaxPerNode == nil {
				c.MaxPerNode = map[string]int{}
			}
			c.MaxPerNode[w] = 1 + rng.IntN(3)
		case 1:
			c.Spread = append(c.Spread, cluster.Spread{Workload: w, Key: cluster.ZoneKey, MaxSkew: 1 + rng.IntN(4)})
		case 2:
			if o := workloads[rng.IntN(len(workloads))]; o != w {
				c.AntiAffinity = append(c.AntiAffinity, cluster.AntiAffinity{A: w, B: o})
			}
		}
	}
	return c
}

// draw makes tasks of a mix of workloads, in random order: even in half of the
// cases, anything in the others.
func draw(rng *rand.Rand, workloads []string, tasks int) []cluster.Task {
	skew := 0.1
	if rng.IntN(2) == 0 {
		skew = rng.Float64()
	}
	share := make([]float64, len(workloads))
	total := 0.0
	for i := range share {
		share[i] = math.Pow(rng.ExpFloat64(), skew)
		total += share[i]
	}
	out := make([]cluster.Task, tasks)
	for i := range out {
		u, w := rng.Float64()*total, 0
		for u > share[w] && w < len(share)-1 {
			u -= share[w]
			w++
		}
		out[i] = cluster.Task{ID: cluster.TaskID(fmt.Sprint("task-", i)), Workload: workloads[w]}
	}
	return out
}

// stream draws services that want so many tasks on average.
func (r Random) stream(seed uint64, m interference.Model, spec cluster.Spec, workloads []string, tasks int) (Episode, error) {
	capacity, life := 0, time.Hour
	for i := range spec.Nodes {
		capacity += spec.Nodes[i].Slots
	}
	mix := services.Uniform
	if seed%2 == 0 {
		mix = services.Random
	}
	horizon := time.Duration(r.Lifetimes * float64(life))
	arrivals, err := services.Stream{
		Capacity: capacity, Load: float64(tasks) / float64(capacity), Lifetime: life, Horizon: horizon, Workloads: workloads, Mix: mix,
	}.Draw(seed)
	if err != nil {
		return Episode{}, fmt.Errorf("world of seed %d: %w", seed, err)
	}
	return Episode{Model: m, Stream: &services.Config{
		Cluster: spec, Arrivals: arrivals, Truth: m, Seed: seed, Horizon: horizon, Warmup: horizon / 5, Lifetime: life,
	}}, nil
}

// Batches is the world that a policy is trained in by default: task batches on
// clusters of up to 81 nodes, without rules. What is learned there holds under
// rules and in streams, too: both are to keep places for what is still to come.
// Mixing them in made training slower and no better.
func Batches(name string, model func(seed uint64) (interference.Model, error), slots [2]int) World {
	return World{Name: name, Draw: Random{Model: model, Nodes: [2]int{30, 81}, Slots: slots, Load: [2]float64{0.2, 0.95}}.Draw}
}
