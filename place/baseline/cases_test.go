package baseline_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
)

// rates is a model written out by hand: performance by co-location, then
// workload. A task alone performs at 1; all else is unknown.
type rates map[string]map[string]float64

func (rates) Kind() string              { return "rates" }
func (rates) Classes() []string         { return []string{""} }
func (rates) Workloads(string) []string { return nil }

func (r rates) Predict(_ string, metric history.Metric, cs []cluster.Colocation) [][]interference.Estimate {
	rows := make([][]interference.Estimate, len(cs))
	for i, c := range cs {
		for _, w := range c.Workloads() {
			v, ok := r[c.Key()][w]
			if c.Alone() {
				v, ok = 1, true
			}
			rows[i] = append(rows[i], interference.Estimate{Value: v, Known: ok && metric == history.Rate, Measured: ok})
		}
	}
	return rows
}

// request makes a request for one task after another, on the nodes.
func request(t *testing.T, spec cluster.Spec, workloads ...string) place.Request {
	t.Helper()
	view, err := cluster.NewSnapshot(spec)
	if err != nil {
		t.Fatal(err)
	}
	g := cluster.Group{Name: "g"}
	for i, w := range workloads {
		g.Tasks = append(g.Tasks, cluster.Task{ID: cluster.TaskID(fmt.Sprintf("%s/%d", w, i)), Workload: w})
	}
	return place.Request{View: view, Pending: []cluster.Group{g}}
}

// decide returns the co-locations by node, and the decision.
func decide(t *testing.T, name string, req place.Request, o baseline.Options) (string, place.Decision) {
	t.Helper()
	p, err := baseline.New(name, o)
	if err != nil {
		t.Fatal(err)
	}
	if name == "random" || name == "greedy-search" {
		req.Rand = rand.New(rand.NewPCG(1, 1))
	}
	d, err := p.Place(req)
	if err != nil {
		t.Fatal(err)
	}
	e, err := place.Evaluate(req, d, o.Model)
	if err != nil {
		t.Fatal(err)
	}
	var at []string
	for n := range req.View.Nodes() {
		at = append(at, e.Placement.Colocation(n).Key())
	}
	return strings.Join(at, " | "), d
}

func twoNodes(slots int) cluster.Spec { return cluster.Spec{Nodes: cluster.Nodes("", 2, 0, slots)} }

