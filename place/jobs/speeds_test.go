package jobs

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/placetest"
)

func (s *Speeds) of(class string, workloads ...string) Config {
	c := s.Empty(class)
	for _, w := range workloads {
		c = s.Next(c, s.Number(w))
	}
	return c
}

func TestSpeedsSilenceIsAFairShare(t *testing.T) {
	m := placetest.Model{Names: []string{"a"}, Silence: 1} // silent about all but single tasks
	s := NewSpeeds(m, Options{})
	for n, want := range map[int]float64{1: 1, 2: .5, 3: 1. / 3} {
		c := s.of("a", []string{"x", "y", "x"}[:n]...)
		if got := s.Performance(c, s.Number("x")); got != want {
			t.Errorf("%d tasks: performance %g, want %g", n, got, want)
		}
	}
	if got := NewSpeeds(nil, Options{}); got.Performance(got.of("a", "x", "y"), 0) != 1 {
		t.Error("without a model something interferes")
	}
}

func TestSpeedsPessimism(t *testing.T) {
	m := placetest.Known{Model: placetest.Model{Names: []string{"a"}}, List: placetest.Workloads(4)}
	plain, wary := NewSpeeds(m, Options{}), NewSpeeds(m, Options{Pessimism: 2})
	predicted := 0
	for _, v := range placetest.Workloads(4) {
		for _, w := range placetest.Workloads(4) {
			c := plain.of("a", v, w)
			e := m.Predict("a", history.Rate, []cluster.Colocation{plain.Colocation(c)})[0]
			at := 0
			if w > v {
				at = 1
			}
			want := e[at].Value
			if !e[at].Measured {
				predicted++
				want = max(0, want-2*e[at].Std)
				if got := plain.Std(c, plain.Number(w)); got != e[at].Std {
					t.Errorf("std %g, want %g", got, e[at].Std)
				}
			}
			if got := wary.Performance(wary.of("a", v, w), wary.Number(w)); got != want {
				t.Errorf("%s beside %s: %g, want %g", w, v, got, want)
			}
		}
	}
	if predicted == 0 {
		t.Error("nothing was predicted")
	}
}

func TestSpeedsMisfitsHoldForMore(t *testing.T) {
	s := NewSpeeds(nil, Options{Misfits: placetest.Clash{}})
	for _, c := range []struct {
		workloads string
		want      bool
	}{{"w01", true}, {"w01 w01", true}, {"w01 w02", false}, {"w00 w01 w03 w02", false}, {"w00 w01 w01", true}} {
		if got := s.Fits(s.of("a", strings.Fields(c.workloads)...)); got != c.want {
			t.Errorf("%s: fits %v, want %v", c.workloads, got, c.want)
		}
	}
}

func TestSpeedsNextAndPrev(t *testing.T) {
	s := NewSpeeds(nil, Options{})
	x, y := s.Number("x"), s.Number("y")
	c := s.of("a", "x", "y", "x")
	if s.Colocation(c).Key() != "x*2+y" || s.Tasks(c) != 3 || s.Count(c, x) != 2 || s.Count(c, 7) != 0 || s.Class(c) != "a" {
		t.Errorf("co-location %s of %d on %s", s.Colocation(c).Key(), s.Tasks(c), s.Class(c))
	}
	if s.Prev(s.Prev(c, x), y) != s.of("a", "x") || s.Prev(s.of("a", "x"), x) != s.Empty("a") || s.of("b") == s.of("a") {
		t.Error("the same co-location has two numbers, or two have one")
	}
	defer func() {
		if recover() == nil {
			t.Error("a task was taken from where there is none")
		}
	}()
	s.Prev(s.Empty("a"), x)
}

// seenAt is a view of jobs of the workloads on one node of two devices, and
// their progress.
func seenAt(t *testing.T, progress map[string]float64, running ...cluster.Running) place.Outcome {
	t.Helper()
	nodes := cluster.Nodes("slow", 2, 2, 0)
	for i := range nodes {
		for d := range nodes[i].Devices {
			nodes[i].Devices[d].Slots = 2
		}
	}
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes, Running: running})
	if err != nil {
		t.Fatal(err)
	}
	o := place.Outcome{View: view, Performance: map[cluster.TaskID]float64{}}
	for id, p := range progress {
		o.Performance[cluster.TaskID(id)] = p
	}
	return o
}

func on(job string, task string, workload string, node string, device int) cluster.Running {
	return cluster.Running{
		Task: cluster.Task{ID: cluster.TaskID(job + "/" + task), Workload: workload, Role: cluster.Worker, Devices: 1},
		Node: node, On: []int{device}, Group: job,
	}
}

