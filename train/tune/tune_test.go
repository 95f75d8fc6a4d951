package tune_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
	"github.com/cotenant/cotenant/train/tune"
	"pgregory.net/rapid"
)

// bowl scores by the distance from a point, each parameter in its own range.
func bowl(at tune.Values) func(context.Context, []tune.Values) ([]float64, error) {
	return func(_ context.Context, batch []tune.Values) ([]float64, error) {
		out := make([]float64, len(batch))
		for i, v := range batch {
			for _, key := range slices.Sorted(maps.Keys(at)) {
				out[i] += (v[key] - at[key]) * (v[key] - at[key])
			}
		}
		return out, nil
	}
}

// Values stay in their ranges, are what they are printed as, and the first
// are the defaults; more budget is never worse, for it begins with the same.
func TestSearchStaysInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var params []jobs.Param
		at := tune.Values{}
		for _, key := range []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "parameters")] {
			p := jobs.Param{Key: key, Log: rapid.Bool().Draw(t, "log"), Whole: rapid.Bool().Draw(t, "whole")}
			p.Low = float64(rapid.IntRange(1, 50).Draw(t, "low"))
			if !p.Log {
				p.Low -= 25
			}
			p.High = p.Low + float64(rapid.IntRange(1, 1000).Draw(t, "width"))
			p.Default = p.Low
			params = append(params, p)
			at[key] = p.Low + (p.High-p.Low)*rapid.Float64Range(0, 1).Draw(t, "best")
		}
		s := tune.Search{Params: params, Budget: rapid.IntRange(1, 60).Draw(t, "budget"), Seed: rapid.Uint64().Draw(t, "seed"), Score: bowl(at)}
		best, trials, err := s.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(trials) != s.Budget {
			t.Fatalf("%d trials of a budget of %d", len(trials), s.Budget)
		}
		for i, trial := range trials {
			if trial.Score < best.Score {
				t.Fatalf("trial %d is better than the best", i)
			}
			for _, p := range params {
				v := trial.Values[p.Key]
				if !(v >= p.Low && v <= p.High) || p.Whole && v != math.Trunc(v) || i == 0 && v != p.Default {
					t.Fatalf("trial %d: %s is %g of %g to %g", i, p.Key, v, p.Low, p.High)
				}
			}
		}
		again, _, err := s.Run(context.Background())
		if err != nil || again.Score != best.Score || !maps.Equal(again.Values, best.Values) {
			t.Fatalf("the same search finds %v, then %v", best, again)
		}
	})
}

func TestSearchFindsWhatIsThere(t *testing.T) {
	params := []jobs.Param{{Key: "x", Low: 0, High: 1, Default: 1}, {Key: "y", Low: 1, High: 1e6, Default: 1, Log: true}}
	score := func(_ context.Context, batch []tune.Values) ([]float64, error) {
		out := make([]float64, len(batch))
		for i, v := range batch {
			out[i] = math.Abs(v["x"]-0.3) + math.Abs(math.Log10(v["y"])-4)/6
		}
		return out, nil
	}
	best, _, err := tune.Search{Params: params, Budget: 80, Seed: 1, Score: score}.Run(t.Context())
	if err != nil || best.Score > 0.05 {
		t.Errorf("found %v: %v", best, err)
	}
}

func TestSearchRefuses(t *testing.T) {
	good := []jobs.Param{{Key: "x", Low: 0, High: 1}}
	for name, s := range map[string]tune.Search{
		"budget":   {Params: good, Score: bowl(nil)},
		"range":    {Params: []jobs.Param{{Key: "x", Low: 1, High: 1}}, Budget: 1, Score: bowl(nil)},
		"logarith": {Params: []jobs.Param{{Key: "x", Low: 0, High: 1, Log: true}}, Budget: 1, Score: bowl(nil)},
		"scores":   {Params: good, Budget: 1, Score: func(context.Context, []tune.Values) ([]float64, error) { return nil, nil }},
		"failed":   {Params: good, Budget: 1, Score: func(context.Context, []tune.Values) ([]float64, error) { return nil, errors.New("failed") }},
	} {
		if _, _, err := s.Run(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func world(t *testing.T) *compare.World {
	t.Helper()
	needs := map[string]float64{"small": 0.4, "middle": 0.6, "large": 0.95}
	var samples []history.Sample
	for a := range needs {
		for b := range needs {
			pair := cluster.Colocation{a: 1}
			pair[b]++
			samples = append(samples, history.Sample{
				Class: "v100", Scope: history.ScopeDevice, Colocation: pair, Workload: a, Metric: history.Rate,
				Value: 10 * min(1, math.Pow(1/(needs[a]+needs[b]), 3)), Alone: 10,
			})
		}
		samples = append(samples, history.Sample{
			Class: "v100", Scope: history.ScopeDevice, Colocation: cluster.Colocation{a: 1}, Workload: a, Metric: history.Rate, Value: 10, Alone: 10,
		})
	}
	slices.SortFunc(samples, func(a, b history.Sample) int {
		return strings.Compare(a.Colocation.Key()+a.Workload, b.Colocation.Key()+b.Workload)
	})
	w, err := compare.Measured(samples, cluster.Nodes("v100", 4, 1, 0), 2)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Policies that learn are tuned without the truth, those of the truth on it;
// what is given by hand stays; policies without parameters are left out.
func TestPoliciesAreTunedInTheirWorlds(t *testing.T) {
	w := world(t)
	s := compare.Setting{
		World: w, Seeds: []uint64{1}, Options: sim.Config{Backfill: true}, Belief: compare.Belief{Observed: 0.7, Kind: interference.KindLinear},
		Jobs: func(uint64) ([]sim.Job, error) { t.Error("the jobs of the test are looked at"); return nil, nil },
	}
	for _, text := range []string{"spread", "greedy", "greedy-wait:max-wait=5000", "greedy-wait:truth"} {
		spec, err := compare.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		s.Specs = append(s.Specs, spec)
	}
	runs := 0
	o := tune.Options{Budget: 9, Seeds: []uint64{10, 11}, Load: compare.Load{Jobs: 60, Load: 1.1}, Done: func(compare.Spec, int) { runs++ }}
	got, err := tune.Policies(t.Context(), &s, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Spec.Text != "greedy-wait:max-wait=5000" || got[1].Spec.Text != "greedy-wait:truth" {
		t.Fatalf("%+v", got)
	}
	if _, searched := got[0].Best["max-wait"]; searched {
		t.Error("what was given by hand was searched")
	}
	for _, g := range got {
		if g.Score > 1 || g.Trials != 9 {
			t.Errorf("%s: %g of the default values after %d trials", g.Spec.Text, g.Score, g.Trials)
		}
	}
	if got[0].TruthCalls != 0 || got[1].TruthCalls == 0 {
		t.Errorf("the truth was asked %d and %d times", got[0].TruthCalls, got[1].TruthCalls)
	}
	if runs != 2*9*2 {
		t.Errorf("%d runs; want each policy with 9 sets of values on 2 seeds", runs)
	}
	again, err := tune.Policies(t.Context(), &s, o)
	if err != nil || !maps.Equal(again[0].Best, got[0].Best) || again[1].Score != got[1].Score {
		t.Errorf("again: %v, %v", again, err)
	}
	o.Seeds = []uint64{1, 2}
	if _, err := tune.Policies(t.Context(), &s, o); err == nil {
		t.Error("a seed of the test is taken to tune on")
	}
	o.Seeds = nil
	if _, err := tune.Policies(t.Context(), &s, o); err == nil {
		t.Error("no seeds are taken")
	}
}
