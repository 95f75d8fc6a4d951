package harmony

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/encode"
	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/place/placetest"
)

// trained stands for a network that learned something: its scores depend on
// all features.
func trained(tb testing.TB) *num.Scorer {
	tb.Helper()
	net, err := num.NewScorer(Shape(3), num.Rand(7))
	if err != nil {
		tb.Fatal(err)
	}
	rng := num.Rand(8)
	for _, x := range net.Tensors() {
		if x.Name == "score.w" {
			for i := range x.Data {
				x.Data[i] = float32(rng.NormFloat64())
			}
		}
	}
	return net
}

func TestPropertyDecisions(t *testing.T) {
	net := trained(t)
	for _, migrate := range []time.Duration{0, 30 * time.Second} {
		for _, many := range []int{manySites, 1} {
			if migrate == 0 && many == 1 {
				continue
			}
			t.Run(fmt.Sprintf("migrate=%s/many=%d", migrate, many), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					w := placetest.DrawWorld(t, placetest.Kind{Single: rapid.Bool().Draw(t, "single"), Most: 4})
					o := Options{Migrate: migrate, Explain: rapid.Bool().Draw(t, "explain")}
					if rapid.Bool().Draw(t, "patient") {
						o.MaxWait = 30 * time.Minute
					}
					p := New(net, newSpeeds(w.Scope), o)
					p.mover.many = many
					for range 4 {
						w.Arrive(t)
						req := w.Request()
						d, err := p.Place(req)
						if err != nil {
							t.Fatal(err)
						}
						checkDecision(t, w.Scope, req, d)
						checkWords(t, o, req, d)
						fresh := New(net, newSpeeds(w.Scope), o)
						fresh.mover.many = many
						if again, _ := fresh.Place(req); !reflect.DeepEqual(d, again) {
							t.Fatalf("a policy that has seen the past decides\n%+v\na fresh one\n%+v", d, again)
						}
						w.Apply(t, d)
					}
				})
			})
		}
	}
}

// checkDecision holds a decision against what every policy must keep.
func checkDecision(t *rapid.T, scope history.Scope, req place.Request, d place.Decision) {
	decided, bound := map[cluster.TaskID]int{}, map[cluster.TaskID]bool{}
	for _, b := range d.Bind {
		decided[b.Task]++
		bound[b.Task] = true
		if n, ok := req.View.NodeIndex(b.Node); !ok || req.View.Nodes()[n].Unschedulable {
			t.Fatalf("task %s is bound to %s, which takes none", b.Task, b.Node)
		}
	}
	for _, h := range d.Hold {
		decided[h.Task]++
	}
	for _, g := range req.Pending {
		n := 0
		for _, task := range g.Tasks {
			if decided[task.ID] != 1 {
				t.Fatalf("task %s is decided %d times", task.ID, decided[task.ID])
			}
			if bound[task.ID] {
				n++
			}
		}
		if n != 0 && n != len(g.Tasks) {
			t.Fatalf("gang %s: %d of %d tasks are bound", g.Name, n, len(g.Tasks))
		}
	}
	for i, m := range d.Move {
		if slices.ContainsFunc(d.Move[:i], func(o place.Move) bool { return o.Task == m.Task }) {
			t.Fatalf("task %s is moved twice", m.Task)
		}
	}
	if _, err := cluster.NewSnapshot(cluster.Spec{Nodes: req.View.Nodes(), Running: after(t, req, d)}); err != nil {
		t.Fatalf("the cluster afterwards: %v", err)
	}
	checkRoom(t, scope, req, after(t, req, d))
}

func checkRoom(t *rapid.T, scope history.Scope, req place.Request, running []cluster.Running) {
	// Where no class has a rate for a workload, all do.
	fast := slices.ContainsFunc(req.View.Nodes(), func(n cluster.Node) bool {
		return n.Class == "a" && (scope == history.ScopeNode || len(n.Devices) > 0)
	})
	for _, n := range req.View.Nodes() {
		tasks, cpu := 0, int64(0)
		used := make([]cluster.Colocation, len(n.Devices))
		node := cluster.Colocation{}
		for _, r := range running {
			if r.Node != n.Name {
				continue
			}
			tasks++
			cpu += r.Requests[cluster.CPU]
			node = node.With(r.Workload)
			if len(r.On) != r.Devices || r.Workload == "w03" && n.Class == "b" && fast {
				t.Fatalf("task %s of %s has devices %v of %s and needs %d", r.ID, r.Workload, r.On, n.Name, r.Devices)
			}
			for _, d := range r.On {
				used[d] = used[d].With(r.Workload)
			}
		}
		if n.Slots > 0 && tasks > n.Slots || cpu > 0 && n.Capacity[cluster.CPU] < cpu {
			t.Fatalf("node %s is over capacity: %d tasks of %d, cpu %d of %d", n.Name, tasks, n.Slots, cpu, n.Capacity[cluster.CPU])
		}
		if scope == history.ScopeNode && node["w01"] > 0 && node["w02"] > 0 {
			t.Fatalf("node %s: %s does not fit together", n.Name, node.Key())
		}
		for d, c := range used {
			if c.Tasks() > max(1, n.Devices[d].Slots) {
				t.Fatalf("device %d of %s is over capacity: %s", d, n.Name, c.Key())
			}
			if scope == history.ScopeDevice && c["w01"] > 0 && c["w02"] > 0 {
				t.Fatalf("device %d of %s: %s does not fit together", d, n.Name, c.Key())
			}
		}
	}
}

