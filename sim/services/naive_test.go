package services_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/place/placetest"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/services"
)

// naive follows a run from outside by its decisions alone, keeping a list of
// what sits where, and works everything out anew at every instant.
type naive struct {
	t      *rapid.T
	c      *services.Config
	end    map[cluster.TaskID]time.Duration
	on     map[cluster.TaskID]string
	began  map[cluster.TaskID]time.Duration // since when it sits there
	moved  map[cluster.TaskID]time.Duration // when it was last moved; what is missing was not
	work   map[cluster.TaskID]string        // workload
	alive  []cluster.TaskID                 // that have arrived
	sum    float64
	count  float64
	last   time.Duration
	views  int
	served int
}

func (n *naive) rate(now time.Duration) (sum float64, running int) {
	byNode := map[string]cluster.Colocation{}
	for _, id := range n.alive {
		if node, ok := n.on[id]; ok {
			if byNode[node] == nil {
				byNode[node] = cluster.Colocation{}
			}
			byNode[node][n.work[id]]++
			running++
		}
	}
	for _, id := range n.alive {
		node, ok := n.on[id]
		if !ok {
			continue
		}
		if at, yes := n.moved[id]; yes && now < at+n.c.Migrate.Cost {
			continue
		}
		co := byNode[node]
		i := slices.Index(co.Workloads(), n.work[id])
		sum += n.c.Truth.Predict("any", history.Rate, []cluster.Colocation{co})[0][i].Value
	}
	return sum, running
}

// watch checks a stretch against the list.
func (n *naive) watch(s services.Stretch) {
	n.leave(s.From)
	sum, running := n.rate(s.From)
	if math.Abs(sum-s.Sum) > 1e-9 || running != s.Running {
		n.t.Fatalf("from %s: sum %g of %d running; by the list %g of %d", s.From, s.Sum, s.Running, sum, running)
	}
	if s.From < n.last {
		n.t.Fatalf("stretch from %s after one to %s", s.From, n.last)
	}
	n.last = s.To
	if s.From >= n.c.Warmup {
		n.sum += sum * (s.To - s.From).Seconds()
		n.count += float64(running) * (s.To - s.From).Seconds()
	}
}

func (n *naive) leave(now time.Duration) {
	n.alive = slices.DeleteFunc(n.alive, func(id cluster.TaskID) bool {
		if n.end[id] <= now {
			delete(n.on, id)
			return true
		}
		return false
	})
}

// decided checks what the policy was shown, and follows what it said.
func (n *naive) decided(req place.Request, d place.Decision) {
	n.leave(req.Now)
	n.views++
	nodes := req.View.Nodes()
	for i := range nodes { // failed nodes were emptied
		if nodes[i].Unschedulable {
			for id, node := range n.on {
				if node == nodes[i].Name {
					delete(n.on, id)
				}
			}
		}
	}
	pending := map[cluster.TaskID]bool{}
	for _, g := range req.Pending {
		for _, t := range g.Tasks {
			pending[t.ID] = true
			if !slices.Contains(n.alive, t.ID) {
				n.alive = append(n.alive, t.ID)
			}
			if _, runs := n.on[t.ID]; runs {
				n.t.Fatalf("at %s task %s is pending and runs", req.Now, t.ID)
			}
		}
	}
	if len(req.View.Running()) != len(n.on) || len(n.on)+len(pending) != len(n.alive) {
		n.t.Fatalf("at %s the view shows %d running and %d pending; by the list %d of %d run", req.Now, len(req.View.Running()), len(pending), len(n.on), len(n.alive))
	}
	for _, r := range req.View.Running() {
		if n.on[r.ID] != r.Node || n.began[r.ID] != r.Started {
			n.t.Fatalf("at %s task %s runs on %s since %s; by the list on %q since %s", req.Now, r.ID, r.Node, r.Started, n.on[r.ID], n.began[r.ID])
		}
	}
	for _, b := range d.Bind {
		n.on[b.Task], n.began[b.Task] = b.Node, req.Now
		delete(n.moved, b.Task)
		n.served++
	}
	for _, m := range d.Move {
		if n.on[m.Task] != m.To {
			n.on[m.Task], n.moved[m.Task] = m.To, req.Now
		}
	}
	n.checkRules(req)
}

// checkRules looks at everything that must hold, but for spread, which
// departures may break.
func (n *naive) checkRules(req place.Request) {
	nodes := req.View.Nodes()
	byNode := map[string]cluster.Colocation{}
	for i := range nodes {
		byNode[nodes[i].Name] = cluster.Colocation{}
	}
	for id, node := range n.on {
		byNode[node][n.work[id]]++
	}
	rules := req.View.Constraints()
	for i := range nodes {
		co := byNode[nodes[i].Name]
		if co.Tasks() > nodes[i].Slots || nodes[i].Unschedulable && co.Tasks() > 0 {
			n.t.Fatalf("node %s of %d slots (failed: %t) runs %s", nodes[i].Name, nodes[i].Slots, nodes[i].Unschedulable, co.Key())
		}
		for w, most := range rules.MaxPerNode {
			if co[w] > most {
				n.t.Fatalf("node %s runs %s; at most %d of %s", nodes[i].Name, co.Key(), most, w)
			}
		}
		for _, a := range rules.AntiAffinity {
			if a.A == a.B && co[a.A] > 1 || a.A != a.B && co[a.A] > 0 && co[a.B] > 0 {
				n.t.Fatalf("node %s runs %s in spite of anti-affinity of %s and %s", nodes[i].Name, co.Key(), a.A, a.B)
			}
		}
	}
}

