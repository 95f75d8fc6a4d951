package place_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/cluster/clustertest"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/placetest"
)

// drawn lets rapid shrink the cluster.
type drawn struct{ *rapid.T }

func (d drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "n") }

func drawRequest(t *rapid.T) place.Request {
	spec, groups := clustertest.Random(drawn{t})
	view, err := cluster.NewSnapshot(spec)
	if err != nil {
		t.Fatal(err)
	}
	return place.Request{View: view, Pending: groups, Objective: rapid.SampledFrom(objectives).Draw(t, "objective")}
}

// putSome puts tasks at random where they fit, gangs whole or not at all, and
// returns where.
func putSome(t *rapid.T, req place.Request, tr *place.Trial) []int {
	at := slices.Repeat([]int{-1}, len(tr.Tasks()))
	first := 0
	for _, g := range req.Pending {
		whole := true
		for i := first; i < first+len(g.Tasks); i++ {
			for n := range req.View.Nodes() {
				if at[i] < 0 && tr.Check(tr.Kind(i), n) == cluster.Fits && rapid.IntRange(0, 2).Draw(t, "put") > 0 {
					tr.Put(tr.Kind(i), n)
					at[i] = n
				}
			}
			whole = whole && at[i] >= 0
		}
		for i := first; i < first+len(g.Tasks) && g.Gang && !whole; i++ {
			if at[i] >= 0 {
				tr.Take(tr.Kind(i), at[i])
				at[i] = -1
			}
		}
		first += len(g.Tasks)
	}
	return at
}

// plainObjective computes the objective from the model, task by task, and
// reports whether the model knows all.
func plainObjective(req place.Request, p *cluster.Placement, held int, m interference.Model) (value float64, known bool) {
	o := req.Objective.Or()
	known = true
	sum, worst, slow := 0.0, math.Inf(1), 0.0
	tasks, tails, used := 0, 0, 0
	for n, node := range req.View.Nodes() {
		c := p.Colocation(n)
		if c.Tasks() == 0 {
			continue
		}
		used++
		rate := m.Predict(node.Class, history.Rate, []cluster.Colocation{c})[0]
		tail := m.Predict(node.Class, history.P99, []cluster.Colocation{c})[0]
		for i, w := range c.Workloads() {
			latency := m.Predict("fast", history.P99, []cluster.Colocation{{w: 1}})[0][0].Known
			for range c[w] {
				tasks++
				known = known && (rate[i].Known || o.Mean == 0 && o.Worst == 0)
				sum += rate[i].Value
				worst = min(worst, rate[i].Value)
				if latency {
					known = known && (tail[i].Known || o.P99 == 0)
					tails++
					slow += tail[i].Value
				}
			}
		}
	}
	if math.IsInf(worst, 1) {
		worst = 0
	}
	value = o.Mean*sum/float64(max(1, tasks+held)) + o.Worst*worst - o.P99*slow/float64(max(1, tails)) - o.Nodes*float64(used)
	if o.Minimises() {
		value = -value
	}
	return value, known
}

// TestPropertyEvaluate: a decision made of a trial is valid, binds what was put,
// and is worth what the model says task by task.
func TestPropertyEvaluate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req, m := drawRequest(t), drawModel(t)
		tr := place.NewTrial(req, m, 0)
		at := putSome(t, req, tr)
		d := place.DecisionOf(req, tr.Placement, at)
		e, err := place.Evaluate(req, d, m)
		if err != nil {
			t.Fatal(err)
		}
		for n := range req.View.Nodes() {
			if !slices.Equal(e.Placement.Counts(n), tr.Counts(n)) {
				t.Fatalf("node %d: %v was put, %v evaluated", n, tr.Counts(n), e.Placement.Counts(n))
			}
		}
		want, known := plainObjective(req, tr.Placement, len(d.Hold), m)
		if known != (len(e.Unknown) == 0) || known != !math.IsNaN(e.Value) {
			t.Fatalf("known %t, but unknown %v and value %v", known, e.Unknown, e.Value)
		}
		if known && !near(e.Value, want) {
			t.Fatalf("%s: %v, want %v", req.Objective, e.Value, want)
		}
		if len(d.Bind)+len(d.Hold) != len(at) || e.Held != len(d.Hold) {
			t.Fatalf("%d bound and %d held (%d evaluated) of %d", len(d.Bind), len(d.Hold), e.Held, len(at))
		}
		if value := tr.Value(); known && e.Held == 0 {
			if req.Objective.Minimises() {
				value = -value
			}
			if !near(value, e.Value) {
				t.Fatalf("the trial is worth %v, its decision %v", value, e.Value)
			}
		}
	})
}

