package plan_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/kubernetes/plugin/plan"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
)

// model knows two workloads that get on with each other and not with their own.
func model(t interface{ Fatal(...any) }, spread float64) interference.Model {
	var samples []history.Sample
	for red := range 4 {
		for blue := range 4 {
			on := cluster.Colocation{}
			if red > 0 {
				on["red"] = red
			}
			if blue > 0 {
				on["blue"] = blue
			}
			for w, n := range on {
				samples = append(samples, history.Sample{Colocation: on, Workload: w, Metric: history.Rate, Value: 1 / float64(n), Alone: 1, Spread: spread, Repeats: 2})
			}
		}
	}
	m, err := interference.Fit(interference.KindTable, samples, interference.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func policy(t interface{ Fatal(...any) }, m interference.Model) place.Policy {
	p, err := baseline.New("greedy", baseline.Options{Model: m})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func group(name string, gang bool, workload string, n int) plan.Group {
	g := plan.Group{Name: name, Gang: gang}
	for i := range n {
		g.Pods = append(g.Pods, plan.Pod{Task: cluster.Task{ID: cluster.TaskID(fmt.Sprintf("%s/%d", name, i)), Workload: workload}})
	}
	return g
}

// TestEveryPodIsAccountedFor: whatever the groups, rules and policies, each pod
// is placed, held or left to the scheduler; no node gets more than it admits,
// nor a pod that its filters refuse; gangs are whole; the same again.
func TestEveryPodIsAccountedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := model(t, 0)
		nodes := cluster.Nodes("", rapid.IntRange(1, 6).Draw(t, "nodes"), 0, rapid.IntRange(1, 4).Draw(t, "slots"))
		p := plan.Problem{Spec: cluster.Spec{Nodes: nodes}, Seed: 1}
		for i := range rapid.IntRange(0, 5).Draw(t, "groups") {
			g := group(fmt.Sprint("g", i), rapid.Bool().Draw(t, "gang"), rapid.SampledFrom([]string{"red", "blue"}).Draw(t, "workload"), rapid.IntRange(0, 5).Draw(t, "pods"))
			if rapid.Bool().Draw(t, "refused") {
				set := &plan.Allowed{Node: make([]bool, len(nodes))}
				for n := range nodes {
					set.Node[n] = rapid.Bool().Draw(t, "admits")
				}
				set.Name = fmt.Sprint(set.Node)
				if rapid.Bool().Draw(t, "prefers") {
					best := &plan.Allowed{Node: slices.Clone(set.Node), Else: set}
					best.Node[0] = false
					best.Name = fmt.Sprint(best.Node, set.Name)
					set = best
				}
				for i := range g.Pods {
					g.Pods[i].Allowed = set
				}
			}
			if rapid.Bool().Draw(t, "one") {
				for i := range g.Pods {
					g.Pods[i].OnePerNode = true
				}
			}
			p.Groups = append(p.Groups, g)
		}
		by := plan.Policies{Model: m, Services: policy(t, m), Jobs: policy(t, m)}
		got := plan.Make(by, p)
		on := map[string]int{}
		for _, g := range p.Groups {
			placed := 0
			for _, pod := range g.Pods {
				id := pod.Task.ID
				node, is := got.Node[id]
				_, held := got.Held[id]
				_, left := got.Fallback[id]
				if n := count(is, held, left); n != 1 {
					t.Fatalf("pod %s is in %d of placed, held, left", id, n)
				}
				if !is {
					continue
				}
				placed++
				on[node]++
				at := slices.IndexFunc(nodes, func(n cluster.Node) bool { return n.Name == node })
				if pod.Allowed != nil && !pod.Allowed.Node[at] && (pod.Allowed.Else == nil || !pod.Allowed.Else.Node[at]) {
					t.Fatalf("pod %s is on %s, which the filters refuse", id, node)
				}
			}
			if g.Gang && placed != 0 && placed != len(g.Pods) {
				t.Fatalf("gang %s: %d of %d pods placed", g.Name, placed, len(g.Pods))
			}
		}
		for node, n := range on {
			if n > nodes[0].Slots {
				t.Fatalf("%d pods on %s, which admits %d", n, node, nodes[0].Slots)
			}
		}
		by.Services, by.Jobs = policy(t, m), policy(t, m)
		if again := plan.Make(by, p); !maps.Equal(got.Node, again.Node) {
			t.Fatalf("the same problem gave two plans: %v, %v", got.Node, again.Node)
		}
	})
}

