package bound_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/bound"
)

// zoned labels nodes with three zones in turn.
func zoned(n int) []cluster.Node {
	nodes := cluster.Nodes("", n, 1, 8)
	for i := range nodes {
		nodes[i].Labels = map[string]string{cluster.ZoneKey: fmt.Sprint("zone-", i%3)}
	}
	return nodes
}

// occupied puts tasks at random on a third of the slots.
func occupied(nodes []cluster.Node, seed uint64) []cluster.Running {
	r := rand.New(rand.NewPCG(seed, 3))
	names := []string{"redis", "mms", "checksum", "isr", "ycsb_a", "ycsb_b", "scenedetect"}
	var running []cluster.Running
	used := make([]int, len(nodes))
	for len(running) < len(nodes)*8/3 {
		n := r.IntN(len(nodes))
		if used[n] == 8 {
			continue
		}
		used[n]++
		running = append(running, cluster.Running{
			Task: cluster.Task{ID: cluster.TaskID(fmt.Sprint("running-", len(running))), Workload: names[r.IntN(len(names))]},
			Node: nodes[n].Name,
		})
	}
	return running
}

func spreadAll() []cluster.Spread {
	var all []cluster.Spread
	for _, w := range []string{"redis", "mms", "checksum", "isr", "ycsb_a", "ycsb_b", "scenedetect"} {
		all = append(all, cluster.Spread{Workload: w, Key: cluster.ZoneKey, MaxSkew: 1})
	}
	return all
}

// TestPlanUnderConstraints: feasible always, and at least .99 of the bound
// under the same constraints.
func TestPlanUnderConstraints(t *testing.T) {
	m := metisTruth(t)
	rules := map[string]cluster.Constraints{
		"none":     {},
		"anti":     {AntiAffinity: []cluster.AntiAffinity{{A: "redis", B: "scenedetect"}, {A: "mms", B: "isr"}, {A: "checksum", B: "ycsb_b"}}},
		"self":     {AntiAffinity: []cluster.AntiAffinity{{A: "redis", B: "redis"}}},
		"max":      {MaxPerNode: map[string]int{"redis": 2, "mms": 2, "checksum": 1, "isr": 2, "ycsb_a": 2, "ycsb_b": 1, "scenedetect": 2}},
		"spread":   {Spread: spreadAll()},
		"combined": {AntiAffinity: []cluster.AntiAffinity{{A: "redis", B: "scenedetect"}, {A: "checksum", B: "ycsb_b"}}, MaxPerNode: map[string]int{"mms": 2, "isr": 2, "ycsb_a": 3}, Spread: spreadAll()},
	}
	for _, c := range []struct {
		file     string
		nodes    int
		occupied bool
	}{
		{"batches-200.csv", 81, false},
		{"batches-200.csv", 81, true},
		{"batches-400.csv", 81, false},
		{"batches-400.csv", 81, true},
		{"batches-2000.csv", 729, false},
		{"batches-2000.csv", 729, true},
	} {
		for _, name := range []string{"none", "anti", "self", "max", "spread", "combined"} {
			t.Run(fmt.Sprint(c.file, c.occupied, name), func(t *testing.T) {
				if testing.Short() && c.nodes > 100 {
					t.Skip("-short: leaves out 729 nodes")
				}
				spec := cluster.Spec{Nodes: zoned(c.nodes), Constraints: rules[name]}
				if c.occupied {
					spec.Running = occupied(spec.Nodes, 1)
				}
				if c.occupied && c.file == "batches-400.csv" && (name == "self" || name == "max") {
					_, err := bound.Compute(request(t, spec, metisBatch(t, c.file, 0)), m, bound.Options{})
					if !errors.Is(err, bound.ErrInfeasible) {
						t.Fatalf("more tasks of a workload than free places by the rule, yet err is %v", err)
					}
					return
				}
				hold(t, request(t, spec, metisBatch(t, c.file, 0)), m, 0.99)
			})
		}
	}
}

// hold plans a request and holds the plan against its bound, which it returns.
func hold(t *testing.T, req place.Request, m interference.Model, least float64) bound.Result {
	t.Helper()
	start := time.Now()
	b, err := bound.Compute(req, m, bound.Options{})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	start = time.Now()
	d, err := bound.New(m, bound.Options{}).Place(req)
	if err != nil {
		t.Fatal(err)
	}
	planned := time.Since(start)
	e, err := place.Evaluate(req, d, m)
	if err != nil {
		t.Fatal(err)
	}
	share := req.Objective.Share(e.Value, b.Bound)
	t.Logf("bound %.5f (%v, %d pivots, %d classes, %d options), plan %.5f, share %.5f (%v)", b.Bound, took, b.Pivots, b.Classes, b.Options, e.Value, share, planned)
	if e.Held > 0 || !(share >= least) || share > 1 {
		t.Errorf("share %.5f with %d tasks held; want at least %g and none", share, e.Held, least)
	}
	return b
}

func TestTailLatency(t *testing.T) {
	m := metisTruth(t)
	for _, file := range []string{"batches-200.csv", "batches-300.csv", "batches-400.csv"} {
		req := request(t, cluster.Spec{Nodes: cluster.Nodes("", 81, 1, 8)}, metisBatch(t, file, 0))
		for _, o := range []place.Objective{place.TailLatency, place.WorstPerformance, place.NodesUsed} {
			req.Objective = o
			t.Run(file+o.String(), func(t *testing.T) { hold(t, req, m, 0.98) })
		}
	}
}
