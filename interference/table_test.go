package interference_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
)

func rate(c cluster.Colocation, w string, v float64) history.Sample {
	return history.Sample{Colocation: c, Workload: w, Metric: history.Rate, Value: v, Alone: 1}
}

func TestTableAnswersExactlyWhatWasMeasured(t *testing.T) {
	pair := cluster.Colocation{"a": 1, "b": 2}
	m, err := interference.Fit("table", []history.Sample{
		rate(pair, "a", 0.5),
		{Colocation: pair, Workload: "b", Metric: history.Rate, Value: 80, Alone: 100, Repeats: 4, Spread: 10},
		{Colocation: cluster.Colocation{"a": 1}, Workload: "a", Metric: history.P99, Value: 0.01},
		{Colocation: pair, Workload: "a", Metric: history.P99, Value: 0.03},
	}, interference.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := m.Predict("", history.Rate, []cluster.Colocation{pair, {"a": 2}, {"b": 1}, {"a": 1, "z": 1}, {}})
	want := [][]interference.Estimate{
		{{Value: 0.5, Known: true, Measured: true}, {Value: 0.8, Std: 0.05, Known: true, Measured: true}},
		{{}},
		{{Value: 1, Known: true, Measured: true}}, // implied by the field alone
		{{}, {}},
		{},
	}
	for i := range want {
		if len(got[i]) != len(want[i]) {
			t.Fatalf("row %d: %d estimates, want %d", i, len(got[i]), len(want[i]))
		}
		for j := range want[i] {
			if g, w := got[i][j], want[i][j]; g.Known != w.Known || g.Measured != w.Measured || math.Abs(g.Value-w.Value)+math.Abs(g.Std-w.Std) > 1e-12 {
				t.Errorf("row %d cell %d: %+v, want %+v", i, j, g, w)
			}
		}
	}
	if p := m.Predict("", history.P99, []cluster.Colocation{pair})[0]; math.Abs(p[0].Value-3) > 1e-12 || p[1].Known {
		t.Errorf("p99 is %+v, want 3 for a and nothing for b", p)
	}
	if p := m.Predict("v100", history.Rate, []cluster.Colocation{pair})[0]; p[0].Known {
		t.Errorf("unknown class answered %+v", p)
	}
}

func TestPooledRepeatsGiveTheSpreadOfTheirMean(t *testing.T) {
	c := cluster.Colocation{"a": 1, "b": 1}
	m, err := interference.Fit("table", []history.Sample{rate(c, "a", 0.9), rate(c, "a", 0.8), rate(c, "a", 0.7), rate(c, "a", 0.8)}, interference.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := m.Predict("", history.Rate, []cluster.Colocation{c})[0][0]
	want := math.Sqrt(0.02/3) / 2
	if math.Abs(e.Value-0.8) > 1e-12 || math.Abs(e.Std-want) > 1e-12 {
		t.Errorf("got %+v, want 0.8 +- %g", e, want)
	}
}

func TestFitRefusesBadSamples(t *testing.T) {
	pair, alone := cluster.Colocation{"a": 1, "b": 1}, cluster.Colocation{"a": 1}
	bare := func(c cluster.Colocation, value float64) history.Sample {
		return history.Sample{Colocation: c, Workload: "a", Metric: history.Rate, Value: value}
	}
	for name, c := range map[string]struct {
		kind    string
		samples []history.Sample
		want    []string
	}{
		"empty":         {"table", nil, []string{"no samples", "cotenant profile"}},
		"kind":          {"oracle", []history.Sample{rate(pair, "a", 1)}, []string{`"oracle"`, "table, linear"}},
		"invalid":       {"table", []history.Sample{rate(pair, "a", 1), rate(pair, "c", 1)}, []string{"sample 1", `"c"`}},
		"no alone":      {"table", []history.Sample{{Class: "k80", Colocation: pair, Workload: "a", Metric: history.P99, Value: 2}}, []string{"p99 of a", "k80", "measure a alone"}},
		"contradiction": {"table", []history.Sample{rate(pair, "a", .9), rate(pair, "a", .2)}, []string{"contradictory", "a+b", "0.9", "0.2"}},
		"alone twice":   {"table", []history.Sample{{Colocation: alone, Workload: "a", Metric: history.Rate, Value: 10, Alone: 5}}, []string{"sample 0", "rate of a in a", "10", "alone is given as 5"}},
		"alone 0":       {"table", []history.Sample{bare(alone, 0), bare(pair, 3)}, []string{"the rate of a alone was measured as 0"}},
		"huge":          {"linear", []history.Sample{rate(pair, "a", 1e308)}, []string{"sample 0", "value: 1e+308"}},
		"huge, apart":   {"linear", []history.Sample{bare(alone, 2), bare(pair, 1e9)}, []string{"rate of a in a+b", "1e+09 is 5e+08 times the rate alone, 2"}},
		"only racks":    {"table", []history.Sample{{Scope: history.ScopeRack, Colocation: pair, Workload: "a", Metric: history.Rate, Value: 1, Alone: 1}}, []string{"single node"}},
	} {
		_, err := interference.Fit(c.kind, c.samples, interference.Options{})
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q lacks %q", name, err, w)
			}
		}
	}
	if _, err := interference.Fit("table", nil, interference.Options{}); !errors.Is(err, interference.ErrNoSamples) {
		t.Errorf("empty: %v is not ErrNoSamples", err)
	}
	noisy := []history.Sample{rate(pair, "a", .9), rate(pair, "a", .2)}
	noisy[0].Repeats, noisy[0].Spread = 3, .3
	if _, err := interference.Fit("table", noisy, interference.Options{}); err != nil {
		t.Errorf("a stated spread should explain the gap: %v", err)
	}
}
