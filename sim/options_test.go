package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/sim"
)

// spans tells when the jobs of a run began and ended, in seconds.
func spans(t *testing.T, c sim.Config) string {
	t.Helper()
	r, err := sim.Run(c)
	if err != nil {
		t.Fatal(err)
	}
	return told(&r)
}

func told(r *sim.Result) string {
	var b strings.Builder
	for _, j := range r.Jobs {
		fmt.Fprintf(&b, "%s %g-%g ", j.Name, j.Start.Seconds(), j.Finish.Seconds())
	}
	return strings.TrimSpace(b.String())
}

var halves = map[string]float64{"w": 1}

// On three devices a (2 workers) runs first; b needs three and waits; c needs
// one and may pass b only with backfill.
func TestBackfill(t *testing.T) {
	c := sim.Config{
		Nodes: gpus(3, 1), Truth: &share{}, Policy: &least{},
		Jobs: []sim.Job{gang("a", "w", 0, 10, 2), gang("b", "w", s, 10, 3), single("c", "w", 2*s, 4)},
	}
	if got := spans(t, c); got != "a 0-10 b 10-20 c 20-24" {
		t.Error(got)
	}
	c.Backfill = true
	if got := spans(t, c); got != "a 0-10 b 10-20 c 2-6" {
		t.Error(got)
	}
}

// Without backfill the policy is asked gang by gang, until the first is held.
func TestOfferedOneAtATime(t *testing.T) {
	var offers []string
	c := sim.Config{
		Nodes: gpus(2, 1), Truth: &share{}, Policy: &least{},
		Jobs: []sim.Job{single("a", "w", 0, 10), single("b", "w", 0, 10), single("c", "w", 0, 1), single("d", "w", 0, 1)},
		Decided: func(req place.Request, _ place.Decision) {
			names := ""
			for _, g := range req.Pending {
				names += g.Name
			}
			offers = append(offers, fmt.Sprintf("%g:%s/%d", req.Now.Seconds(), names, len(req.View.Running())))
		},
	}
	spans(t, c)
	if got := fmt.Sprint(offers); got != "[0:a/0 0:b/1 0:c/2 10:c/0 10:d/1]" {
		t.Error(got)
	}
}

func TestPriorities(t *testing.T) {
	c := sim.Config{
		Nodes: gpus(1, 1), Truth: &share{}, Policy: &least{},
		Jobs: []sim.Job{single("a", "w", 0, 10), single("b", "w", s, 10), single("c", "w", 2*s, 10)},
	}
	c.Jobs[2].Priority = 1
	if got := spans(t, c); got != "a 0-10 b 10-20 c 20-30" {
		t.Error(got)
	}
	c.Priorities = true
	if got := spans(t, c); got != "a 0-10 b 20-30 c 10-20" {
		t.Error(got)
	}
}

// Decisions fall on the multiples of the interval, when somebody waits.
func TestInterval(t *testing.T) {
	var at []float64
	c := sim.Config{
		Nodes: gpus(1, 1), Truth: &share{}, Policy: &least{}, Interval: 4 * s,
		Jobs:    []sim.Job{single("a", "w", 3*s, 6), single("b", "w", 4*s, 10), single("c", "w", 40*s, 1)},
		Decided: func(req place.Request, _ place.Decision) { at = append(at, req.Now.Seconds()) },
	}
	if got := spans(t, c); got != "a 4-10 b 12-22 c 40-41" {
		t.Error(got)
	}
	if got := fmt.Sprint(at); got != "[4 4 8 12 40]" {
		t.Error(got)
	}
}

// a and b halve each other from 0 on; at 10 the policy moves b, which stands
// still for 5 s: while it does, a runs alone.
func TestMigrate(t *testing.T) {
	p := &play{moves: []place.Decision{
		{Bind: []place.Binding{bind("a/0", "v100-0", 0), bind("b/0", "v100-0", 0)}},
		{Move: []place.Move{{Task: "b/0", To: "v100-1", Devices: []int{0}}, {Task: "a/0", To: "v100-0", Devices: []int{0}}}},
	}}
	r, err := sim.Run(sim.Config{
		Nodes: gpus(2, 2), Truth: &share{slow: halves}, Policy: p, Backfill: true, Migrate: sim.Price{On: true, Cost: 5 * s},
		Jobs: []sim.Job{single("a", "w", 0, 20), single("b", "w", 0, 20), single("c", "v", 10*s, 1)},
	})
	if err != nil {
		t.Fatal(err)
	}
	// c is neither bound nor held by the second decision: it waits until a ends.
	if got := told(&r); got != "a 0-25 b 0-30 c 25-26" {
		t.Error(got)
	}
	if r.Moves != 1 || r.Jobs[1].Moves != 1 || r.Jobs[0].Moves != 0 {
		t.Errorf("%d moves, want 1: what stays where it is does not move", r.Moves)
	}
}