func TestObserveOverridesTheModel(t *testing.T) {
	s := NewSpeeds(pairs{"a b": {.3, .3}}, Options{Scope: history.ScopeDevice, Alone: halves{}})
	performance := func(of string) float64 { return s.Performance(s.of("slow", "a", "b"), s.Number(of)) }
	if performance("a") != .3 {
		t.Fatal(performance("a"))
	}
	// Progress .4 on a class at half the pace: performance .8; then .6.
	view := []cluster.Running{on("j", "0", "a", "slow-0", 0), on("k", "0", "b", "slow-0", 0)}
	s.Observe(seenAt(t, map[string]float64{"j/0": .4, "k/0": .1}, view...))
	s.Observe(seenAt(t, map[string]float64{"j/0": .3}, view...))
	if got := performance("a"); math.Abs(got-.7) > 1e-12 {
		t.Errorf("a beside b: %g, want the mean .7", got)
	}
	if got := performance("b"); math.Abs(got-.2) > 1e-12 {
		t.Errorf("b beside a: %g, want .2", got)
	}
	if f := s.Fork(); f.Performance(f.of("slow", "a", "b"), f.Number("a")) != performance("a") {
		t.Error("a fork has not seen it")
	}
	s.limit = 0
	s.forget()
	if got := performance("a"); math.Abs(got-.7) > 1e-12 {
		t.Errorf("after forgetting the co-locations: %g, want .7", got)
	}
}

// A gang's progress is that of its slowest worker: whose it is can be told
// only where all that share do so with the same workload.
func TestObserveGangs(t *testing.T) {
	for _, c := range []struct {
		name    string
		running []cluster.Running
		want    float64
	}{
		{"one worker shares", []cluster.Running{
			on("j", "0", "a", "slow-0", 0), on("j", "1", "a", "slow-0", 1), on("k", "0", "b", "slow-0", 0),
		}, .5},
		{"both share alike", []cluster.Running{
			on("j", "0", "a", "slow-0", 0), on("j", "1", "a", "slow-0", 1), on("k", "0", "b", "slow-0", 0), on("l", "0", "b", "slow-0", 1),
		}, .5},
		{"they share with others", []cluster.Running{
			on("j", "0", "a", "slow-0", 0), on("j", "1", "a", "slow-0", 1), on("k", "0", "b", "slow-0", 0), on("l", "0", "c", "slow-0", 1),
		}, .3},
	} {
		s := NewSpeeds(pairs{"a b": {.3, .3}}, Options{Scope: history.ScopeDevice, Alone: halves{}})
		s.Observe(seenAt(t, map[string]float64{"j/0": .25, "j/1": .25}, c.running...))
		if got := s.Performance(s.of("slow", "a", "b"), s.Number("a")); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: a beside b is believed to reach %g, want %g", c.name, got, c.want)
		}
	}
}

func TestParams(t *testing.T) {
	ps, err := Params("greedy-wait", []string{"k80", "v100"}, true)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	speeds := NewSpeeds(nil, Options{})
	for _, p := range ps {
		keys = append(keys, p.Key)
		if !(p.Low <= p.Default && p.Default <= p.High) || p.Low >= p.High || p.Log && p.Low <= 0 || p.Meaning == "" {
			t.Errorf("%+v makes no sense", p)
		}
		for _, v := range []float64{p.Low, p.High} {
			if _, err := New("greedy-wait", Settings{Speeds: speeds, Migrate: time.Second, Values: map[string]float64{p.Key: v}}); err != nil {
				t.Error(err)
			}
		}
	}
	if got, want := strings.Join(keys, " "), "threshold.k80 threshold.v100 max-wait horizon"; got != want {
		t.Errorf("keys %s, want %s", got, want)
	}
	for _, name := range Names() {
		if _, err := Params(name, nil, false); err != nil {
			t.Error(err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	speeds := NewSpeeds(nil, Options{})
	for _, c := range []struct {
		name     string
		settings Settings
		want     string
	}{
		{"greedy", Settings{}, "needs Speeds"},
		{"linear", Settings{Speeds: speeds}, "of the kind linear"},
		{"spread", Settings{Speeds: speeds, Values: map[string]float64{"x": 1}}, `unknown parameter "x"; it has none`},
		{"greedy-wait", Settings{Speeds: speeds, Values: map[string]float64{"x": 1}}, `unknown parameter "x"; valid, with defaults: threshold=0.5`},
		{"greedy-wait", Settings{Speeds: speeds, Values: map[string]float64{"threshold": 7}}, "threshold=7 is not a number from -1 to 1.2"},
		{"greedy-wait", Settings{Speeds: speeds, Values: map[string]float64{"threshold.k80": math.NaN()}}, "threshold.k80=NaN is not"},
		{"greedy-wait", Settings{Speeds: speeds, Values: map[string]float64{"max-wait.k80": 100}}, "unknown parameter"},
		{"greedy", Settings{Speeds: speeds, Values: map[string]float64{"horizon": 100}}, "unknown parameter"},
		{"greedy", Settings{Speeds: speeds, Migrate: -1}, "negative"},
	} {
		if _, err := New(c.name, c.settings); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	if _, err := New("best", Settings{Speeds: speeds}); !errors.Is(err, ErrUnknown) {
		t.Errorf("error %v", err)
	}
	model, err := interference.Fit(interference.KindLinear, []history.Sample{
		{Colocation: cluster.Colocation{"a": 1, "b": 1}, Workload: "a", Metric: history.Rate, Value: 1, Alone: 2},
	}, interference.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New("linear", Settings{Speeds: NewSpeeds(model, Options{})}); err != nil {
		t.Error(err)
	}
}