// TestDiffersFromGreedy has, for each policy, the smallest case in which it
// decides otherwise than greedy, with the reason.
func TestDiffersFromGreedy(t *testing.T) {
	// A cache next to its client makes both faster: greedy puts the two together.
	friends := rates{"cache+client": {"cache": 1.2, "client": 1.3}}
	// Two streams halve each other: greedy keeps them apart.
	foes := rates{"stream*2": {"stream": 0.5}}
	for _, c := range []struct {
		policy, why    string
		model          rates
		spec           cluster.Spec
		tasks          []string
		wanted, greedy string
	}{
		{
			policy: "spread", why: "it sees an emptier node, not that the two help each other",
			model: friends, spec: twoNodes(4), tasks: []string{"cache", "client"},
			wanted: "cache | client", greedy: "cache+client | ",
		},
		{
			policy: "binpack", why: "it sees a fuller node, not that the two harm each other",
			model: foes, spec: twoNodes(4), tasks: []string{"stream", "stream"},
			wanted: "stream*2 | ", greedy: "stream | stream",
		},
		{
			policy: "tetris", why: "what is free lines up with the demand on the empty node, whatever the two do to each other",
			model: friends, spec: twoNodes(4), tasks: []string{"cache", "client"},
			wanted: "cache | client", greedy: "cache+client | ",
		},
		{
			// Beside meek, rude causes .04 and meek loses .04, which both tolerate at a
			// QoS of .95. Greedy loses nothing on the empty node and takes that; paragon
			// takes the tightest match and keeps the empty node for less tolerant tasks.
			policy: "paragon", why: "within what is tolerated it packs tightly, for later tasks",
			model: rates{"meek+rude": {"meek": 0.96, "rude": 1}, "rude*2": {"rude": 0.96}, "meek*2": {"meek": 1}},
			spec:  twoNodes(4), tasks: []string{"meek", "rude"},
			wanted: "meek+rude | ", greedy: "meek | rude",
		},
		{
			// The nodes have one free slot each. b is as good on either node and takes
			// the first; a then has to go beside y, where it suffers. The search swaps.
			policy: "greedy-search", why: "it takes back what later tasks prove wrong",
			model: rates{
				"b+x": {"b": 0.9, "x": 1}, "b+y": {"b": 0.9, "y": 1},
				"a+x": {"a": 0.9, "x": 1}, "a+y": {"a": 0.2, "y": 1},
			},
			spec: cluster.Spec{
				Nodes: cluster.Nodes("", 2, 0, 2),
				Running: []cluster.Running{
					{Task: cluster.Task{ID: "x", Workload: "x"}, Node: "node-0"},
					{Task: cluster.Task{ID: "y", Workload: "y"}, Node: "node-1"},
				},
			},
			tasks:  []string{"b", "a"},
			wanted: "a+x | b+y", greedy: "b+x | a+y",
		},
	} {
		t.Run(c.policy, func(t *testing.T) {
			req := request(t, c.spec, c.tasks...)
			o := baseline.Options{Model: c.model}
			if got, _ := decide(t, "greedy", req, o); got != c.greedy {
				t.Errorf("greedy: %q, want %q", got, c.greedy)
			}
			if got, _ := decide(t, c.policy, req, o); got != c.wanted {
				t.Errorf("%s: %q, want %q, since %s", c.policy, got, c.wanted, c.why)
			}
		})
	}
}