// TestPropertyGain: what Gain promises, Put brings, and Take takes back.
func TestPropertyGain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		req.Objective = rapid.SampledFrom([]place.Objective{{}, place.TailLatency, place.NodesUsed, {Mean: 1, P99: 1, Nodes: 1}}).Draw(t, "objective")
		tr := place.NewTrial(req, placetest.Model{Names: []string{"", "fast"}}, 0)
		putSome(t, req, tr)
		if len(tr.Tasks()) == 0 || len(req.View.Nodes()) == 0 {
			return
		}
		k := tr.Kind(rapid.IntRange(0, len(tr.Tasks())-1).Draw(t, "task"))
		n := rapid.IntRange(0, len(req.View.Nodes())-1).Draw(t, "node")
		was, config, gain := tr.Value(), tr.Config(n), tr.Gain(k, n)
		clone := tr.Clone()
		tr.Put(k, n)
		if !near(tr.Value()-was, gain) {
			t.Fatalf("gain %v, but the value went from %v to %v", gain, was, tr.Value())
		}
		if clone.Value() != was || clone.Config(n) != config {
			t.Fatal("a clone changed with its original")
		}
		tr.Take(k, n)
		if !near(tr.Value(), was) || tr.Config(n) != config {
			t.Fatal("Take did not undo Put")
		}
	})
}

func TestGainAtSilence(t *testing.T) {
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: cluster.Nodes("", 1, 0, 4)})
	if err != nil {
		t.Fatal(err)
	}
	tasks := []cluster.Task{{ID: "1", Workload: "a"}, {ID: "2", Workload: "a"}, {ID: "3", Workload: "a"}}
	req := place.Request{View: view, Pending: []cluster.Group{{Tasks: tasks}}}
	tr := place.NewTrial(req, silentOn{"a*2"}, 0)
	tr.Put(0, 0)
	if g := tr.Gain(0, 0); !math.IsInf(g, -1) {
		t.Errorf("into silence: %v", g)
	}
	tr.Put(0, 0)
	if g := tr.Gain(0, 0); g != 0 {
		t.Errorf("out of silence: %v", g)
	}
}

// silentOn knows all but one co-location.
type silentOn struct{ key string }

func (silentOn) Kind() string              { return "silent" }
func (silentOn) Classes() []string         { return []string{""} }
func (silentOn) Workloads(string) []string { return nil }

func (s silentOn) Predict(_ string, _ history.Metric, cs []cluster.Colocation) [][]interference.Estimate {
	rows := make([][]interference.Estimate, len(cs))
	for i, c := range cs {
		for range c.Workloads() {
			rows[i] = append(rows[i], interference.Estimate{Value: 1, Known: c.Key() != s.key})
		}
	}
	return rows
}

func TestWhyNot(t *testing.T) {
	nodes := cluster.Nodes("", 3, 0, 1)
	nodes[0].Unschedulable = true
	for _, c := range []struct {
		nodes   []cluster.Node
		running []string
		wanted  string
	}{
		{nil, nil, "the cluster has no nodes"},
		{nodes, nil, "2 of 3 nodes fit, but the policy chose none"},
		{nodes, []string{"node-1", "node-2"}, "0 of 3 nodes fit; 2 of them as here: node node-1 has no free slot (all 1 are taken); 1 as here: node node-0 takes no new tasks (unschedulable)"},
	} {
		spec := cluster.Spec{Nodes: c.nodes}
		for _, n := range c.running {
			spec.Running = append(spec.Running, cluster.Running{Task: cluster.Task{ID: cluster.TaskID(n), Workload: "b"}, Node: n})
		}
		view, err := cluster.NewSnapshot(spec)
		if err != nil {
			t.Fatal(err)
		}
		req := place.Request{View: view, Pending: []cluster.Group{{Tasks: []cluster.Task{{ID: "1", Workload: "a"}}}}}
		d := place.NewTrial(req, placetest.Model{}, 0).Decision(req)
		if len(d.Hold) != 1 || !strings.HasPrefix(d.Hold[0].Why, c.wanted) {
			t.Errorf("%v, want %q", d.Hold, c.wanted)
		}
	}
}
