package place_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/cluster/clustertest"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/place/placetest"
)

// TestTrafficByHand: two clients with twice as much traffic to the server as to
// the cache, of which there are two, one running. Nodes 0 and 1 are a rack,
// node 2 is in none.
func TestTrafficByHand(t *testing.T) {
	nodes := cluster.Nodes("", 3, 0, 0)
	for i := range 2 {
		nodes[i].Labels = map[string]string{cluster.RackKey: "r"}
	}
	view, err := cluster.NewSnapshot(cluster.Spec{
		Nodes:   nodes,
		Running: []cluster.Running{{Task: cluster.Task{ID: "k0", Workload: "cache"}, Node: "node-0"}},
		Workloads: []cluster.Workload{
			{Name: "client", Edges: []cluster.Edge{{To: "server", Weight: 2}, {To: "cache"}}},
			{Name: "server"},
			{Name: "idle"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	group := cluster.Group{Name: "g", Tasks: []cluster.Task{
		{ID: "c0", Workload: "client"}, {ID: "c1", Workload: "client"}, {ID: "s", Workload: "server"}, {ID: "k1", Workload: "cache"},
	}}
	for _, c := range []struct {
		name         string
		c0, c1, s, k string // nodes; "" is held
		near         float64
	}{
		{"all together", "node-0", "node-0", "node-0", "node-0", 1},
		// c0: server 2/3; c1: server in the rack 1/3, k0 in the rack 1/12.
		{"one client aside in the rack", "node-0", "node-1", "node-0", "node-2", (2./3 + 1./6 + 1./3 + 1./12) / 2},
		{"out of the rack", "node-2", "node-2", "node-0", "node-1", 0},
		{"no rack but together", "node-2", "node-2", "node-2", "node-2", 5. / 6},
		{"held partners are far", "node-0", "node-1", "", "", (1./6 + 1./12) / 2},
		{"held clients do not count in the mean", "node-0", "", "node-0", "node-0", 1},
		{"no client at all", "", "", "node-0", "node-0", math.NaN()},
	} {
		req := place.Request{View: view, Pending: []cluster.Group{group}, Objective: place.Objective{Mean: 1, Traffic: 0.5}}
		var d place.Decision
		clients := 0.0
		for i, node := range []string{c.c0, c.c1, c.s, c.k} {
			if node == "" {
				d.Hold = append(d.Hold, place.Hold{Task: group.Tasks[i].ID, Why: "a test"})
				continue
			}
			if i < 2 {
				clients++
			}
			d.Bind = append(d.Bind, place.Binding{Task: group.Tasks[i].ID, Node: node})
		}
		value := func(o place.Objective) place.Evaluation {
			req.Objective = o
			e, err := place.Evaluate(req, d, placetest.Model{})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		both, mean := value(place.Objective{Mean: 1, Traffic: 0.5}), value(place.MeanPerformance)
		if !math.IsNaN(mean.Near) {
			t.Errorf("%s: near %v although the objective has no traffic", c.name, mean.Near)
		}
		if math.Abs(both.Near-c.near) > 1e-12 || math.IsNaN(both.Near) != math.IsNaN(c.near) {
			t.Errorf("%s: near %v, want %v", c.name, both.Near, c.near)
		}
		want := mean.Value
		if clients > 0 {
			want += 0.5 * c.near * clients / 5 // tasks
		}
		if math.Abs(both.Value-want) > 1e-12 {
			t.Errorf("%s: value %v, want %v", c.name, both.Value, want)
		}
	}
}

func TestTrafficWithinAWorkload(t *testing.T) {
	view, err := cluster.NewSnapshot(cluster.Spec{
		Nodes: cluster.Nodes("", 2, 0, 3), Workloads: []cluster.Workload{{Name: "a", Edges: []cluster.Edge{{To: "a"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	near := func(at ...int) float64 {
		var g cluster.Group
		var d place.Decision
		for i, n := range at {
			id := cluster.TaskID(fmt.Sprint(i))
			g.Tasks = append(g.Tasks, cluster.Task{ID: id, Workload: "a"})
			d.Bind = append(d.Bind, place.Binding{Task: id, Node: fmt.Sprintf("node-%d", n)})
		}
		e, err := place.Evaluate(place.Request{View: view, Pending: []cluster.Group{g}, Objective: place.NearTraffic}, d, placetest.Model{})
		if err != nil {
			t.Fatal(err)
		}
		return e.Near
	}
	if got := near(0); !math.IsNaN(got) {
		t.Errorf("a task alone has near share %v, but no partner", got)
	}
	for want, at := range map[float64][]int{1: {0, 0, 0}, 1. / 3: {0, 0, 1}, 0: {0, 1}} {
		if got := near(at...); math.Abs(got-want) > 1e-12 {
			t.Errorf("at %v: near %v, want %v", at, got, want)
		}
	}
}

// connected draws a cluster whose workloads exchange traffic, and what is to be
// placed on it.
func connected(t *rapid.T) (*cluster.Snapshot, []cluster.Group) {
	spec, groups := clustertest.Random(drawn{t})
	placetest.Connect(t, &spec, clustertest.Workloads...)
	view, err := cluster.NewSnapshot(spec)
	if err != nil {
		t.Fatal(err)
	}
	return view, groups
}

// TestPropertyTrafficIsThatOfPairs: what Evaluate says is what a loop over all
// pairs of tasks says.
func TestPropertyTrafficIsThatOfPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		view, groups := connected(t)
		req := place.Request{View: view, Pending: groups, Rand: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))}
		p, err := baseline.New("random", baseline.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d, err := p.Place(req)
		if err != nil {
			t.Fatal(err)
		}
		sum, sharing := pairs(req, d)
		req.Objective = place.Objective{Traffic: 0.7}
		e, err := place.Evaluate(req, d, placetest.Model{Names: []string{"", "fast"}})
		if err != nil {
			t.Fatal(err)
		}
		tasks := len(req.Tasks()) + len(view.Running())
		if want := 0.7 * sum / float64(max(1, tasks)); math.Abs(e.Value-want) > 1e-12 {
			t.Fatalf("value %v, want %v", e.Value, want)
		}
		if want := sum / float64(sharing); math.Abs(e.Near-want) > 1e-12 || math.IsNaN(want) != math.IsNaN(e.Near) {
			t.Fatalf("near %v, want %v", e.Near, want)
		}
		// With nothing but what runs, to those who look at the placement alone.
		running := cluster.NewPlacement(view, nil)
		sum, sharing = pairs(place.Request{View: view}, place.Decision{})
		if got, want := place.NearShare(running), sum/float64(sharing); math.Abs(got-want) > 1e-12 || math.IsNaN(got) != math.IsNaN(want) {
			t.Fatalf("near share of what runs %v, want %v", got, want)
		}
	})
}

// pairs is the sum of near shares, and the number of placed tasks that have
// partners.
func pairs(req place.Request, d place.Decision) (sum float64, sharing int) {
	type task struct {
		workload string
		node     string // "" is held
	}
	var tasks []task
	bound := map[cluster.TaskID]string{}
	for _, b := range d.Bind {
		bound[b.Task] = b.Node
	}
	for _, r := range req.View.Running() {
		tasks = append(tasks, task{r.Workload, r.Node})
	}
	for _, p := range req.Tasks() {
		tasks = append(tasks, task{p.Workload, bound[p.ID]})
	}
	rack := map[string]string{}
	for _, n := range req.View.Nodes() {
		rack[n.Name] = n.Labels[cluster.RackKey]
	}
	for i, a := range tasks {
		w, _ := req.View.Workload(a.workload)
		weights := 0.0
		for _, e := range w.Edges {
			weights += e.Amount()
		}
		some := false
		for _, e := range w.Edges {
			near, partners := 0.0, 0
			for j, b := range tasks {
				if i == j || b.workload != e.To {
					continue
				}
				partners++
				switch {
				case a.node == "" || b.node == "":
				case a.node == b.node:
					near++
				case rack[a.node] != "" && rack[a.node] == rack[b.node]:
					near += 0.5
				}
			}
			if partners > 0 {
				some = true
				sum += e.Amount() / weights * near / float64(partners)
			}
		}
		if some && a.node != "" {
			sharing++
		}
	}
	return sum, sharing
}

// TestPropertyTrafficGain: Gain is what Put makes of Value, and Take undoes it;
// a copy is independent. No co-location is worth more than Utmost says.
func TestPropertyTrafficGain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		view, groups := connected(t)
		o := place.Objective{Mean: 1, Nodes: 0.01, Traffic: rapid.SampledFrom([]float64{0.3, 5}).Draw(t, "weight")}
		req := place.Request{View: view, Pending: groups, Objective: o}
		trial := place.NewTrial(req, placetest.Model{Names: []string{"", "fast"}}, 0)
		nodes := len(view.Nodes())
		if nodes == 0 {
			return
		}
		begin, copied := trial.Value(), trial.Clone()
		type put struct{ kind, node int }
		var done []put
		for i := range trial.Tasks() {
			p := put{trial.Kind(i), rapid.IntRange(0, nodes-1).Draw(t, "node")}
			gain, before := trial.Gain(p.kind, p.node), trial.Value()
			trial.Put(p.kind, p.node)
			if rise := trial.Value() - before; math.Abs(rise-gain) > 1e-12 {
				t.Fatalf("gain %v, but the value rose by %v", gain, rise)
			}
			done = append(done, p)
		}
		most := 0.0
		for n := range nodes {
			most += trial.Utmost(trial.Config(n), n)
		}
		if trial.Value() > most+1e-12 {
			t.Fatalf("value %v above the utmost, %v", trial.Value(), most)
		}
		if copied.Value() != begin {
			t.Fatalf("the copy's value went from %v to %v", begin, copied.Value())
		}
		for _, p := range done {
			trial.Take(p.kind, p.node)
		}
		if got := trial.Value(); math.Abs(got-begin) > 1e-12 {
			t.Fatalf("value %v after all was taken back, was %v", got, begin)
		}
	})
}

func TestEdgesAreChecked(t *testing.T) {
	for _, e := range []cluster.Edge{{To: "b", Weight: -1}, {To: "b", Weight: math.NaN()}, {To: "b", Weight: math.Inf(1)}, {}} {
		if _, err := cluster.NewSnapshot(cluster.Spec{Workloads: []cluster.Workload{{Name: "a", Edges: []cluster.Edge{e}}}}); err == nil {
			t.Errorf("%+v: no error", e)
		}
	}
}