// TestRandomDiffersFromGreedy: over some seeds, random puts foes together and
// apart, greedy only apart.
func TestRandomDiffersFromGreedy(t *testing.T) {
	foes := rates{"stream*2": {"stream": 0.5}}
	req := request(t, twoNodes(4), "stream", "stream")
	p, err := baseline.New("random", baseline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	together := 0
	for seed := range uint64(200) {
		req.Rand = rand.New(rand.NewPCG(seed, 0))
		d, err := p.Place(req)
		if err != nil {
			t.Fatal(err)
		}
		if d.Bind[0].Node == d.Bind[1].Node {
			together++
		}
	}
	if together < 60 || together > 140 {
		t.Errorf("together in %d of 200 draws, want about 100", together)
	}
	if got, _ := decide(t, "greedy", req, baseline.Options{Model: foes}); got != "stream | stream" {
		t.Errorf("greedy: %q", got)
	}
	req.Rand = nil
	if _, err := p.Place(req); err == nil {
		t.Error("random without a source of randomness: want an error")
	}
}

// TestTetrisAlignsDemands: a node with much memory suits a task that wants
// memory, though the other node is emptier of tasks.
func TestTetrisAlignsDemands(t *testing.T) {
	spec := cluster.Spec{
		Nodes: []cluster.Node{
			{Name: "cpu", Capacity: cluster.Resources{cluster.CPU: 16000, cluster.Memory: 16 << 30}},
			{Name: "half", Capacity: cluster.Resources{cluster.CPU: 16000, cluster.Memory: 16 << 30}},
		},
		Workloads: []cluster.Workload{
			{Name: "heap", Requests: cluster.Resources{cluster.CPU: 100, cluster.Memory: 4 << 30}},
			{Name: "spin", Requests: cluster.Resources{cluster.CPU: 8000, cluster.Memory: 1 << 20}},
			{Name: "hold", Requests: cluster.Resources{cluster.CPU: 100, cluster.Memory: 8 << 30}},
		},
		Running: []cluster.Running{
			{Task: cluster.Task{ID: "1", Workload: "hold"}, Node: "cpu"},
			{Task: cluster.Task{ID: "2", Workload: "spin"}, Node: "half"},
		},
	}
	got, _ := decide(t, "tetris", request(t, spec, "heap", "spin"), baseline.Options{Model: rates{}})
	if want := "hold+spin | heap+spin"; got != want {
		t.Errorf("tetris: %q, want %q", got, want)
	}
}

// TestParagonClassifies checks c and t through what they decide: the tolerant
// task goes to the rude one, the sensitive one does not.
func TestParagonClassifies(t *testing.T) {
	model := rates{
		"rude+tough": {"rude": 1, "tough": 0.99}, "frail+rude": {"rude": 1, "frail": 0.5},
		"frail+tough": {"frail": 1, "tough": 1}, "frail*2": {"frail": 1}, "rude*2": {"rude": 1}, "tough*2": {"tough": 1},
	}
	for task, want := range map[string]string{"tough": "rude+tough | ", "frail": "rude | frail"} {
		got, d := decide(t, "paragon", request(t, twoNodes(4), "rude", task), baseline.Options{Model: model, Explain: true})
		if got != want {
			t.Errorf("%s: %q, want %q (%v)", task, got, want, d.Why)
		}
	}
}

// TestWorstObjective: greedy guards the worst performance where asked to, and
// the mean otherwise.
func TestWorstObjective(t *testing.T) {
	// Beside x the mean gains more, but y falls low.
	model := rates{"a+x": {"a": 1.5, "x": 0.3}, "a+y": {"a": 0.8, "y": 0.8}}
	spec := cluster.Spec{
		Nodes: cluster.Nodes("", 2, 0, 2),
		Running: []cluster.Running{
			{Task: cluster.Task{ID: "x", Workload: "x"}, Node: "node-0"},
			{Task: cluster.Task{ID: "y", Workload: "y"}, Node: "node-1"},
		},
	}
	for _, name := range []string{"greedy", "greedy-search"} {
		req := request(t, spec, "a")
		if got, _ := decide(t, name, req, baseline.Options{Model: model}); got != "a+x | y" {
			t.Errorf("%s for the mean: %q", name, got)
		}
		req.Objective = place.WorstPerformance
		if got, _ := decide(t, name, req, baseline.Options{Model: model}); got != "x | a+y" {
			t.Errorf("%s for the worst: %q", name, got)
		}
	}
}

// TestSilenceComesLast: a co-location that the model knows nothing of is
// chosen only where nothing else fits.
func TestSilenceComesLast(t *testing.T) {
	model := rates{"a+y": {"a": 0.1, "y": 0.1}}
	spec := cluster.Spec{
		Nodes: cluster.Nodes("", 2, 0, 2),
		Running: []cluster.Running{
			{Task: cluster.Task{ID: "x", Workload: "x"}, Node: "node-0"},
			{Task: cluster.Task{ID: "y", Workload: "y"}, Node: "node-1"},
		},
	}
	for _, name := range []string{"greedy", "greedy-search"} {
		got, d := decide(t, name, request(t, spec, "a"), baseline.Options{Model: model, Explain: true})
		if got != "x | a+y" {
			t.Errorf("%s, one task: %q", name, got)
		}
		// What nobody knows is no next best.
		if why := d.Why["a/0"]; strings.Contains(why.Words, "Inf") || len(why.Scores) > 1 {
			t.Errorf("%s: %v", name, why)
		}
		if got, d := decide(t, name, request(t, spec, "a", "a"), baseline.Options{Model: model, Explain: true}); got != "a+x | a+y" {
			t.Errorf("%s, two tasks: %q %v", name, got, d)
		}
	}
}

// TestSpreadCountsInWords: one task is a task.
func TestSpreadCountsInWords(t *testing.T) {
	spec := twoNodes(2)
	spec.Running = []cluster.Running{
		{Task: cluster.Task{ID: "x", Workload: "x"}, Node: "node-0"},
		{Task: cluster.Task{ID: "y", Workload: "y"}, Node: "node-1"},
	}
	_, d := decide(t, "spread", request(t, spec, "a"), baseline.Options{Model: rates{}, Explain: true})
	if words := d.Why["a/0"].Words; !strings.HasSuffix(words, ": it runs 1 task, 0 of them a") {
		t.Error(words)
	}
}

// TestGangFreesItsRoom: a gang that does not fit whole leaves its room to the
// task after it, and says how much of it would fit now.
func TestGangFreesItsRoom(t *testing.T) {
	for _, name := range baseline.Names() {
		req := request(t, cluster.Spec{Nodes: cluster.Nodes("", 1, 0, 2)}, "a")
		gang := cluster.Group{Name: "gang", Gang: true, Tasks: []cluster.Task{{ID: "1", Workload: "a"}, {ID: "2", Workload: "a"}, {ID: "3", Workload: "a"}}}
		req.Pending = append([]cluster.Group{gang}, req.Pending...)
		got, d := decide(t, name, req, baseline.Options{Model: rates{"a*2": {"a": 0.9}}})
		if got != "a" || len(d.Hold) != 3 || d.Bind[0].Task != "a/0" {
			t.Errorf("%s: %q, %v", name, got, d)
		}
		if want := "1 of 3 tasks of gang gang fit"; !strings.HasPrefix(d.Hold[0].Why, want) {
			t.Errorf("%s: hold %q, want %q first", name, d.Hold[0].Why, want)
		}
	}
}

// TestSearchStops: a search whose caller says stop at once is greedy's
// placement, and one without budget too.
func TestSearchStops(t *testing.T) {
	model := rates{
		"b+x": {"b": 0.9, "x": 1}, "b+y": {"b": 0.9, "y": 1}, "a+x": {"a": 0.9, "x": 1}, "a+y": {"a": 0.2, "y": 1},
	}
	spec := cluster.Spec{
		Nodes: cluster.Nodes("", 2, 0, 2),
		Running: []cluster.Running{
			{Task: cluster.Task{ID: "x", Workload: "x"}, Node: "node-0"},
			{Task: cluster.Task{ID: "y", Workload: "y"}, Node: "node-1"},
		},
	}
	req := request(t, spec, "b", "a")
	if got, _ := decide(t, "greedy-search", req, baseline.Options{Model: model, Params: map[string]string{"evals": "0"}}); got != "b+x | a+y" {
		t.Errorf("without budget: %q", got)
	}
	req.Stop = func() bool { return true }
	if got, _ := decide(t, "greedy-search", req, baseline.Options{Model: model}); got != "b+x | a+y" {
		t.Errorf("stopped: %q", got)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		o      baseline.Options
		wanted string
	}{
		{"medea", baseline.Options{}, `unknown policy "medea": none of spread, binpack`},
		{"greedy", baseline.Options{}, "policy greedy: needs a model"},
		{"binpack", baseline.Options{Params: map[string]string{"x": "1"}}, `policy binpack: unknown parameter "x"; it has none`},
		{"greedy-search", baseline.Options{Model: rates{}, Params: map[string]string{"eval": "1"}}, `unknown parameter "eval"; valid, with defaults: evals=`},
		{"greedy-search", baseline.Options{Model: rates{}, Params: map[string]string{"kicks": "-1"}}, `parameter kicks="-1" is not a whole number`},
		{"spread", baseline.Options{Params: map[string]string{"ties": "last"}}, `parameter ties="last" is none of random, first`},
		{"paragon", baseline.Options{Model: rates{}, Params: map[string]string{"qos": "NaN"}}, `parameter qos="NaN" is not a number from 0 to 1`},
	} {
		_, err := baseline.New(c.name, c.o)
		if err == nil || !strings.Contains(err.Error(), c.wanted) {
			t.Errorf("New(%s, %v): %v, want %q", c.name, c.o.Params, err, c.wanted)
		}
	}
}
