package place_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/place"
)

func TestPropertyObjectiveRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight := rapid.OneOf(rapid.SampledFrom([]float64{0, 1}), rapid.Float64Range(0, 1e6))
		o := place.Objective{Mean: weight.Draw(t, "mean"), Worst: weight.Draw(t, "worst"), P99: weight.Draw(t, "p99"), Nodes: weight.Draw(t, "nodes"), Traffic: weight.Draw(t, "traffic")}
		got, err := place.ParseObjective(o.String())
		if err != nil || got != o.Or() {
			t.Fatalf("%+v became %+v by way of %q: %v", o, got, o, err)
		}
	})
}

func TestParseObjective(t *testing.T) {
	for text, want := range map[string]place.Objective{
		"mean": place.MeanPerformance, "worst": place.WorstPerformance, "p99": place.TailLatency, "nodes": place.NodesUsed,
		"mean=1,nodes=0.002": {Mean: 1, Nodes: 0.002}, "mean,mean": {Mean: 2}, "mean=0,p99": place.TailLatency,
		"traffic": place.NearTraffic, "mean=1,traffic=0.2": {Mean: 1, Traffic: 0.2},
	} {
		if got, err := place.ParseObjective(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for text, wanted := range map[string]string{
		"": `"" is none of mean`, "median": `"median" is none of`, "mean=-1": `weight "-1" of mean`, "mean=NaN": `weight "NaN"`,
		"mean=Inf": `weight "Inf"`, "traffic=-0.1": `weight "-0.1" of traffic`, "mean,traffic=nan": `weight "nan" of traffic`, "mean=": `weight ""`, "mean=0": "all weights are 0", "mean,": `"" is none of`,
		"mean=1e308,mean=1e308": "more than a number can hold",
	} {
		if _, err := place.ParseObjective(text); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%q: %v, want %q", text, err, wanted)
		}
	}
}

func FuzzParseObjective(f *testing.F) {
	for _, s := range []string{"mean", "mean=1,nodes=0.002", "p99=1e-300", "mean=0x1p-2", "worst=1e308,worst=1e308", "mean=-0", "=", ","} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		o, err := place.ParseObjective(s)
		if err != nil {
			return
		}
		for _, w := range []float64{o.Mean, o.Worst, o.P99, o.Nodes, o.Traffic} {
			if !(w >= 0) || math.IsInf(w, 0) {
				t.Fatalf("%q gave %+v", s, o)
			}
		}
		if again, err := place.ParseObjective(o.String()); err != nil || again != o {
			t.Fatalf("%q is %+v, but its text %q is %+v (%v)", s, o, o, again, err)
		}
	})
}

func TestMinimisesAndShare(t *testing.T) {
	for _, c := range []struct {
		o            place.Objective
		minimises    bool
		value, bound float64
		share        float64
	}{
		{place.Objective{}, false, 0.9, 1.2, 0.75},
		{place.WorstPerformance, false, 0, 0.5, 0},
		{place.TailLatency, true, 4, 3, 0.75},
		{place.NodesUsed, true, 10, 5, 0.5},
		{place.Objective{P99: 1, Nodes: 1}, false, -1, -1, math.NaN()},
		{place.Objective{Mean: 1, Nodes: 1}, false, -3, 1, math.NaN()},
		{place.Objective{P99: 1, Traffic: 1}, false, 1, 2, 0.5},
		{place.NearTraffic, false, 0.5, 1, 0.5},
		{place.TailLatency, true, 0, 3, math.NaN()},
	} {
		if got := c.o.Minimises(); got != c.minimises {
			t.Errorf("%s minimises: %t", c.o, got)
		}
		if got := c.o.Share(c.value, c.bound); got != c.share && !(math.IsNaN(got) && math.IsNaN(c.share)) {
			t.Errorf("%s: share of %v in %v is %v, want %v", c.o, c.value, c.bound, got, c.share)
		}
	}
}