// Two jobs change places in one decision: only the outcome must fit.
func TestSwap(t *testing.T) {
	p := &play{moves: []place.Decision{
		{Bind: []place.Binding{bind("a/0", "v100-0", 0), bind("b/0", "v100-1", 0)}},
		{Move: []place.Move{{Task: "b/0", To: "v100-0", Devices: []int{0}}, {Task: "a/0", To: "v100-1", Devices: []int{0}}}},
	}}
	got := spans(t, sim.Config{
		Nodes: gpus(2, 1), Truth: &share{}, Policy: p, Backfill: true, Migrate: sim.Price{On: true, Cost: 5 * s},
		Jobs: []sim.Job{single("a", "w", 0, 20), single("b", "w", 0, 10), single("c", "v", 5*s, 1)},
	})
	if got != "a 0-25 b 0-15 c 15-16" {
		t.Error(got)
	}
}

// a starts with 1 of its 2 workers at sqrt(1/2) of its speed; with 4 it goes at
// sqrt(2), after standing still for 3 s; then it shrinks to 2 again.
func TestScale(t *testing.T) {
	a := gang("a", "w", 0, 100, 2)
	a.MinWorkers, a.MaxWorkers = 1, 4
	bindW := func(i int) place.Binding {
		return bind(string(sim.WorkerID(a.Job, i)), fmt.Sprint("v100-", i), 0)
	}
	to := func(n int) []place.Resize { return []place.Resize{{Group: "a", Workers: n}} }
	p := &play{moves: []place.Decision{
		{Resize: to(1), Bind: []place.Binding{bindW(0)}},
		{}, // nobody waits any more: the policy may let jobs grow
		{Resize: to(4), Bind: []place.Binding{bindW(1), bindW(2), bindW(3)}},
		{Resize: to(2), Bind: []place.Binding{bind("c/0", "v100-4", 0)}},
	}}
	var view []string
	r, err := sim.Run(sim.Config{
		Nodes: gpus(5, 1), Truth: alone{}, Policy: p, Backfill: true, Scale: sim.Price{On: true, Cost: 3 * s},
		Jobs: []sim.Job{a, single("b", "w", 10*s, 5), single("c", "w", 23*s, 5)},
		Watch: func(v sim.Stretch) {
			view = append(view, fmt.Sprintf("%g:%d@%.4f", v.From.Seconds(), len(v.View.Running()), v.Rate[:min(1, len(v.Rate))]))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	// 10 s at .7071, 10 s (13 to 23) at 1.4142, then, from 26 on, at 1.
	if got := fmt.Sprintf("%.3f", r.Jobs[0].Finish.Seconds()); got != fmt.Sprintf("%.3f", 26+100-7.07107-14.14214) {
		t.Errorf("a ends at %s", got)
	}
	if r.Resizes != 2 || r.Jobs[0].Resizes != 2 {
		t.Errorf("%d resizes, want 2 while it ran", r.Resizes)
	}
	if view[0] != "0:1@[0.7071]" || view[1] != "10:4@[1.4142]" || view[2] != "23:3@[1.0000]" {
		t.Error(view)
	}
}

type alone struct{ scaling }

func (alone) Rates(_ *cluster.Snapshot, touched []cluster.TaskID) map[cluster.TaskID]float64 {
	rates := map[cluster.TaskID]float64{}
	for _, id := range touched {
		rates[id] = 1
	}
	return rates
}

// A job that fails keeps what it did up to its last checkpoint, and goes back
// before those that came later. Which runs fail, and when, is not the
// policy's doing.
func TestJobFailures(t *testing.T) {
	c := sim.Config{
		Nodes: gpus(1, 1), Truth: &share{}, Policy: &least{}, JobFailure: 0.5, Checkpoint: 10,
		Jobs: []sim.Job{single("a", "w", 0, 100), single("b", "w", s, 100)},
	}
	failed := 0
	for c.Seed = range 20 {
		r, err := sim.Run(c)
		if err != nil {
			t.Fatal(err)
		}
		// One device, never idle: the time is the work and what was lost of it.
		a, b := r.Jobs[0], r.Jobs[1]
		if total := 200 + a.Lost + b.Lost; !near(r.Makespan, total) || b.Start < a.Finish {
			t.Errorf("seed %d: makespan %g, work and losses %g; a ends at %s, b begins at %s", c.Seed, r.Makespan, total, a.Finish, b.Start)
		}
		if a.Lost > 10*float64(a.Restarts) {
			t.Errorf("seed %d: %d runs failed and lost %g s, more than 10 s each", c.Seed, a.Restarts, a.Lost)
		}
		failed += a.Restarts + b.Restarts
		c2 := c
		c2.Nodes = gpus(2, 1)
		r2, err := sim.Run(c2)
		if err != nil {
			t.Fatal(err)
		}
		if r2.Jobs[0].Lost != a.Lost || r2.Jobs[1].Lost != b.Lost {
			t.Errorf("seed %d: losses %g, %g depend on the placement: %g, %g", c.Seed, a.Lost, b.Lost, r2.Jobs[0].Lost, r2.Jobs[1].Lost)
		}
	}
	if failed < 20 || failed > 60 {
		t.Errorf("%d failures of 40 jobs at 0.5 a run: 40 are expected", failed)
	}
}

func near(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 }

// A node that fails takes the whole gang down; the gang waits for the repair.
func TestNodeFailures(t *testing.T) {
	c := sim.Config{
		Nodes: gpus(2, 1), Truth: &share{}, Policy: &least{}, MTBF: 100 * s, Repair: 7 * s,
		Jobs: []sim.Job{gang("a", "w", 0, 50, 2)},
	}
	restarts := 0
	for c.Seed = range 20 {
		down := map[time.Duration]bool{}
		c.Watch = func(v sim.Stretch) {
			closed := slices.ContainsFunc(v.View.Nodes(), func(n cluster.Node) bool { return n.Unschedulable })
			if closed != (len(v.View.Running()) == 0) {
				t.Errorf("seed %d: from %s a node is down: %t, yet %d tasks run", c.Seed, v.From, closed, len(v.View.Running()))
			}
			down[v.To-v.From] = closed
		}
		r, err := sim.Run(c)
		if err != nil {
			t.Fatal(err)
		}
		a := r.Jobs[0]
		restarts += a.Restarts
		if a.State != sim.Finished || a.JCT().Seconds() < 50+a.Lost+7*float64(a.Restarts)*0.99 {
			t.Errorf("seed %d: %+v", c.Seed, a)
		}
	}
	// Two nodes at 1/100 a second fail a run of 50 s e-1 times in the mean.
	if restarts < 15 || restarts > 70 {
		t.Errorf("%d restarts of 20 jobs, 34 are expected", restarts)
	}
}

// A policy that sees the cluster as it was 5 s ago binds b where a still runs,
// since it sees neither; the simulator refuses, and it tries when it sees more.
func TestStale(t *testing.T) {
	c := sim.Config{
		Nodes: gpus(1, 1), Truth: &share{}, Policy: &least{}, Stale: 5 * s,
		Jobs: []sim.Job{single("a", "w", 0, 20), single("b", "w", 2*s, 10)},
	}
	r, err := sim.Run(c)
	if err != nil {
		t.Fatal(err)
	}
	// b is refused at 2 s; at 5 s it sees a; that a has ended it sees at 25 s.
	if got := told(&r); got != "a 0-20 b 25-35" || r.Stale != 1 {
		t.Errorf("%s, %d refused", got, r.Stale)
	}
}

type listener struct {
	least
	heard []string
}

func (l *listener) Observe(o place.Outcome) {
	var ids []string
	for id, p := range o.Performance {
		ids = append(ids, fmt.Sprintf("%s=%g", id, p))
	}
	slices.Sort(ids)
	l.heard = append(l.heard, fmt.Sprintf("%g %d %v %v", o.Now.Seconds(), len(o.View.Running()), ids, o.Finished))
}

// An observer hears of each stretch before the decision at its end.
func TestObserve(t *testing.T) {
	l := &listener{}
	c := sim.Config{
		Nodes: gpus(1, 2), Truth: &share{slow: halves}, Policy: l, Observe: true,
		Jobs: []sim.Job{single("a", "w", 0, 10), single("b", "w", 4*s, 3)},
	}
	spans(t, c)
	want := []string{"4 1 [a/0=1] []", "10 2 [a/0=0.5 b/0=0.5] [b]", "13 1 [a/0=1] [a]"}
	if !slices.Equal(l.heard, want) {
		t.Errorf("heard %q, want %q", l.heard, want)
	}
	l.heard, c.Observe = nil, false
	if spans(t, c); len(l.heard) > 0 {
		t.Errorf("heard %q though observing is off", l.heard)
	}
}

func TestStop(t *testing.T) {
	asked := 0
	r, err := sim.Run(sim.Config{
		Nodes: gpus(1, 1), Truth: &share{}, Policy: &least{}, Stop: func() bool { asked++; return asked > 2 },
		Jobs: []sim.Job{single("a", "w", 0, 10), single("b", "w", s, 10), single("c", "w", 2*s, 10)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Unfinished) != 3 || r.Why != "it was stopped" {
		t.Errorf("%v: %q", r.Unfinished, r.Why)
	}
}
