package compare_test

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
	"github.com/cotenant/cotenant/sim/contention"
)

var needs = map[string]float64{"tiny": 0.2, "small": 0.4, "middle": 0.6, "large": 0.9}

func world(t *testing.T) *compare.World {
	t.Helper()
	samples := append(table("v100", 10, needs), table("k80", 4, needs)...)
	w, err := compare.Measured(samples, slices.Concat(cluster.Nodes("v100", 4, 1, 0), cluster.Nodes("k80", 2, 1, 0)), 2)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func specs(t *testing.T, texts ...string) []compare.Spec {
	t.Helper()
	var out []compare.Spec
	for _, text := range texts {
		s, err := compare.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

func setting(t *testing.T, w *compare.World, texts ...string) compare.Setting {
	t.Helper()
	return compare.Setting{
		World: w, Specs: specs(t, texts...), Seeds: []uint64{3, 4},
		Jobs:    func(seed uint64) ([]sim.Job, error) { return w.Generate(compare.Load{Jobs: 80, Load: 1.1}, seed) },
		Options: sim.Config{Backfill: true},
		Belief:  compare.Belief{Observed: 0.5, Kind: interference.KindLinear},
	}
}

func run(t *testing.T, s *compare.Setting) []compare.Outcome {
	t.Helper()
	outcomes, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outcomes {
		if o.Err != nil {
			t.Fatalf("%s, seed %d: %v", o.Spec.Text, o.Seed, o.Err)
		}
	}
	return outcomes
}

// A policy that believes the truth, in the world that it believes, does what it
// does in truth: the learned world differs from the true one by beliefs alone.
func TestTheLearnedWorldOfTheTruthIsTheTruth(t *testing.T) {
	s := setting(t, world(t), "spread", "greedy", "greedy-wait")
	s.Belief.Observed = 1
	want := run(t, &s)
	s.Learned = true
	before := s.World.Calls()
	got := run(t, &s)
	if n := s.World.Calls() - before; n != 0 {
		t.Errorf("the truth was asked %d times", n)
	}
	for i := range want {
		if a, b := want[i].Result.MeanJCT, got[i].Result.MeanJCT; math.Abs(a-b) > 1e-9*a {
			t.Errorf("%s, seed %d: %g in truth, %g as learned", want[i].Spec.Text, want[i].Seed, a, b)
		}
	}
}

func TestOnlyTheRunsAndTruthPoliciesAskTheTruth(t *testing.T) {
	w := world(t)
	s := setting(t, w, "greedy")
	s.Learned = true
	run(t, &s)
	if w.Calls() != 0 {
		t.Errorf("learning asked the truth %d times", w.Calls())
	}
	s.Specs = specs(t, "greedy:truth")
	run(t, &s)
	if w.Calls() == 0 {
		t.Error("a policy of the truth was tried elsewhere than in truth")
	}
}

// Results do not depend on the order in which runs happen.
func TestRunsDoNotDependOnEachOther(t *testing.T) {
	s := setting(t, world(t), "spread", "greedy", "greedy-wait", "linear", "matching")
	s.Options.Observe = true
	text := func() string {
		data, err := json.Marshal(run(t, &s))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	want := text()
	s.Parallel = func(n int, f func(int)) {
		var wait sync.WaitGroup
		for i := range n {
			wait.Go(func() { f(n - 1 - i) })
		}
		wait.Wait()
	}
	if got := text(); got != want {
		t.Error("parallel runs give other results")
	}
}

// Half of the pairs are shown, and every task alone; what does not fit is
// known whatever is shown.
func TestBeliefShowsAShare(t *testing.T) {
	w := world(t)
	seen, hidden, err := w.Split(compare.Belief{Observed: 0.5, Seed: 9})
	if err != nil {
		t.Fatal(err)
	}
	pairs := func(list []string) int { return len(slices.Compact(slices.Sorted(slices.Values(list)))) }
	var a, b []string
	for _, s := range seen {
		if !s.Colocation.Alone() {
			a = append(a, s.Class+s.Colocation.Key())
		}
	}
	for _, s := range hidden {
		if s.Colocation.Alone() {
			t.Errorf("%s alone is hidden", s.Workload)
		}
		b = append(b, s.Class+s.Colocation.Key())
	}
	if pairs(a) != 10 || pairs(b) != 10 {
		t.Errorf("%d pairs are shown and %d hidden; want half of 20", pairs(a), pairs(b))
	}
	if _, _, err := w.Split(compare.Belief{Observed: 1.5}); err == nil {
		t.Error("a share of 1.5 is taken")
	}
}

// Pairs that nobody measured are never tried.
func TestWhatIsNotMeasuredIsNotTried(t *testing.T) {
	samples := slices.DeleteFunc(table("v100", 10, needs), func(s history.Sample) bool { return s.Colocation.Key() == "large+tiny" })
	w, err := compare.Measured(samples, cluster.Nodes("v100", 2, 1, 0), 2)
	if err != nil {
		t.Fatal(err)
	}
	if w.Unmeasured != 1 {
		t.Errorf("%d pairs are unmeasured; want 1", w.Unmeasured)
	}
	s := setting(t, w, "spread", "binpack", "greedy", "greedy-wait")
	s.Options.Watch = nil
	s.Hook = func(_ compare.Spec, _ uint64, c *sim.Config) {
		var beside sim.BesideRecord
		c.Watch = func(x sim.Stretch) {
			beside.Watch(x)
			for _, p := range beside.Pairs() {
				if p.A == "large" && p.B == "tiny" {
					t.Errorf("large beside tiny")
				}
			}
		}
	}
	run(t, &s)
}

func TestFromTrace(t *testing.T) {
	w := world(t)
	job := func(name, workload string, workers int, steps, seconds float64) formats.TraceJob {
		return formats.TraceJob{Name: name, Workload: workload, Workers: workers, Devices: 1, Steps: steps, Seconds: seconds, Weight: 1}
	}
	list := []formats.TraceJob{
		job("a", "tiny", 1, 1000, 0), job("b", "tiny", 2, 1000, 0), job("c", "nobody", 1, 1000, 0), job("a", "tiny", 1, 1, 0), job("d", "small", 1, 0, 70),
	}
	got, err := w.FromTrace(list, compare.TraceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Jobs) != 3 || got.Report.Skipped != 2 || got.Scaled != 1 {
		t.Errorf("%d jobs, %d skipped, %d scaled: %v", len(got.Jobs), got.Report.Skipped, got.Scaled, got.Report.Warnings)
	}
	// 1000 steps at 10 steps/s on the faster class; twice as fast with two.
	for i, want := range []float64{100, 50, 70} {
		if got.Jobs[i].Work != want {
			t.Errorf("job %s: work %g s; want %g", got.Jobs[i].Name, got.Jobs[i].Work, want)
		}
	}
	if _, err := w.FromTrace(list, compare.TraceOptions{Options: formats.Options{Strict: true}}); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("strict: %v", err)
	}
	list[2].Devices, list[2].Seconds, list[2].Steps = 3, 10, 0
	drawn, err := w.FromTrace(list, compare.TraceOptions{Draw: true, Seed: 1})
	if err != nil || drawn.Drawn != 1 || len(drawn.Jobs) != 4 || len(drawn.Jobs[2].Tasks) != 3 || drawn.Jobs[2].Work != 10 {
		t.Errorf("drawn: %+v, %v", drawn, err)
	}
}

// A stream like a trace has its load, sizes and durations.
func TestLikeResemblesJobs(t *testing.T) {
	w := world(t)
	given := compare.Load{Jobs: 600, Load: 0.8, Shortest: time.Hour, Longest: 5 * time.Hour, Sizes: []sim.Size{{Workers: 1, Share: 3}, {Workers: 2, Share: 1}}}
	list, err := w.Generate(given, 5)
	if err != nil {
		t.Fatal(err)
	}
	got := w.Like(list)
	if got.Jobs != 600 || math.Abs(got.Load-0.8) > 0.1 || len(got.Sizes) != 2 || got.Shortest < 50*time.Minute || got.Longest > 5*time.Hour {
		t.Errorf("%+v", got)
	}
}

// What greedy gains by a model it gains more surely by the truth itself, also
// in a world that no table can hold.
func TestTheOracleOfContentionHelps(t *testing.T) {
	w, err := compare.Contention(compare.ContentionConfig{Servers: 3, Profile: contention.SamplesConfig{Colocations: 50, Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	s := setting(t, w, "spread", "greedy:truth", "greedy-wait:truth:threshold=0.2")
	s.Jobs = func(seed uint64) ([]sim.Job, error) { return w.Generate(compare.Load{Jobs: 40, Load: 0.9}, seed) }
	rows := compare.Rows(run(t, &s))
	if !(rows[1].Ratio < 0.95) {
		t.Errorf("greedy:truth reaches %.3f of spread", rows[1].Ratio)
	}
	s.Specs = specs(t, "matching:truth")
	if err := s.Check(); err == nil {
		t.Error("matching:truth is taken, where no table holds the truth")
	}
}

func TestInterruptedRunsSaySo(t *testing.T) {
	s := setting(t, world(t), "spread")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Run(ctx); err == nil {
		t.Error("no error")
	}
}
