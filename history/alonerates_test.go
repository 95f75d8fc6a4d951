package history_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

func aloneRate(class, workload string, workers int, span cluster.Span, rate float64) history.Sample {
	return history.Sample{
		Class: class, Scope: history.ScopeDevice, Colocation: cluster.Colocation{workload: 1}, Workload: workload,
		Workers: workers, Span: span, Metric: history.Rate, Value: rate, Alone: rate,
	}
}

func TestAloneRates(t *testing.T) {
	pair := aloneRate("v100", "resnet-18/16", 1, "", 5)
	pair.Colocation = cluster.Colocation{"resnet-18/16": 1, "a3c": 1}
	latency := aloneRate("v100", "redis", 1, "", 5)
	latency.Metric = history.P99
	a := history.NewAloneRates([]history.Sample{
		aloneRate("v100", "resnet-18/16", 0, "", 30),
		aloneRate("v100", "resnet-18/16", 1, "", 34), // a repeat: the mean is 32
		aloneRate("v100", "resnet-18/16", 2, cluster.SpanNode, 100),
		aloneRate("v100", "resnet-18/16", 8, cluster.SpanNode, 160),
		aloneRate("v100", "resnet-18/16", 2, cluster.SpanApart, 40),
		aloneRate("k80", "resnet-18/16", 1, "", 4),
		aloneRate("k80", "resnet-18/16", 4, cluster.SpanNode, 0), // no rate at all
		aloneRate("p100", "a3c", 4, cluster.SpanApart, 20),
		pair, latency,
	})
	if got := a.Classes(); !slices.Equal(got, []string{"k80", "p100", "v100"}) {
		t.Errorf("classes %v", got)
	}
	if got := a.Workloads(); !slices.Equal(got, []string{"a3c", "resnet-18/16"}) {
		t.Errorf("workloads %v", got)
	}
	for _, c := range []struct {
		class, workload string
		workers         int
		span            cluster.Span
		rate            float64
		scaled, ok      bool
	}{
		{"v100", "resnet-18/16", 1, "", 32, false, true},
		{"v100", "resnet-18/16", 0, cluster.SpanDevice, 32, false, true},
		{"v100", "resnet-18/16", 1, cluster.SpanApart, 32, false, true},
		{"v100", "resnet-18/16", 2, cluster.SpanNode, 100, false, true},
		{"v100", "resnet-18/16", 2, cluster.SpanRack, 40, false, true},
		{"v100", "resnet-18/16", 5, cluster.SpanNode, 130, true, true}, // half-way from 2 to 8
		{"v100", "resnet-18/16", 64, cluster.SpanNode, 1280, true, true},
		{"v100", "resnet-18/16", 8, cluster.SpanApart, 160, true, true}, // 20 a worker, as with 2
		{"k80", "resnet-18/16", 4, cluster.SpanNode, 16, true, true},
		{"p100", "a3c", 4, cluster.SpanApart, 20, false, true},
		{"p100", "a3c", 4, cluster.SpanNode, 20, true, true}, // never measured on one node
		{"p100", "a3c", 1, "", 5, true, true},
		{"p100", "resnet-18/16", 1, "", 0, false, false},
		{"t4", "a3c", 1, "", 0, false, false},
		{"v100", "redis", 1, "", 0, false, false},
	} {
		rate, scaled, ok := a.Rate(c.class, c.workload, c.workers, c.span)
		if rate != c.rate || scaled != c.scaled || ok != c.ok {
			t.Errorf("%s on %s with %d workers, span %q: %g %v %v; want %g %v %v",
				c.workload, c.class, c.workers, c.span, rate, scaled, ok, c.rate, c.scaled, c.ok)
		}
	}
	for _, c := range []struct {
		class   string
		workers int
		span    cluster.Span
		classes []string
		want    float64
		ok      bool
	}{
		{"v100", 1, "", []string{"k80", "v100"}, 1, true},
		{"k80", 1, "", []string{"k80", "v100"}, 4.0 / 32, true},
		{"k80", 1, "", []string{"k80"}, 1, true},
		{"k80", 1, "", []string{"k80", "p100"}, 1, true}, // no rate there: passed over
		{"v100", 2, cluster.SpanApart, []string{"k80", "v100"}, 0.4, true},
		{"p100", 1, "", []string{"k80", "v100"}, 0, false},
		{"v100", 1, "", nil, 0, false},
	} {
		got, ok := a.Progress(c.class, "resnet-18/16", c.workers, c.span, c.classes)
		if math.Abs(got-c.want) > 1e-15 || ok != c.ok {
			t.Errorf("%+v: progress %g %v", c, got, ok)
		}
	}
}

// Where no size is missing nothing is scaled, and a scaled rate lies between
// what its neighbours say.
func TestScaledRatesLieBetweenMeasured(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfNDistinct(rapid.IntRange(2, 64), 1, 6, rapid.ID[int]).Draw(t, "sizes")
		var samples []history.Sample
		rate := map[int]float64{}
		for _, n := range sizes {
			rate[n] = rapid.Float64Range(0.1, 1000).Draw(t, "rate")
			samples = append(samples, aloneRate("v100", "lm/5", n, cluster.SpanNode, rate[n]))
		}
		slices.Sort(sizes)
		a := history.NewAloneRates(samples)
		n := rapid.IntRange(1, 128).Draw(t, "workers")
		got, scaled, ok := a.Rate("v100", "lm/5", n, cluster.SpanNode)
		if want, measured := rate[n]; !ok || scaled == measured || measured && got != want {
			t.Fatalf("%d workers: %g, scaled %v", n, got, scaled)
		}
		for i := 1; i < len(sizes); i++ {
			lo, hi := sizes[i-1], sizes[i]
			if lo <= n && n <= hi && (got < min(rate[lo], rate[hi])-1e-9 || got > max(rate[lo], rate[hi])+1e-9) {
				t.Fatalf("%d workers: %g, between %g and %g", n, got, rate[lo], rate[hi])
			}
		}
	})
}

func TestSingleWorkerApart(t *testing.T) {
	one := func(workload string, span cluster.Span, rate float64) history.Sample {
		return history.Sample{
			Colocation: cluster.Colocation{workload: 1}, Workload: workload, Workers: 1, Span: span, Metric: history.Rate, Value: rate,
		}
	}
	a := history.NewAloneRates([]history.Sample{
		one("both", cluster.SpanNode, 4), one("both", cluster.SpanApart, 3), one("near", cluster.SpanNode, 4), one("far", cluster.SpanApart, 3),
	})
	for _, c := range []struct {
		workload string
		span     cluster.Span
		want     float64
	}{
		{"both", cluster.SpanNode, 4},
		{"both", cluster.SpanApart, 3},
		{"near", cluster.SpanApart, 4},
		{"far", cluster.SpanNode, 3},
	} {
		if got, scaled, ok := a.Rate("", c.workload, 1, c.span); got != c.want || scaled || !ok {
			t.Errorf("%s at %s: %g, %v, %v; want %g", c.workload, c.span, got, scaled, ok, c.want)
		}
	}
}
