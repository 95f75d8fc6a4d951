package metis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/cluster/clustertest"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/place/placetest"
)

// drawn lets rapid shrink the cluster.
type drawn struct{ *rapid.T }

func (d drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "n") }

var objectives = []place.Objective{
	{}, place.WorstPerformance, place.TailLatency, place.NodesUsed, {Mean: 1, Worst: 0.5, Nodes: 0.01},
}

func drawRequest(t *rapid.T) place.Request {
	spec, groups := clustertest.Random(drawn{t})
	view, err := cluster.NewSnapshot(spec)
	if err != nil {
		t.Fatal(err)
	}
	req := place.Request{View: view, Pending: groups, Objective: rapid.SampledFrom(objectives).Draw(t, "objective")}
	if rapid.Bool().Draw(t, "expected") {
		req.Expected = map[string]float64{"a": 1.5, "c": 0.25, "unheard of": 3}
	}
	return req
}

// ways are all in which a policy places.
var ways = []string{
	"search=off", "kicks=20:samples=3", "search=off:parts=2", "divide=flat", "divide=even:parts=2", "kicks=20", "divide=flat:search=on:kicks=20", "search=off:refresh=5",
}

func params(way string) map[string]string {
	out := map[string]string{}
	for _, p := range strings.Split(way, ":") {
		key, value, _ := strings.Cut(p, "=")
		out[key] = value
	}
	return out
}

// Every way holds to what all policies promise, whatever its networks say: the
// decision is valid, the same for the same seed, holds no task that a node
// takes, and explains itself.
func TestPropertyDecisions(t *testing.T) {
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			files := []*File{untrained(t), shaken(t, 1), shaken(t, 2)}
			rapid.Check(t, func(t *rapid.T) {
				req := drawRequest(t)
				m := placetest.Model{
					Names: rapid.SampledFrom([][]string{{"", "fast"}, {"other"}, {"fast"}}).Draw(t, "classes"), NoLatency: []string{"d"},
					Silence: rapid.SampledFrom([]uint64{0, 3, 1}).Draw(t, "silence"),
				}
				f := rapid.SampledFrom(files).Draw(t, "file")
				s := Settings{Model: m, Params: params(way), Explain: rapid.Bool().Draw(t, "explain"), Pessimism: rapid.SampledFrom([]float64{0, 1}).Draw(t, "pessimism")}
				decide := func(p place.Policy) place.Decision {
					req.Rand = rand.New(rand.NewPCG(7, 7))
					d, err := p.Place(req)
					if err != nil {
						t.Fatal(err)
					}
					return d
				}
				p, err := f.Policy(s)
				if err != nil {
					t.Fatal(err)
				}
				d := decide(p)
				if again := decide(p); !reflect.DeepEqual(d, again) {
					t.Fatalf("asked twice, it decided differently:\n%v\n%v", d, again)
				}
				if p, err = f.Policy(s); err != nil {
					t.Fatal(err)
				}
				if again := decide(p); !reflect.DeepEqual(d, again) {
					t.Fatalf("made anew, it decided differently:\n%v\n%v", d, again)
				}
				e, err := place.Evaluate(req, d, m)
				if err != nil {
					t.Fatal(err)
				}
				checkHolds(t, req, d, e.Placement)
				checkReasons(t, d, s.Explain)
			})
		})
	}
}

// checkHolds wants a reason for every hold, and that no node takes a held task
// that is not of a gang.
func checkHolds(t *rapid.T, req place.Request, d place.Decision, p *cluster.Placement) {
	gang := map[cluster.TaskID]bool{}
	kind := map[cluster.TaskID]int{}
	i := 0
	for _, g := range req.Pending {
		for _, task := range g.Tasks {
			gang[task.ID], kind[task.ID] = g.Gang, p.Kind(i)
			i++
		}
	}
	for _, h := range d.Hold {
		if h.Why == "" {
			t.Fatalf("task %s is held without a reason", h.Task)
		}
		for n := range req.View.Nodes() {
			if !gang[h.Task] && p.Check(kind[h.Task], n) == cluster.Fits {
				t.Fatalf("task %s is held (%s), but node %d takes it", h.Task, h.Why, n)
			}
		}
	}
}

func checkReasons(t *rapid.T, d place.Decision, explain bool) {
	if explain && len(d.Why) != len(d.Bind) {
		t.Fatalf("%d reasons for %d bindings", len(d.Why), len(d.Bind))
	}
	for id, why := range d.Why {
		if strings.TrimSpace(why.Words) == "" || strings.Contains(why.Words, "NaN") {
			t.Fatalf("%s: the words are %q", id, why.Words)
		}
		for name, v := range why.Scores {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("%s: score %s is %g", id, name, v)
			}
		}
	}
}

