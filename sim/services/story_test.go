package services_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/bound"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/services"
)

// shared is a model in which tasks on a node share it evenly; it knows up to
// most of them, where most is not 0.
type shared struct{ most int }

func (shared) Kind() string              { return "shared" }
func (shared) Classes() []string         { return []string{""} }
func (shared) Workloads(string) []string { return []string{"w"} }
func (s shared) Predict(_ string, _ history.Metric, cs []cluster.Colocation) [][]interference.Estimate {
	rows := make([][]interference.Estimate, len(cs))
	for i, c := range cs {
		for range c {
			rows[i] = append(rows[i], interference.Estimate{Value: 1 / float64(c.Tasks()), Known: s.most == 0 || c.Tasks() <= s.most})
		}
	}
	return rows
}

const minute = time.Minute

// group is n tasks of w that arrive and leave in minutes.
func group(name string, n, from int, until ...int) services.Arrival {
	a := services.Arrival{Group: cluster.Group{Name: name, Arrival: time.Duration(from) * minute}}
	for i := range n {
		a.Tasks = append(a.Tasks, cluster.Task{ID: cluster.TaskID(name + string(rune('0'+i))), Workload: "w"})
		a.Until = append(a.Until, time.Duration(until[min(i, len(until)-1)])*minute)
	}
	return a
}

// script decides as written, one line of TASK@NODE ... a decision; what it does
// not name is held. Lines beyond the last hold all.
type script struct {
	lines []string
	asked []string // what was pending, TASK ... a decision
	reqs  []place.Request
}

func (s *script) Place(req place.Request) (place.Decision, error) {
	var d place.Decision
	line := ""
	if n := len(s.asked); n < len(s.lines) {
		line = s.lines[n]
	}
	s.reqs = append(s.reqs, req)
	named := map[string]string{}
	for _, word := range strings.Fields(line) {
		task, node, _ := strings.Cut(word, "@")
		named[task] = node
	}
	var ids []string
	for _, t := range req.Tasks() {
		ids = append(ids, string(t.ID))
		if node, ok := named[string(t.ID)]; ok {
			d.Bind = append(d.Bind, place.Binding{Task: t.ID, Node: node})
			delete(named, string(t.ID))
		} else {
			d.Hold = append(d.Hold, place.Hold{Task: t.ID, Why: "as written"})
		}
	}
	for _, word := range strings.Fields(line) {
		if task, _, _ := strings.Cut(word, "@"); named[task] != "" {
			d.Move = append(d.Move, place.Move{Task: cluster.TaskID(task), To: named[task]})
		}
	}
	s.asked = append(s.asked, strings.Join(ids, " "))
	return d, nil
}

func two(slots int) cluster.Spec { return cluster.Spec{Nodes: cluster.Nodes("", 2, 0, slots)} }

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("%s: %g, want %g", what, got, want)
	}
}

