package history

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
)

func measured(value, spread float64, repeats int) Sample {
	s := valid()
	s.Value, s.Spread, s.Repeats = value, spread, repeats
	return s
}

func TestSummariseMergesEqualCells(t *testing.T) {
	other := valid()
	other.Workload = "mms"
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	a, b := measured(0.8, 0, 1), measured(0.9, 0, 1)
	a.Start, a.End = start.Add(time.Minute), start.Add(2*time.Minute)
	b.Start, b.End = start, start.Add(90*time.Second)
	b.Source, b.Scope = "cluster", ScopeNode // the empty scope is the node's
	got := Summarise([]Sample{a, other, b})
	if len(got.Samples) != 2 || got.Duplicates != 0 || len(got.Contradictions) != 0 {
		t.Fatalf("%d samples, %d duplicates, %d contradictions; want 2, 0, 0", len(got.Samples), got.Duplicates, len(got.Contradictions))
	}
	m := got.Samples[0]
	if math.Abs(m.Value-0.85) > 1e-12 || m.Repeats != 2 || math.Abs(m.Spread-0.1/math.Sqrt2) > 1e-12 {
		t.Errorf("merged into %g +- %g of %d; want 0.85 +- 0.0707 of 2", m.Value, m.Spread, m.Repeats)
	}
	if m.Source != "" || !m.Start.Equal(start) || !m.End.Equal(a.End) {
		t.Errorf("source %q, window %s to %s; want none, the window over both", m.Source, m.Start, m.End)
	}
	if got.Samples[1].Workload != "mms" || got.Samples[1].Repeats != other.Repeats {
		t.Errorf("a cell of one sample changed: %+v", got.Samples[1])
	}
}

func TestSummariseCountsDuplicates(t *testing.T) {
	got := Summarise([]Sample{measured(0.8, 0, 1), measured(0.8, 0, 0), measured(0.8, 0, 1), measured(0.81, 0, 1)})
	if got.Duplicates != 2 || got.Samples[0].Repeats != 4 {
		t.Errorf("%d duplicates, %d repeats; want 2 and 4", got.Duplicates, got.Samples[0].Repeats)
	}
}

func TestSummariseReportsContradictions(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b Sample
		want bool
	}{
		{"near", measured(0.8, 0, 1), measured(0.9, 0, 1), false},
		{"far", measured(0.5, 0, 1), measured(0.9, 0, 1), true},
		{"far, but as noisy", measured(0.5, 0.1, 3), measured(0.9, 0.1, 3), false},
		{"zero and not", measured(0, 0, 1), measured(0.9, 0, 1), true},
		{"zero twice", measured(0, 0, 1), measured(0, 0, 1), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Summarise([]Sample{c.b, c.a})
			if (len(got.Contradictions) == 1) != c.want {
				t.Fatalf("contradictions %v; want one: %v", got.Contradictions, c.want)
			}
			if !c.want {
				return
			}
			k := got.Contradictions[0]
			if k.Low != c.a.Value || k.High != c.b.Value || k.LowAt != 1 || k.HighAt != 0 {
				t.Errorf("%+v; want the values and positions of both", k)
			}
			if !strings.Contains(k.Error(), "rate of redis in mms*2+redis on class c5") {
				t.Errorf("error does not name the cell: %v", k)
			}
		})
	}
}

// The error quotes what stands in the samples, not what was made of it.
func TestContradictionsQuoteTheSamples(t *testing.T) {
	a, b := measured(8, 0, 1), measured(2, 0, 1)
	a.Alone, b.Alone = 10, 40
	err := Summarise([]Sample{a, b}).Contradictions[0]
	if want := "measured as 2 (alone 40) and as 8 (alone 10)"; !strings.Contains(err.Error(), want) {
		t.Errorf("%v lacks %q", err, want)
	}
	if at := err.Culprits(); at[0].Value != 2 || at[1].Value != 8 {
		t.Errorf("culprits %+v", at)
	}
	b.Alone = 0
	if err := Summarise([]Sample{a, b}).Contradictions[0]; !strings.Contains(err.Error(), "2 (alone not given) and as 8 (alone 10)") {
		t.Errorf("%v", err)
	}
}

func TestSummariseOtherCells(t *testing.T) {
	base := valid()
	for name, do := range map[string]func(*Sample){
		"class":      func(s *Sample) { s.Class = "m5" },
		"scope":      func(s *Sample) { s.Scope = ScopeRack },
		"colocation": func(s *Sample) { s.Colocation = cluster.Colocation{"redis": 1} },
		"workload":   func(s *Sample) { s.Workload = "mms" },
		"role":       func(s *Sample) { s.Role = cluster.Worker },
		"span":       func(s *Sample) { s.Span = cluster.SpanApart },
		"batch size": func(s *Sample) { s.BatchSize = 64 },
		"metric":     func(s *Sample) { s.Metric = P99 },
	} {
		s := base
		do(&s)
		if got := Summarise([]Sample{base, s}); len(got.Samples) != 2 {
			t.Errorf("samples of another %s were merged", name)
		}
	}
}

// Merging is the mean and the standard deviation of the repeats themselves,
// however they were cut into samples.
func TestSummarisePoolsAsOneSample(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SliceOfN(rapid.Float64Range(0.5, 2), 1, 6), 1, 5).Draw(t, "parts")
		var all []float64
		var samples []Sample
		for _, p := range parts {
			m, sd := meanAndSpread(p)
			samples = append(samples, measured(m, sd, len(p)))
			all = append(all, p...)
		}
		got := Summarise(samples).Samples[0]
		m, sd := meanAndSpread(all)
		if math.Abs(got.Value-m) > 1e-9 || math.Abs(got.Spread-sd) > 1e-6 || got.Repeats != len(all) {
			t.Fatalf("%g +- %g of %d; want %g +- %g of %d", got.Value, got.Spread, got.Repeats, m, sd, len(all))
		}
		if err := got.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

func meanAndSpread(xs []float64) (mean, sd float64) {
	for _, x := range xs {
		mean += x / float64(len(xs))
	}
	for _, x := range xs {
		sd += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(sd / math.Max(float64(len(xs)-1), 1))
}