// Untrained networks go by greedy's rule: where no two co-locations are worth
// the same, they go where greedy goes, flat or by the hierarchy.
func TestPropertyUntrainedIsGreedy(t *testing.T) {
	f := untrained(t)
	f.Nets.Turn = nil
	for _, way := range []string{"divide=flat", "search=off:parts=2", "search=off:parts=3:refresh=5"} {
		t.Run(way, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				req := drawRequest(t)
				m := placetest.Model{Names: []string{"", "fast"}, Apart: true}
				p, err := f.Policy(Settings{Model: m, Params: params(way)})
				if err != nil {
					t.Fatal(err)
				}
				d, err := p.Place(req)
				if err != nil {
					t.Fatal(err)
				}
				want, err := baseline.Greedy{Model: m}.Place(req)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(d.Bind, want.Bind) {
					t.Fatalf("for %s:\n%v, greedy\n%v", req.Objective, d.Bind, want.Bind)
				}
			})
		})
	}
}

// Whose turn it is is a workload of which tasks are left and fit; untrained,
// one of those of which the largest share is left.
func TestPropertyTurns(t *testing.T) {
	files := []*File{untrained(t), shaken(t, 3)}
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		i := rapid.IntRange(0, len(files)-1).Draw(t, "file")
		p := New(files[i].Nets, placetest.Model{Names: []string{"", "fast"}}, Options{Parts: 2})
		c := newTurns(newChooser(p, req, baseline.NewBoard(p.trial(req))))
		left := make([]int, c.trial.Kinds())
		for i := range c.trial.Tasks() {
			left[c.trial.Kind(i)]++
		}
		for {
			k := c.Next(left)
			fits := func(kind int) bool {
				for n := range req.View.Nodes() {
					if left[kind] > 0 && c.trial.Check(kind, n) == cluster.Fits {
						return true
					}
				}
				return false
			}
			share := func(kind int) float64 { return float64(left[kind]) / c.all[kind] }
			for other := range left {
				if fits(other) && (k < 0 || i == 0 && share(other) > share(k)) {
					t.Fatalf("it is the turn of %d, while of %d a share of %v is left: %v of %v", k, other, share(other), left, c.all)
				}
			}
			if k < 0 {
				return
			}
			if !fits(k) {
				t.Fatalf("it is the turn of %d, which fits nowhere: %v", k, left)
			}
			c.Put(k, c.Choose(k))
			left[k]--
		}
	})
}

// TestManyTakeEvenTurns: of more kinds of tasks than training has, whatever the
// networks say, the largest share that is left goes first.
func TestManyTakeEvenTurns(t *testing.T) {
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: cluster.Nodes("", 12, 0, 8)})
	if err != nil {
		t.Fatal(err)
	}
	g := cluster.Group{Name: "batch"}
	for i := range 3 * (Many + 2) {
		g.Tasks = append(g.Tasks, cluster.Task{ID: cluster.TaskID(fmt.Sprint(i)), Workload: fmt.Sprintf("w%02d", i%(Many+2))})
	}
	p := New(shaken(t, 4).Nets, placetest.Model{}, Options{})
	req := place.Request{View: view, Pending: []cluster.Group{g}}
	c := newTurns(newChooser(p, req, baseline.NewBoard(p.trial(req))))
	left := slices.Repeat([]int{3}, Many+2)
	for i := range g.Tasks {
		k := c.Next(left)
		if want := i % (Many + 2); k != want {
			t.Fatalf("turn %d is that of kind %d, want %d", i, k, want)
		}
		c.Put(k, c.Choose(k))
		left[k]--
	}
	if k := c.Next(left); k != -1 {
		t.Errorf("nothing is left, and it is the turn of %d", k)
	}
}

// With a search after it, a pass does not end worse than by itself.
func TestPropertySearchOnlyHelps(t *testing.T) {
	f := shaken(t, 5)
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		req.Expected = nil
		m := placetest.Model{Names: []string{"", "fast"}}
		value := func(way string) (float64, int) {
			p, err := f.Policy(Settings{Model: m, Params: params(way)})
			if err != nil {
				t.Fatal(err)
			}
			req.Rand = rand.New(rand.NewPCG(7, 7))
			return placetest.Worth(t, p, req, m)
		}
		pass, held := value("search=off")
		search, heldToo := value("kicks=20")
		if held == heldToo && search < pass-1e-9 {
			t.Fatalf("one pass reaches %v, with a search %v", pass, search)
		}
		several, heldBy := value("kicks=20:samples=4")
		if held == heldBy && several < pass-1e-9 {
			t.Fatalf("one pass reaches %v, with a search from four %v", pass, several)
		}
	})
}

