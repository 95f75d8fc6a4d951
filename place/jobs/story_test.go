package jobs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/placetest"
)

// pairs is a model from a table of both performances by pair, "a b": .5 .4;
// pairs that are not there do not interfere.
type pairs map[string][2]float64

func (pairs) Kind() string              { return interference.KindTable }
func (pairs) Classes() []string         { return []string{"fast", "slow"} }
func (pairs) Workloads(string) []string { return []string{"a", "b", "c", "d"} }
func (p pairs) Predict(_ string, _ history.Metric, cs []cluster.Colocation) [][]interference.Estimate {
	rows := make([][]interference.Estimate, len(cs))
	for i, c := range cs {
		names := c.Workloads()
		both, ok := p[names[0]+" "+names[len(names)-1]]
		if !ok {
			both = [2]float64{1, 1}
		}
		for j := range names {
			rows[i] = append(rows[i], interference.Estimate{Value: both[j], Known: true, Measured: true})
		}
	}
	return rows
}

// halves is an Alone: the class slow goes at half the pace; c gains nothing
// from the class fast.
type halves struct{}

func (halves) Progress(class, workload string, workers int, span cluster.Span, _ []string) (float64, bool) {
	p := 1.0
	if class == "slow" && workload != "c" {
		p = .5
	}
	if workers > 1 && span == cluster.SpanApart {
		p *= .6
	}
	return p, true
}

// story is a cluster written down: "fast:2 slow:1" are nodes with so many
// devices of two slots; "a@0.1" runs a on device 1 of node 0.
func story(t *testing.T, nodes, running string, pending ...string) place.Request {
	t.Helper()
	var spec cluster.Spec
	for i, n := range strings.Fields(nodes) {
		class, devices, _ := strings.Cut(n, ":")
		node := cluster.Node{Name: fmt.Sprintf("n%d", i), Class: class}
		for d := range int(devices[0] - '0') {
			node.Devices = append(node.Devices, cluster.Device{Name: fmt.Sprint(d), Slots: 2})
		}
		spec.Nodes = append(spec.Nodes, node)
	}
	for i, r := range strings.Fields(running) {
		workload, at, _ := strings.Cut(r, "@")
		g := placetest.Gang(fmt.Sprintf("r%d", i), 1, workload)
		spec.Running = append(spec.Running, cluster.Running{
			Task: g.Tasks[0], Node: "n" + at[:1], On: []int{int(at[2] - '0')}, Group: g.Name, Movable: true,
		})
	}
	view, err := cluster.NewSnapshot(spec)
	if err != nil {
		t.Fatal(err)
	}
	req := place.Request{View: view, Now: time.Hour}
	for i, p := range pending { // "a" or "a*2": workers
		workload, n, many := strings.Cut(p, "*")
		workers := 1
		if many {
			workers = int(n[0] - '0')
		}
		g := placetest.Gang(fmt.Sprintf("q%d", i), workers, workload)
		g.Arrival = time.Hour - time.Duration(len(pending)-i)*time.Minute
		req.Pending = append(req.Pending, g)
	}
	return req
}

