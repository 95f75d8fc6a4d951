package services_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/cluster/clustertest"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/place/bound"
	place_metis "github.com/cotenant/cotenant/place/metis"
	"github.com/cotenant/cotenant/place/placetest"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/services"
)

// source lets rapid shrink the cluster.
type source struct{ *rapid.T }

func (s source) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(s.T, "n") }

// shipped is a way of the policy that ships.
func shipped(t *rapid.T, m placetest.Model, way string) place.Policy {
	f, err := place_metis.Shipped("")
	if err != nil {
		t.Fatal(err)
	}
	params := map[string]string{}
	for p := range strings.SplitSeq(way, ":") {
		key, value, _ := strings.Cut(p, "=")
		params[key] = value
	}
	p, err := f.Policy(place_metis.Settings{Model: m, Params: params})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// standing keeps what a policy may not forget from one decision to the next:
// what runs stands where it was, unless it moved, ended or its node failed.
type standing struct {
	t     *rapid.T
	moves int
}

func (s standing) decided(req place.Request, d place.Decision) {
	if len(d.Move) > s.moves {
		s.t.Fatalf("%d moves, allowed are %d", len(d.Move), s.moves)
	}
	runs := map[cluster.TaskID]string{}
	for _, r := range req.View.Running() {
		runs[r.ID] = r.Node
	}
	for _, m := range d.Move {
		if at, ok := runs[m.Task]; !ok || at == m.To {
			s.t.Fatalf("it moves %v, which is on %q", m, at)
		}
	}
	named := len(d.Bind) + len(d.Hold)
	if tasks := len(req.Tasks()); named != tasks {
		s.t.Fatalf("%d of %d tasks are placed or held", named, tasks)
	}
}

// TestPropertyRulesHoldOverTime lets services come, scale and go on clusters with
// every kind of rule, with nodes that fail and with moves: Run fails where a
// decision breaks a rule.
func TestPropertyRulesHoldOverTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, _ := clustertest.Random(source{t})
		spec.Running = nil
		capacity := 0
		for i := range spec.Nodes {
			n := &spec.Nodes[i]
			n.Slots, n.Devices = 1+n.Slots, nil
			capacity += n.Slots
		}
		if capacity == 0 {
			t.Skip("no nodes")
		}
		m := placetest.Model{Names: []string{"", "fast"}, NoLatency: []string{"d"}}
		c := services.Config{
			Cluster: spec, Truth: m, Seed: rapid.Uint64Max(1000).Draw(t, "seed"), Horizon: 4 * time.Hour, Warmup: time.Hour, Lifetime: time.Hour, Samples: 2,
			Objective: rapid.SampledFrom([]place.Objective{{}, place.WorstPerformance, place.TailLatency, place.NodesUsed, {Mean: 1, Worst: 0.5, Nodes: 0.01}}).Draw(t, "objective"),
		}
		if rapid.Bool().Draw(t, "failures") {
			c.MTBF, c.Repair = 2*time.Hour, 20*time.Minute
		}
		s := services.Stream{
			Capacity: capacity, Load: rapid.Float64Range(0.1, 2).Draw(t, "load"), Most: 4, Horizon: c.Horizon, Lifetime: time.Hour,
			Scaling: rapid.Float64Range(0, 3).Draw(t, "scaling"), Workloads: clustertest.Workloads, Sizes: []services.Size{{Replicas: 1, Share: 2}, {Replicas: 3, Share: 1}},
		}
		var err error
		if c.Arrivals, err = s.Draw(c.Seed); err != nil {
			t.Fatal(err)
		}
		gangs := rapid.Bool().Draw(t, "gangs")
		for i := range c.Arrivals {
			c.Arrivals[i].Gang = gangs && i%3 == 0
		}
		way := rapid.SampledFrom([]string{
			"search=off", "search=off:parts=2", "kicks=20:samples=3", "divide=flat", "divide=even:parts=2", "greedy", "greedy-search",
		}).Draw(t, "way")
		if strings.HasPrefix(way, "greedy") {
			if c.Policy, err = baseline.New(way, baseline.Options{Model: m}); err != nil {
				t.Fatal(err)
			}
		} else {
			c.Policy = shipped(t, m, way)
		}
		w := standing{t: t}
		if rapid.Bool().Draw(t, "moves") {
			w.moves = rapid.IntRange(1, 4).Draw(t, "most")
			c.Policy = &baseline.Moving{Policy: c.Policy, Model: m, Most: w.moves, Least: rapid.SampledFrom([]float64{0, 0.05}).Draw(t, "gain")}
			c.Migrate = sim.Price{On: true, Cost: rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "cost")}
		}
		c.Decided = w.decided
		r, err := services.Run(c)
		if err != nil {
			t.Fatal(err)
		}
		if r.Violations != 0 {
			t.Fatalf("%d violations", r.Violations)
		}
		judge := &services.Judge{Cluster: spec, Truth: m}
		if _, err := judge.Judge(&r); err != nil && !errors.Is(err, bound.ErrInfeasible) {
			t.Fatal(err)
		}
	})
}