// checkWords: every decision explains itself, and nobody waits for nothing.
func checkWords(t *rapid.T, o Options, req place.Request, d place.Decision) {
	var tasks []cluster.TaskID
	for _, b := range d.Bind {
		tasks = append(tasks, b.Task)
	}
	for _, m := range d.Move {
		tasks = append(tasks, m.Task)
	}
	for _, id := range tasks {
		r, ok := d.Why[id]
		if ok != o.Explain {
			t.Fatalf("task %s is explained: %v, want %v", id, ok, o.Explain)
		}
		_, has := r.Scores[scoreGain]
		_, moved := r.Scores["gain_s"] // by jobs.Mover
		if o.Explain && (!has && !moved || r.Words == "") {
			t.Fatalf("task %s: reason %+v", id, r)
		}
	}
	for _, h := range d.Hold {
		if h.Why == "" {
			t.Fatalf("task %s is held without a reason", h.Task)
		}
		waits := strings.Contains(h.Why, "waits for a better place")
		if waits && o.Explain && !strings.Contains(h.Why, "the network scores that") {
			t.Fatalf("task %s waits: %q", h.Task, h.Why)
		}
		if waits && len(req.View.Running()) == 0 && len(d.Bind) == 0 {
			t.Fatalf("task %s waits where nothing runs: %q", h.Task, h.Why)
		}
		for _, g := range req.Pending {
			if waits && g.Tasks[0].ID == h.Task && o.MaxWait > 0 && req.Now-g.Arrival > o.MaxWait {
				t.Fatalf("task %s waits after %s, and may for %s", h.Task, req.Now-g.Arrival, o.MaxWait)
			}
		}
	}
}

// An untrained network is greedy-wait.
func TestPropertyUntrainedIsGreedyWait(t *testing.T) {
	net := untrained(t).Net
	rapid.Check(t, func(t *rapid.T) {
		w := placetest.DrawWorld(t, placetest.Kind{Single: true, Most: 5})
		p := New(net, newSpeeds(w.Scope), Options{Threshold: encode.Fixed(0.3)})
		rule, err := jobs.New("greedy-wait", jobs.Settings{Speeds: newSpeeds(w.Scope), Values: map[string]float64{"threshold": 0.3}})
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			w.Arrive(t)
			req := w.Request()
			ours, err := p.Place(req)
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := rule.Place(req)
			if err != nil {
				t.Fatal(err)
			}
			// Where nothing runs greedy-wait may wait, and harmony must not.
			if len(req.View.Running()) > 0 && !reflect.DeepEqual(ours.Bind, theirs.Bind) {
				t.Fatalf("untrained %+v, greedy-wait %+v", ours.Bind, theirs.Bind)
			}
			w.Apply(t, ours)
		}
	})
}

// Moves gain weighted progress, their cost included, over the same decision
// without them.
func TestPropertyMovesGain(t *testing.T) {
	net := trained(t)
	for _, many := range []int{manySites, 1} {
		t.Run(fmt.Sprintf("many=%d", many), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := placetest.DrawWorld(t, placetest.Kind{Single: true, Most: 4})
				moves := Moves{Fade: 0.3, Horizon: 600, Welcome: 0.2}
				moving := New(net, newSpeeds(w.Scope), Options{Migrate: time.Minute, Moves: moves})
				moving.mover.many = many
				for range 4 {
					w.Arrive(t)
					req := w.Request()
					with, err := moving.Place(req)
					if err != nil {
						t.Fatal(err)
					}
					without, err := New(net, newSpeeds(w.Scope), Options{}).Place(req)
					if err != nil {
						t.Fatal(err)
					}
					a, b := weighted(t, w.Scope, req, with, moves, 0.1), weighted(t, w.Scope, req, without, moves, 0.1)
					if a < b-1e-9 {
						t.Fatalf("with moves %g, without %g\n%+v\n%+v", a, b, with, without)
					}
					w.Apply(t, with)
				}
			})
		})
	}
}

// weighted is the sum of progress after a decision, weighted by age, less a
// share for each task that moves.
func weighted(t *rapid.T, scope history.Scope, req place.Request, d place.Decision, m Moves, cost float64) float64 {
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: req.View.Nodes(), Running: after(t, req, d)})
	if err != nil {
		t.Fatal(err)
	}
	b := jobs.NewBoard(newSpeeds(scope))
	b.Reset(place.Request{View: view, Now: req.Now})
	sum := 0.0
	for i, x := range b.Running() {
		r := view.Running()[i]
		v := b.Progress(b.GangOf(int(x)))
		if slices.ContainsFunc(req.View.Running(), func(o cluster.Running) bool { return o.ID == r.ID }) {
			v *= math.Pow(1+(req.Now-r.Started).Hours(), -m.Fade)
		}
		if slices.ContainsFunc(d.Move, func(o place.Move) bool { return o.Task == r.ID }) {
			v *= 1 - cost
		}
		sum += v
	}
	return sum
}