// What the hierarchy remembers is what it would find anew, and its counts of
// parts are those of a tree made from scratch.
func TestPropertyChampionsStand(t *testing.T) {
	f := shaken(t, 9)
	rapid.Check(t, func(t *rapid.T) {
		spec, groups := clustertest.Random(drawn{t})
		spec.Constraints.Spread, spec.Constraints.AntiAffinity = nil, nil
		view, err := cluster.NewSnapshot(spec)
		if err != nil {
			t.Fatal(err)
		}
		req := place.Request{View: view, Pending: groups, Objective: rapid.SampledFrom(objectives).Draw(t, "objective")}
		p := New(f.Nets, placetest.Model{Names: []string{"", "fast"}}, Options{Parts: 2, Refresh: 3})
		c := newChooser(p, req, baseline.NewBoard(p.trial(req)))
		if c.tree.parts == nil || c.trial.Kinds() == 0 {
			t.Skip("no tree, or no tasks")
		}
		left := make([]int, c.trial.Kinds())
		for i := range c.trial.Tasks() {
			left[c.trial.Kind(i)]++
		}
		type put struct{ kind, node int }
		var puts []put
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			if len(puts) > 0 && rapid.Bool().Draw(t, "take") {
				i := rapid.IntRange(0, len(puts)-1).Draw(t, "which")
				c.Take(puts[i].kind, puts[i].node)
				left[puts[i].kind]++
				puts = append(puts[:i], puts[i+1:]...)
			} else {
				k := rapid.IntRange(0, c.trial.Kinds()-1).Draw(t, "kind")
				n := c.Choose(k)
				if n < 0 || left[k] == 0 {
					continue
				}
				c.Put(k, n)
				left[k]--
				puts = append(puts, put{k, n})
			}
			standing := make([]champion, c.trial.Kinds())
			for k := range standing {
				standing[k] = c.tree.champion(0, k)
			}
			c.tree.forget()
			for k, was := range standing {
				if now := c.tree.champion(0, k); now.node != was.node || now.score != was.score {
					t.Fatalf("for kind %d it remembers %+v, anew it finds %+v", k, was, now)
				}
			}
			fresh := newTree(c, p.o.Parts)
			for i, want := range fresh.parts {
				got := c.tree.parts[i].Part
				if got.Nodes != want.Nodes || got.Open != want.Open || got.Tasks != want.Tasks ||
					math.Abs(got.Fill-want.Fill) > 1e-9 || math.Abs(got.Value-want.Value) > 1e-9 {
					t.Fatalf("part %d counts as %+v, anew as %+v", i, got, want.Part)
				}
			}
		}
	})
}

// What was asked before does not change how gains are rounded: workers of a
// training share out the episodes as they have time, and learn the same.
func TestPropertyMemoryLeavesNoTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, req := drawRequest(t), drawRequest(t)
		before.Objective, req.Objective = place.MeanPerformance, place.MeanPerformance
		m := placetest.Model{Names: []string{"", "fast"}}
		used, fresh := New(Nets{}, m, Options{}), New(Nets{}, m, Options{})
		used.trial(before)
		a, b := used.trial(req), fresh.trial(req)
		for k := range a.Kinds() {
			for n := range req.View.Nodes() {
				if x, y := a.Gain(k, n), b.Gain(k, n); x != y {
					t.Fatalf("kind %d gains %v on node %d after another request, %v without", k, x, n, y)
				}
			}
		}
	})
}

// TestBeyondTraining: of what training had nothing like, no network says which
// node. Where every task may have a node of its own, all is as greedy does it;
// of many workloads the network of the parts alone is asked.
func TestBeyondTraining(t *testing.T) {
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: cluster.Nodes("", 30, 0, 8)})
	if err != nil {
		t.Fatal(err)
	}
	request := func(tasks, workloads int) place.Request {
		g := cluster.Group{Name: "batch"}
		for i := range tasks {
			g.Tasks = append(g.Tasks, cluster.Task{ID: cluster.TaskID(fmt.Sprint(i)), Workload: fmt.Sprintf("w%02d", i%workloads)})
		}
		return place.Request{View: view, Pending: []cluster.Group{g}}
	}
	m := placetest.Model{Apart: true}
	value := func(req place.Request, node, part uint64) float64 {
		nets := shaken(t, node).Nets
		nets.Part = shaken(t, part).Nets.Part
		d, err := New(nets, m, Options{}).Place(req)
		if err != nil {
			t.Fatal(err)
		}
		v, err := place.Evaluate(req, d, m)
		if err != nil {
			t.Fatal(err)
		}
		return v.Value
	}
	familiar, crowded, sparse := request(120, Many), request(120, Many+1), request(int(Sparse*30)-1, 5)
	if value(familiar, 1, 1) == value(familiar, 2, 1) {
		t.Error("the networks of the nodes are not asked where training was alike")
	}
	if value(crowded, 1, 1) != value(crowded, 2, 1) {
		t.Error("they are asked about more workloads than training has")
	}
	if value(crowded, 1, 1) == value(crowded, 1, 2) {
		t.Error("of many workloads those of the parts are not asked")
	}
	worst := request(120, 5)
	worst.Objective = place.WorstPerformance
	plain, err := baseline.Greedy{Model: m}.Place(worst)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := place.Evaluate(worst, plain, m); err != nil || value(worst, 1, 1) != v.Value {
		t.Errorf("the worst performance: %g, greedy %g (%v)", value(worst, 1, 1), v.Value, err)
	}
	greedy, err := baseline.Greedy{Model: m}.Place(sparse)
	if err != nil {
		t.Fatal(err)
	}
	v, err := place.Evaluate(sparse, greedy, m)
	if err != nil {
		t.Fatal(err)
	}
	if got := value(sparse, 1, 1); got != value(sparse, 2, 2) || got < v.Value-0.02 {
		t.Errorf("where tasks are few: %g, greedy %g", got, v.Value)
	}
}