// mover is greedy, and moves a task somewhere else at every decision.
type mover struct{ place.Policy }

func (m mover) Place(req place.Request) (place.Decision, error) {
	d, err := m.Policy.Place(req)
	if err != nil {
		return d, err
	}
	running := req.View.Running()
	if len(running) == 0 || len(d.Bind) > 0 {
		return d, nil
	}
	r := running[req.Rand.IntN(len(running))]
	if !r.Movable {
		return d, fmt.Errorf("task %s is not movable", r.ID)
	}
	p := cluster.NewPlacement(req.View, []cluster.Task{r.Task})
	for range 20 {
		n := req.Rand.IntN(len(req.View.Nodes()))
		if name := req.View.Nodes()[n].Name; p.Check(p.Kind(0), n) == cluster.Fits && name != r.Node {
			d.Move = append(d.Move, place.Move{Task: r.ID, To: name})
			break
		}
	}
	return d, nil
}

func drawConfig(t *rapid.T) services.Config {
	workloads := []string{"a", "b", "c"}
	nodes := cluster.Nodes("any", rapid.IntRange(1, 6).Draw(t, "nodes"), 0, rapid.IntRange(1, 4).Draw(t, "slots"))
	for i := range nodes {
		nodes[i].Labels = map[string]string{cluster.ZoneKey: fmt.Sprint(i % 3)}
	}
	c := services.Config{
		Cluster: cluster.Spec{Nodes: nodes}, Truth: placetest.Model{}, Seed: rapid.Uint64().Draw(t, "seed"),
		Horizon: 4 * time.Hour, Warmup: time.Hour, Lifetime: time.Hour, Samples: 3,
	}
	if rapid.Bool().Draw(t, "rules") {
		c.Cluster.Constraints = cluster.Constraints{
			AntiAffinity: []cluster.AntiAffinity{{A: "a", B: "b"}},
			MaxPerNode:   map[string]int{"c": 2},
			Spread:       []cluster.Spread{{Workload: "c", Key: cluster.ZoneKey, MaxSkew: 1}},
		}
	}
	if rapid.Bool().Draw(t, "failures") {
		c.MTBF, c.Repair = 2*time.Hour, 20*time.Minute
	}
	s := services.Stream{
		Capacity: len(nodes) * nodes[0].Slots, Load: rapid.Float64Range(0.1, 0.95).Draw(t, "load"), Most: 2, Horizon: c.Horizon, Lifetime: time.Hour,
		Scaling: rapid.Float64Range(0, 3).Draw(t, "scaling"), Workloads: workloads, Mix: services.Mix(rapid.SampledFrom(services.Mixes()).Draw(t, "mix")),
		Range: rapid.SampledFrom([]float64{0, 1, 20}).Draw(t, "range"), Drift: rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "drift"),
		Sizes: []services.Size{{Replicas: 1, Share: 2}, {Replicas: 3, Share: 1}},
	}
	var err error
	if c.Arrivals, err = s.Draw(c.Seed); err != nil {
		t.Fatal(err)
	}
	policy, err := baseline.New(rapid.SampledFrom([]string{"greedy", "spread", "random", "binpack"}).Draw(t, "policy"), baseline.Options{Model: c.Truth})
	if err != nil {
		t.Fatal(err)
	}
	c.Policy = policy
	if rapid.Bool().Draw(t, "moves") && len(c.Cluster.Constraints.Spread) == 0 {
		c.Policy, c.Migrate = mover{policy}, sim.Price{On: true, Cost: rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "cost")}
	}
	return c
}

func TestRunAgreesWithAListOfWhatSitsWhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		n := &naive{
			t: t, c: &c, end: map[cluster.TaskID]time.Duration{}, on: map[cluster.TaskID]string{}, began: map[cluster.TaskID]time.Duration{},
			moved: map[cluster.TaskID]time.Duration{}, work: map[cluster.TaskID]string{},
		}
		for _, a := range c.Arrivals {
			for i, task := range a.Tasks {
				n.end[task.ID], n.work[task.ID] = a.Until[i], task.Workload
			}
		}
		c.Watch, c.Decided = n.watch, n.decided
		r, err := services.Run(c)
		if err != nil {
			t.Fatal(err)
		}
		if n.last != c.Horizon {
			t.Fatalf("the last stretch ends at %s", n.last)
		}
		if n.count > 0 && math.Abs(n.sum/n.count-r.Performance) > 1e-9 {
			t.Fatalf("performance %g; by the list %g", r.Performance, n.sum/n.count)
		}
		if r.Decisions != n.views || r.Placed != n.served || len(r.Samples) != 3 {
			t.Fatalf("%d decisions placed %d, %d samples; by the list %d, %d", r.Decisions, r.Placed, len(r.Samples), n.views, n.served)
		}
		for i := range r.Samples {
			s := &r.Samples[i]
			l, err := s.Limit(c.Cluster, c.Truth, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.MTBF == 0 && !c.Migrate.On && s.Sum > l.Bound+1e-9 {
				t.Fatalf("at %s the sum is %g, over the bound %g", s.At, s.Sum, l.Bound)
			}
		}
	})
}