// told is a decision as the stories tell it: "q0/0@1.0" for bound, "q0/0?" for
// held, "r0/0>1.0" for moved.
func told(d place.Decision) string {
	var out []string
	for _, b := range d.Bind {
		out = append(out, fmt.Sprintf("%s@%s.%d", b.Task, b.Node[1:], b.Devices[0]))
	}
	for _, h := range d.Hold {
		out = append(out, string(h.Task)+"?")
	}
	for _, m := range d.Move {
		out = append(out, fmt.Sprintf("%s>%s.%d", m.Task, m.To[1:], m.Devices[0]))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func decide(t *testing.T, name string, values map[string]float64, migrate time.Duration, model interference.Model, req place.Request) place.Decision {
	t.Helper()
	speeds := NewSpeeds(model, Options{Scope: history.ScopeDevice, Alone: halves{}, Misfits: never{}})
	p, err := New(name, Settings{Speeds: speeds, Values: values, Migrate: migrate, Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	d, err := p.Place(req)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range d.Bind {
		if d.Why[b.Task].Words == "" {
			t.Errorf("%s: %s is bound without a reason in words", name, b.Task)
		}
	}
	return d
}

// never is a Misfits: d fits beside nobody.
type never struct{}

func (never) Has(_, key string) bool { return strings.Contains(key, "d") }

func TestStories(t *testing.T) {
	bad := pairs{"a b": {.3, .3}, "a a": {.4, .4}, "a c": {.9, .9}, "b c": {.5, .9}, "b b": {.8, .8}}
	wait := map[string]float64{"threshold": .5}
	for _, c := range []struct {
		name, policy   string
		values         map[string]float64
		migrate        time.Duration
		nodes, running string
		pending        []string
		want           string
	}{
		{"the empty device", "spread", nil, 0, "fast:2 fast:1", "a@0.0", []string{"b"}, "q0/0@1.0"},
		{"shares when all have one", "spread", nil, 0, "fast:1 fast:1", "a@0.0 c@1.0", []string{"b"}, "q0/0@0.0"},
		{"shares first", "binpack", nil, 0, "fast:2", "a@0.1", []string{"b"}, "q0/0@0.1"},
		{"does not fit there", "binpack", nil, 0, "fast:2", "a@0.1", []string{"d"}, "q0/0@0.0"},
		{"the fullest node, its emptiest device", "consolidate", nil, 0, "fast:2 fast:2", "a@1.0", []string{"b"}, "q0/0@1.1"},
		{"a full node is passed over", "consolidate", nil, 0, "fast:1 fast:2", "a@0.0 a@0.0", []string{"b"}, "q0/0@1.0"},
		{"a gang apart on few nodes", "consolidate", nil, 0, "fast:1 fast:1 fast:1", "c@0.0", []string{"a*3"}, "q0/0@1.0 q0/1@1.0 q0/2@2.0"},
		{"a gang that fits in part", "consolidate", nil, 0, "fast:1 fast:1", "a@0.0", []string{"d*2", "c"}, "q0/0? q0/1? q1/0@0.0"},
		{"fits nowhere", "spread", nil, 0, "fast:1", "a@0.0", []string{"d"}, "q0/0?"},
		{"where most is free", "tetris", nil, 0, "fast:2 fast:2", "a@0.0 a@0.1 a@1.0", []string{"b"}, "q0/0@1.1"},
		{"the fast class first", "fastest", nil, 0, "slow:1 fast:1", "", []string{"a", "a", "a"}, "q0/0@1.0 q1/0@1.0 q2/0@0.0"},
		{"no class is faster for c", "fastest", nil, 0, "slow:1 fast:1", "", []string{"c"}, "q0/0@0.0"},
		{"a shared fast device before a slow one", "fastest", nil, 0, "slow:1 fast:1", "a@1.0", []string{"b"}, "q0/0@1.0"},
		{"the better neighbour", "greedy", nil, 0, "fast:1 fast:1", "b@0.0 c@1.0", []string{"a"}, "q0/0@1.0"},
		{"a good neighbour before a slow device", "greedy", nil, 0, "slow:1 fast:1", "c@1.0", []string{"a"}, "q0/0@1.0"},
		{"a slow device before a bad neighbour", "greedy", nil, 0, "slow:1 fast:1", "b@1.0", []string{"a"}, "q0/0@0.0"},
		{"places what only loses", "greedy", nil, 0, "fast:1", "b@0.0", []string{"a"}, "q0/0@0.0"},
		{"waits instead", "greedy-wait", wait, 0, "fast:1", "b@0.0", []string{"a"}, "q0/0?"},
		{
			"a threshold for each class", "greedy-wait",
			map[string]float64{"threshold.fast": .5, "threshold.slow": .6},
			0,
			"slow:1 fast:1", "b@1.0",
			[]string{"a"},
			"q0/0?",
		},
		{
			"but not for ever", "greedy-wait",
			map[string]float64{"threshold": .5, "max-wait": 90},
			0,
			"fast:1", "b@0.0",
			[]string{"a", "a"},
			"q0/0@0.0 q1/0?",
		},
		{"company that came since", "greedy-wait", wait, 0, "fast:2", "b@0.0", []string{"a", "a", "c", "a"}, "q0/0@0.1 q1/0? q2/0@0.1 q3/0?"},
		{"one behind is not held up", "greedy-wait", wait, 0, "fast:1", "b@0.0", []string{"a", "b"}, "q0/0? q1/0@0.0"},
		{"in order, c takes the place of a", "greedy-wait", wait, 0, "fast:1 fast:1", "b@0.0 a@1.0", []string{"c", "b"}, "q0/0@1.0 q1/0@0.0"},
		{"both by one assignment", "matching", wait, 0, "fast:1 fast:1", "b@0.0 a@1.0", []string{"c", "b"}, "q0/0@1.0 q1/0@0.0"},
		{"greedy spoils it", "greedy-wait", map[string]float64{"threshold": .3}, 0, "fast:1 fast:1", "b@0.0 a@1.0", []string{"b", "c"}, "q0/0@0.0 q1/0@1.0"},
		{"a gang on one node", "greedy", nil, 0, "fast:1 fast:2", "", []string{"a*2"}, "q0/0@1.0 q0/1@1.1"},
		{"a gang whole or not", "spread", nil, 0, "fast:1", "a@0.0", []string{"a*2", "c"}, "q0/0? q0/1? q1/0@0.0"},
		{"a gang apart loses too much", "greedy-wait", map[string]float64{"threshold": .7}, 0, "fast:1 fast:1", "", []string{"a*2"}, "q0/0? q0/1?"},
		{"runs where it may", "greedy", nil, time.Minute, "fast:1 fast:1", "a@0.0 b@0.0", nil, "r0/0>1.0"},
		{"stays where it is well", "greedy", nil, time.Minute, "fast:1 fast:1", "c@0.0 a@0.0", []string{"b"}, "q0/0@1.0"},
		{"trades neighbours", "greedy", nil, time.Minute, "fast:1 fast:1", "a@0.0 b@0.0 b@1.0 c@1.0", nil, "r0/0>1.0 r2/0>0.0"},
		{
			"not for so little time", "greedy",
			map[string]float64{"horizon": 60},
			10 * time.Minute,
			"fast:1 fast:1", "a@0.0 b@0.0", nil, "",
		},
	} {
		t.Run(c.policy+"/"+c.name, func(t *testing.T) {
			d := decide(t, c.policy, c.values, c.migrate, bad, story(t, c.nodes, c.running, c.pending...))
			if got := told(d); got != c.want {
				t.Errorf("got %q, want %q\n%+v", got, c.want, d)
			}
		})
	}
}

// Where greedy gives the first in the queue the neighbour that the second
// needs, matching sees both.
func TestMatchingBeatsGreedy(t *testing.T) {
	model := pairs{"a c": {.9, .9}, "a d": {.85, .85}, "b c": {.8, .8}, "b d": {.1, .1}}
	req := story(t, "fast:1 fast:1", "c@0.0 d@1.0", "a", "b")
	speeds := func() *Speeds { return NewSpeeds(model, Options{Scope: history.ScopeDevice}) }
	sum := map[string]float64{}
	for _, name := range []string{"greedy-wait", "matching"} {
		s := speeds()
		p, err := New(name, Settings{Speeds: s, Values: map[string]float64{"threshold": -1}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Place(req); err != nil {
			t.Fatal(err)
		}
		sum[name] = p.(*policy).board.Total()
	}
	if want := .85 + .85 + .8 + .8; sum["matching"] < want-1e-9 || sum["greedy-wait"] > want-.5 {
		t.Errorf("sums of progress %v, want %g for matching and less for greedy-wait", sum, want)
	}
}

// Node 0 is the fullest that takes both of a gang, though b is a bad neighbour
// there: greedy flees to node 1, and binpack, which looks at one task at a
// time, tears the gang apart for the fullest devices.
func TestConsolidateKeepsGangsTogether(t *testing.T) {
	bad := pairs{"a b": {.3, .3}, "a a": {.4, .4}}
	for policy, want := range map[string]string{
		"consolidate": "q0/0@0.1 q0/1@0.0",
		"greedy":      "q0/0@1.0 q0/1@1.1",
		"binpack":     "q0/0@2.0 q0/1@0.0",
	} {
		req := story(t, "fast:2 fast:2 fast:1", "b@0.0 c@2.0", "a*2")
		if got := told(decide(t, policy, nil, 0, bad, req)); got != want {
			t.Errorf("%s: got %q, want %q", policy, got, want)
		}
	}
}

func TestReasonsInWords(t *testing.T) {
	bad := pairs{"a b": {.3, .3}}
	for _, c := range []struct {
		policy, nodes, running string
		pending                []string
		want                   string
	}{
		{"spread", "fast:1", "a@0.0 a@0.0", []string{"a"}, "asks for 1 device slots; 0 are free in all"},
		{"spread", "fast:1 fast:1", "a@0.0 a@0.0 a@1.0", []string{"d"}, "0 of 2 devices fit; on 1 of them: no device slot is free"},
		{"spread", "fast:2", "a@0.0 a@0.1", []string{"d"}, "0 of 2 devices fit; on 2 of them: d does not fit together with what runs there"},
		{"spread", "fast:1", "", []string{"d*2"}, "1 of 2 tasks of gang q0 fit, and gangs are placed whole: 0 of 1 devices fit; on 1 of them: d does not fit together with what runs there"},
		{"greedy-wait", "fast:1", "b@0.0", []string{"a"}, "would gain too little now, so it waits for a better place"},
		{"matching", "fast:1", "b@0.0", []string{"a"}, "would gain too little now, so it waits for a better place"},
	} {
		d := decide(t, c.policy, nil, 0, bad, story(t, c.nodes, c.running, c.pending...))
		if len(d.Hold) == 0 || d.Hold[0].Why != c.want {
			t.Errorf("%s: got %+v, want %q", c.policy, d.Hold, c.want)
		}
	}
}