// Two nodes of two slots. a's three tasks fill one node and half of the other;
// of b's two, one fits and one waits until a's last leaves.
func TestAGroupIsPlacedInPartAndTheRestWaits(t *testing.T) {
	p := &script{lines: []string{"a0@node-0 a1@node-0 a2@node-1", "b0@node-1", "b1@node-1"}}
	var stretches []services.Stretch
	r, err := services.Run(services.Config{
		Cluster:  two(2),
		Arrivals: []services.Arrival{group("a", 3, 0, 100, 100, 40), group("b", 2, 10, 60, 70)},
		Truth:    shared{}, Policy: p, Horizon: 100 * minute, Samples: 2,
		Watch: func(s services.Stretch) { stretches = append(stretches, s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a0 a1 a2", "b0 b1", "b1"}; !slices.Equal(p.asked, want) {
		t.Errorf("asked about %q, want %q", p.asked, want)
	}
	want := []services.Stretch{
		{From: 0, To: 10 * minute, Sum: 2, Running: 3},
		{From: 10 * minute, To: 25 * minute, Sum: 2, Running: 4, Waiting: 1},
		{From: 25 * minute, To: 40 * minute, Sum: 2, Running: 4, Waiting: 1}, // a sample
		{From: 40 * minute, To: 60 * minute, Sum: 2, Running: 4},
		{From: 60 * minute, To: 70 * minute, Sum: 2, Running: 3},
		{From: 70 * minute, To: 75 * minute, Sum: 1, Running: 2},
		{From: 75 * minute, To: 100 * minute, Sum: 1, Running: 2},
	}
	if !slices.Equal(stretches, want) {
		t.Errorf("stretches %+v\nwant %+v", stretches, want)
	}
	// 170 of sum and 30+120+80+30+60 of tasks in minutes; one waits for 30.
	near(t, "performance", r.Performance, 170./320)
	near(t, "of what was wanted", r.Served, 170./350)
	near(t, "running", r.Running, 3.2)
	near(t, "waiting", r.Waiting, 0.3)
	near(t, "mean wait", r.MeanWait, 30*60./5)
	near(t, "longest wait", r.MaxWait, 30*60)
	if r.Arrived != 5 || r.Waited != 1 || r.Placed != 5 || r.Decisions != 3 || r.MostWaiting != 1 || r.Events != 5 {
		t.Errorf("%+v", r)
	}
	if s := r.Samples[0]; s.At != 25*minute || s.Sum != 2 || s.Running != 4 || s.Waiting != 1 || s.Tasks["w"] != 4 || s.Worst != 0.5 {
		t.Errorf("first sample %+v", s)
	}
}

// a moves at 10, for 5 minutes without performance, from beside b.
func TestAMoveCosts(t *testing.T) {
	p := &script{lines: []string{"a0@node-0", "b0@node-0", "", "", "c0@node-1 a0@node-1"}}
	r, err := services.Run(services.Config{
		Cluster:  two(3),
		Arrivals: []services.Arrival{group("a", 1, 0, 100), group("b", 1, 0, 100), group("x", 1, 5, 6), group("c", 1, 10, 11)},
		Truth:    shared{}, Policy: p, Horizon: 20 * minute, Migrate: sim.Price{On: true, Cost: 5 * minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	// x is held for a minute, and the policy is asked once it has gone. 10 x 1; then b alone, c for a minute at 1/2 beside a,
	// which does nothing until 15.
	near(t, "performance", r.Performance, (10*1+10*1+1*0.5+5*1)/(2*20+1.))
	if r.Moved != 1 || !slices.Equal(p.asked, []string{"a0", "b0", "x0", "", "c0", ""}) {
		t.Errorf("moved %d, asked about %q", r.Moved, p.asked)
	}
}

// The queue that a departure leaves is offered whole, in arrival order; a task
// that gives up is offered no more.
func TestWhatWaitsIsTriedAgainInArrivalOrder(t *testing.T) {
	p := &script{lines: []string{"a0@node-0 a1@node-0"}}
	spec := cluster.Spec{Nodes: cluster.Nodes("", 1, 0, 2)}
	r, err := services.Run(services.Config{
		Cluster:  spec,
		Arrivals: []services.Arrival{group("c", 1, 3, 30), group("a", 2, 0, 20, 10), group("b", 2, 2, 5, 30)},
		Truth:    shared{}, Policy: p, Horizon: 20 * minute, Lifetime: 10 * minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a0 a1", "b0 b1", "b0 b1 c0", "b1 c0", "b1 c0"}; !slices.Equal(p.asked, want) {
		t.Errorf("asked about %q, want %q", p.asked, want)
	}
	near(t, "longest wait", r.MaxWait, 18*60)
	// What stands at the start counts in full, what comes later half, both
	// decaying over two lifetimes.
	at := func(i int) float64 { return p.reqs[i].Expected["w"] }
	near(t, "expected at 0", at(0), 2)
	near(t, "expected at 2", at(1), 2*math.Exp(-2./20)+1)
	near(t, "expected at 10", at(4), 2*math.Exp(-10./20)+1*math.Exp(-8./20)+0.5*math.Exp(-7./20))
}

// A node fails for an hour with all that it runs, which comes back elsewhere.
func TestTheTasksOfAFailedNodeWaitAgain(t *testing.T) {
	var down []int
	most := 0
	r, err := services.Run(services.Config{
		Cluster: two(2), Arrivals: []services.Arrival{group("a", 3, 0, 1e6)}, Truth: shared{}, Policy: &firstFit{},
		Horizon: 50 * time.Hour, MTBF: 10 * time.Hour, Repair: time.Hour, Seed: 2, Samples: 200,
		Watch: func(s services.Stretch) { most = max(most, s.Waiting) },
		Decided: func(req place.Request, _ place.Decision) {
			for i, n := range req.View.Nodes() {
				if n.Unschedulable {
					down = append(down, i)
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Failures < 3 || r.Displaced < 3 || r.Placed < 3+r.Displaced-3 || most == 0 || len(down) == 0 {
		t.Errorf("%d failures displaced %d tasks, placed %d, most waiting %d, down %v", r.Failures, r.Displaced, r.Placed, most, down)
	}
	for _, s := range r.Samples {
		if len(s.Down) == 1 && (s.Running != 2 || s.Waiting != 1) {
			t.Errorf("at %s one node is down, %d run and %d wait", s.At, s.Running, s.Waiting)
		}
	}
}

// A policy that refuses all as one is asked about one group after the other.
func TestInfeasibleIsNoFailure(t *testing.T) {
	r, err := services.Run(services.Config{
		Cluster: two(1), Arrivals: []services.Arrival{group("a", 3, 0, 10), group("b", 1, 1, 15), group("c", 1, 1, 15)},
		Truth: shared{}, Policy: bound.New(shared{}, bound.Options{}), Horizon: 20 * minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Placed != 2 || r.Waited != 3 {
		t.Errorf("%+v", r)
	}
}

func TestGangsAreWhole(t *testing.T) {
	a := group("a", 2, 0, 10)
	a.Gang = true
	_, err := services.Run(services.Config{
		Cluster: two(1), Arrivals: []services.Arrival{a}, Truth: shared{}, Policy: &script{lines: []string{"a0@node-0"}}, Horizon: minute,
	})
	if err == nil || !strings.Contains(err.Error(), "1 of 2 tasks of gang") {
		t.Error(err)
	}
}

func TestBadDecisionsEndTheRun(t *testing.T) {
	spec := two(1)
	spec.Nodes[0].Labels = map[string]string{cluster.ZoneKey: "x"}
	spec.Nodes[1].Labels = map[string]string{cluster.ZoneKey: "y"}
	for _, c := range []struct {
		line, want string
		rules      cluster.Constraints
		slots      int
	}{
		{line: "a0@node-7", want: `"node-7", which is not in the cluster`},
		{line: "a0@node-0 a1@node-0", want: "no free slot"},
		{line: "zz@node-0", want: "does not allow it"},
		{line: "a0@node-0 a1@node-0", slots: 2, rules: cluster.Constraints{MaxPerNode: map[string]int{"w": 1}}, want: "most allowed"},
		{line: "a0@node-0 a1@node-0", slots: 2, rules: cluster.Constraints{AntiAffinity: []cluster.AntiAffinity{{A: "w", B: "w"}}}, want: "must not be with"},
		{line: "a0@node-0 a1@node-0", slots: 2, rules: cluster.Constraints{Spread: []cluster.Spread{{Workload: "w", Key: cluster.ZoneKey}}}, want: "exceeds its max_skew by 1"},
	} {
		s := spec
		s.Nodes = slices.Clone(spec.Nodes)
		for i := range s.Nodes {
			s.Nodes[i].Slots = max(1, c.slots)
		}
		s.Constraints = c.rules
		_, err := services.Run(services.Config{
			Cluster: s, Arrivals: []services.Arrival{group("a", 2, 0, 10)}, Truth: shared{}, Policy: &script{lines: []string{c.line}}, Horizon: minute, Name: "bad",
		})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "policy bad at 0s") {
			t.Errorf("%s: %v; want %q", c.line, err, c.want)
		}
	}
}

// Departures may skew what is spread; decisions may not make it worse.
func TestDeparturesMaySkew(t *testing.T) {
	spec := two(4)
	spec.Nodes[0].Labels = map[string]string{cluster.ZoneKey: "x"}
	spec.Nodes[1].Labels = map[string]string{cluster.ZoneKey: "y"}
	spec.Constraints.Spread = []cluster.Spread{{Workload: "w", Key: cluster.ZoneKey}}
	c := services.Config{
		Cluster: spec, Arrivals: []services.Arrival{group("a", 4, 0, 9, 9, 5, 5), group("b", 1, 6, 9)}, Truth: shared{},
		Policy: &script{lines: []string{"a0@node-0 a1@node-0 a2@node-1 a3@node-1", "b0@node-1"}}, Horizon: 10 * minute,
	}
	r, err := services.Run(c)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "skewed", r.Skewed, 0.1)
	c.Policy = &script{lines: []string{"a0@node-0 a1@node-0 a2@node-1 a3@node-1", "b0@node-0"}}
	if _, err = services.Run(c); err == nil || !strings.Contains(err.Error(), "exceeds its max_skew by 2") {
		t.Error(err)
	}
}

func TestASilentTruthEndsTheRun(t *testing.T) {
	_, err := services.Run(services.Config{
		Cluster: two(2), Arrivals: []services.Arrival{group("a", 2, 0, 10)}, Truth: shared{most: 1},
		Policy: &script{lines: []string{"a0@node-0 a1@node-0"}}, Horizon: minute,
	})
	if err == nil || !strings.Contains(err.Error(), "silent about the co-location w*2;") {
		t.Error(err)
	}
}