// TestLargerSetsAreForTheRest: pods take the nodes of the first set that have
// room, a gang the first set that has room for all of it.
func TestLargerSetsAreForTheRest(t *testing.T) {
	m := model(t, 0)
	all := &plan.Allowed{Name: "111", Node: []bool{true, true, true}}
	two := &plan.Allowed{Name: "011,111", Node: []bool{false, true, true}, Else: all}
	one := &plan.Allowed{Name: "001,011,111", Node: []bool{false, false, true}, Else: two}
	for _, c := range []struct {
		pods int
		gang bool
		want map[string]int
	}{
		{2, false, map[string]int{"node-2": 2}},
		{3, false, map[string]int{"node-2": 2, "node-1": 1}},
		{5, false, map[string]int{"node-2": 2, "node-1": 2, "node-0": 1}},
		{2, true, map[string]int{"node-2": 2}},
		{4, true, map[string]int{"node-2": 2, "node-1": 2}},
		{7, true, map[string]int{}},
	} {
		g := group("web", c.gang, "red", c.pods)
		for i := range g.Pods {
			g.Pods[i].Allowed = one
		}
		got := plan.Make(plan.Policies{Model: m, Services: policy(t, m)}, plan.Problem{Spec: cluster.Spec{Nodes: cluster.Nodes("", 3, 0, 2)}, Groups: []plan.Group{g}})
		on := map[string]int{}
		for _, node := range got.Node {
			on[node]++
		}
		if !maps.Equal(on, c.want) || len(got.Node)+len(got.Held) != c.pods || len(got.Fallback) > 0 {
			t.Errorf("%d pods, gang %v: on %v, held %v, left %v; want %v", c.pods, c.gang, on, got.Held, got.Fallback, c.want)
		}
	}
}

// TestWordsOfTheScheduler: what is said of a node that the scheduler refuses is
// what the scheduler said, whichever way a policy put it.
func TestWordsOfTheScheduler(t *testing.T) {
	m := model(t, 0)
	g := group("web", false, "red", 2)
	for i := range g.Pods {
		g.Pods[i].Allowed = &plan.Allowed{Name: "0", Node: []bool{false}, Why: []string{"node(s) had a taint"}}
	}
	p := plan.Problem{Spec: cluster.Spec{Nodes: cluster.Nodes("", 1, 0, 2)}, Groups: []plan.Group{g}}
	held := plan.Make(plan.Policies{Model: m, Services: policy(t, m)}, p).Held["web/1"]
	if held != "0 of 1 nodes fit; 1 of them as here: node node-0: node(s) had a taint" {
		t.Errorf("held: %s", held)
	}
	bad := does(func(r place.Request) (place.Decision, error) { return allOn(r, "node-0"), nil })
	if left := plan.Make(plan.Policies{Model: m, Services: bad}, p).Fallback["web/1"]; left.Code != plan.BadDecision || !strings.Contains(left.Words, "node node-0: node(s) had a taint") {
		t.Errorf("left: %v", left)
	}
}

func count(bs ...bool) int {
	n := 0
	for _, b := range bs {
		if b {
			n++
		}
	}
	return n
}

// does is a policy that does one thing.
type does func(place.Request) (place.Decision, error)

func (f does) Place(r place.Request) (place.Decision, error) { return f(r) }

func TestBadPoliciesLeavePodsToTheScheduler(t *testing.T) {
	for name, c := range map[string]struct {
		policy does
		code   plan.Code
	}{
		"panics":     {func(place.Request) (place.Decision, error) { panic("oh") }, plan.PolicyPanicked},
		"fails":      {func(place.Request) (place.Decision, error) { return place.Decision{}, errors.New("oh") }, plan.PolicyFailed},
		"is silent":  {func(place.Request) (place.Decision, error) { return place.Decision{}, nil }, plan.BadDecision},
		"full node":  {func(r place.Request) (place.Decision, error) { return allOn(r, "node-0"), nil }, plan.BadDecision},
		"wrong node": {func(r place.Request) (place.Decision, error) { return allOn(r, "moon"), nil }, plan.BadDecision},
		"binds twice": {func(r place.Request) (place.Decision, error) {
			d := allOn(r, "node-0")
			return place.Decision{Bind: append(d.Bind[:1:1], d.Bind[0])}, nil
		}, plan.BadDecision},
	} {
		t.Run(name, func(t *testing.T) {
			m := model(t, 0)
			got := plan.Make(plan.Policies{Model: m, Services: c.policy}, plan.Problem{
				Spec: cluster.Spec{Nodes: cluster.Nodes("", 2, 0, 2)}, Groups: []plan.Group{group("web", false, "red", 3)},
			})
			if len(got.Node) > 0 || len(got.Fallback) != 3 || got.Fallback["web/0"].Code != c.code || got.Fallback["web/0"].Words == "" {
				t.Errorf("plan %v, left to the scheduler %v; want all three, by %s", got.Node, got.Fallback, c.code)
			}
		})
	}
}

