package bound_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/bound"
	"github.com/cotenant/cotenant/place/placetest"
	"pgregory.net/rapid"
)

// hashed is a model whose answers are fixed random numbers, a hard case for
// any search: nothing about one co-location tells of another.
type hashed struct{ seed uint64 }

func (hashed) Kind() string              { return "hashed" }
func (hashed) Classes() []string         { return []string{""} }
func (hashed) Workloads(string) []string { return []string{"a", "b", "c"} }

func (h hashed) Predict(class string, metric history.Metric, cs []cluster.Colocation) [][]interference.Estimate {
	out := make([][]interference.Estimate, len(cs))
	for i, c := range cs {
		for _, w := range c.Workloads() {
			seed := h.seed
			for _, r := range class + string(metric) + w + "|" + c.Key() {
				seed = seed*1099511628211 + uint64(r)
			}
			out[i] = append(out[i], interference.Estimate{
				Value: 0.2 + rand.New(rand.NewPCG(seed, 7)).Float64(), Known: true, Measured: true,
			})
		}
	}
	return out
}

// small draws a cluster small enough for brute force, with every kind of rule.
func small(t *rapid.T) (cluster.Spec, map[string]int) {
	nodes := rapid.IntRange(1, 3).Draw(t, "nodes")
	spec := cluster.Spec{}
	for i := range nodes {
		n := cluster.Node{
			Name: fmt.Sprint("n", i), Slots: rapid.IntRange(1, 3).Draw(t, "slots"),
			Labels:   map[string]string{cluster.ZoneKey: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "zone")},
			Capacity: cluster.Resources{cluster.CPU: int64(rapid.IntRange(2, 5).Draw(t, "cpu"))},
		}
		if rapid.IntRange(0, 5).Draw(t, "taint") == 0 {
			n.Taints = []cluster.Taint{{Key: "gpu", Effect: cluster.NoSchedule}}
		}
		spec.Nodes = append(spec.Nodes, n)
		if rapid.IntRange(0, 2).Draw(t, "running") == 0 {
			spec.Running = append(spec.Running, cluster.Running{
				Task: cluster.Task{ID: cluster.TaskID(fmt.Sprint("r", i)), Workload: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "resident")},
				Node: n.Name,
			})
		}
	}
	spec.Workloads = []cluster.Workload{
		{Name: "a", Requests: cluster.Resources{cluster.CPU: 1}},
		{Name: "b", Requests: cluster.Resources{cluster.CPU: int64(rapid.IntRange(0, 2).Draw(t, "b asks"))}},
	}
	c := &spec.Constraints
	flip := func(name string) bool { return rapid.IntRange(0, 3).Draw(t, name) == 0 }
	if flip("max") {
		c.MaxPerNode = map[string]int{"a": rapid.IntRange(1, 2).Draw(t, "a max")}
	}
	if flip("anti") {
		c.AntiAffinity = append(c.AntiAffinity, cluster.AntiAffinity{A: "a", B: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "other")})
	}
	if flip("zone anti") {
		c.AntiAffinity = append(c.AntiAffinity, cluster.AntiAffinity{A: "c", B: "b", Key: cluster.ZoneKey})
	}
	if flip("spread") {
		c.Spread = append(c.Spread, cluster.Spread{Workload: "b", Key: cluster.ZoneKey})
	}
	if flip("selector") {
		c.NodeSelector = map[string]map[string]string{"c": {cluster.ZoneKey: "x"}}
	}
	if flip("tolerate") {
		c.Tolerations = map[string][]cluster.Toleration{"a": {{Key: "gpu", Exists: true}}}
	}
	counts := map[string]int{}
	for _, w := range []string{"a", "b", "c"} {
		if n := rapid.IntRange(0, 2).Draw(t, w); n > 0 {
			counts[w] = n
		}
	}
	return spec, counts
}

// bruteForce is the best value over all ways to place all tasks; ok is false
// where there is none.
func bruteForce(t *rapid.T, req place.Request, m interference.Model) (best float64, ok bool) {
	tasks := req.Tasks()
	nodes := req.View.Nodes()
	bind := make([]place.Binding, len(tasks))
	best = math.Inf(-1)
	var visit func(i int)
	visit = func(i int) {
		if i == len(tasks) {
			e, err := place.Evaluate(req, place.Decision{Bind: bind}, m)
			if err != nil {
				return // breaks a constraint
			}
			v := e.Value
			if req.Objective.Minimises() {
				v = -v
			}
			best, ok = max(best, v), true
			return
		}
		for n := range nodes {
			bind[i] = place.Binding{Task: tasks[i].ID, Node: nodes[n].Name}
			visit(i + 1)
		}
	}
	visit(0)
	return best, ok
}

// smallRequest draws what brute force can place, and a model of it.
func smallRequest(t *rapid.T, o place.Objective) (place.Request, hashed) {
	spec, counts := small(t)
	if o.Traffic > 0 {
		placetest.Connect(t, &spec, "a", "b", "c")
	}
	m := hashed{rapid.Uint64Range(0, 1<<20).Draw(t, "model")}
	s, err := cluster.NewSnapshot(spec)
	if err != nil {
		t.Fatal(err)
	}
	return place.Request{View: s, Pending: []cluster.Group{{Tasks: tasksOf(counts)}}, Objective: o}, m
}

// TestBoundAgainstBruteForce: the certificate is never below the optimum, and
// what the policy plans never above it; where the certificate says that no
// placement exists, there is none.
func TestBoundAgainstBruteForce(t *testing.T) {
	for _, o := range []place.Objective{
		place.MeanPerformance, place.WorstPerformance, place.TailLatency, place.NodesUsed,
		{Mean: 1, P99: 0.5},
		{Mean: 1, Worst: 0.5, Nodes: 0.01},
		place.NearTraffic,
		{Mean: 1, Nodes: 0.1, Traffic: 0.5},
		{Mean: 1, Worst: 0.3, Traffic: 2},
	} {
		t.Run(o.String(), func(t *testing.T) {
			optimal, trials := 0, 0
			rapid.Check(t, func(t *rapid.T) {
				req, m := smallRequest(t, o)
				best, ok := bruteForce(t, req, m)
				r, err := bound.Compute(req, m, bound.Options{})
				if errors.Is(err, bound.ErrInfeasible) {
					if ok {
						t.Fatalf("%v, but brute force found a placement worth %g", err, best)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if !r.Proven {
					t.Fatal("the options are few, yet the bound is not proven")
				}
				value := r.Bound
				if o.Minimises() {
					value = -value
				}
				if ok && value < best {
					t.Fatalf("bound %.15g is below the optimum %.15g", value, best)
				}
				d, err := bound.New(m, bound.Options{}).Place(req)
				if err != nil {
					t.Fatal(err)
				}
				e, err := place.Evaluate(req, d, m)
				if err != nil {
					t.Fatal(err)
				}
				v := e.Value
				if o.Minimises() {
					v = -v
				}
				if ok && e.Held == 0 {
					if v > best+1e-9 {
						t.Fatalf("plan %g is above the optimum %g", v, best)
					}
					trials++
					if v > best-1e-9 {
						optimal++
					}
				}
				if ok && e.Held > 0 {
					t.Fatalf("plan holds %d tasks; brute force places all", e.Held)
				}
			})
			t.Logf("the plan is optimal in %d of %d cases", optimal, trials)
		})
	}
}