func allOn(r place.Request, node string) place.Decision {
	var d place.Decision
	for _, task := range r.Tasks() {
		d.Bind = append(d.Bind, place.Binding{Task: task.ID, Node: node})
	}
	return d
}

func TestAnUnsureModelIsNotTrusted(t *testing.T) {
	m := model(t, .4)
	p := plan.Problem{Spec: cluster.Spec{Nodes: cluster.Nodes("", 2, 0, 2)}, Groups: []plan.Group{group("job", true, "red", 3)}}
	if got := plan.Make(plan.Policies{Model: m, Services: policy(t, m)}, p); len(got.Node) != 3 {
		t.Fatalf("trusting always: %v, %v", got.Node, got.Fallback)
	}
	got := plan.Make(plan.Policies{Model: m, Services: policy(t, m), Unsure: .1}, p)
	if len(got.Node) != 0 || len(got.Fallback) != 3 || got.Fallback["job/2"].Code != plan.ModelUnsure {
		t.Errorf("a gang of which one pod is in doubt goes whole: %v, %v", got.Node, got.Fallback)
	}
}

// What nobody measured, and no model predicts, is no ground to plan on.
func TestOfWhatNothingIsKnown(t *testing.T) {
	m := model(t, 0) // up to 3 of each
	p := plan.Problem{Spec: cluster.Spec{Nodes: cluster.Nodes("", 1, 0, 8)}, Groups: []plan.Group{group("web", false, "red", 4)}}
	got := plan.Make(plan.Policies{Model: m, Services: does(func(r place.Request) (place.Decision, error) { return allOn(r, "node-0"), nil })}, p)
	if why := got.Fallback["web/3"]; len(got.Node) != 0 || why.Code != plan.ModelUnsure || !strings.Contains(why.Words, "red*4") {
		t.Errorf("placed %v, left %v; want all left, since nothing is known of red*4", got.Node, got.Fallback)
	}
}

func TestStale(t *testing.T) {
	m := model(t, 0)
	spec := cluster.Spec{
		Nodes:   cluster.Nodes("", 1, 0, 3),
		Running: []cluster.Running{{Task: cluster.Task{ID: "old", Workload: "blue"}, Node: "node-0"}},
	}
	got := plan.Make(plan.Policies{Model: m, Services: policy(t, m)}, plan.Problem{Spec: spec, Groups: []plan.Group{group("web", false, "red", 2)}})
	for _, c := range []struct {
		now   []cluster.TaskID
		stale bool
	}{{nil, false}, {[]cluster.TaskID{"old"}, false}, {[]cluster.TaskID{"old", "web/1"}, false}, {[]cluster.TaskID{"stranger"}, true}} {
		if why := got.Stale("node-0", c.now); (why != "") != c.stale || c.stale && !strings.Contains(why, "stranger") {
			t.Errorf("with %v there: %q", c.now, why)
		}
	}
}

// Example plans two groups that get on with each other.
func Example() {
	m := model(fatal{}, 0)
	greedy, _ := baseline.New("greedy", baseline.Options{Model: m})
	p := plan.Make(plan.Policies{Model: m, Services: greedy}, plan.Problem{
		Spec:   cluster.Spec{Nodes: cluster.Nodes("", 2, 0, 2)},
		Groups: []plan.Group{group("web", false, "red", 2), group("db", false, "blue", 2), group("tape", false, "green", 1)},
	})
	fmt.Println(p.Node["web/0"] != p.Node["web/1"], p.Node["db/0"] != p.Node["db/1"])
	fmt.Println(p.Held["tape/0"])
	// Output:
	// true true
	// 0 of 2 nodes fit; 2 of them as here: node node-0 has no free slot (all 2 are taken)
}

type fatal struct{}

func (fatal) Fatal(args ...any) { panic(fmt.Sprint(args...)) }
