package profile

import (
	"math"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// rates are repeats of a's rate in a co-location.
func rates(c cluster.Colocation, values ...float64) []history.Sample {
	var out []history.Sample
	for i, v := range values {
		out = append(out, history.Sample{Colocation: c, Workload: "a", Metric: history.Rate, Value: v, Repeats: 1, Start: time.Unix(int64(i), 0)})
	}
	return out
}

func TestCellsTellNoiseFromEffect(t *testing.T) {
	raw := rates(cluster.Colocation{"a": 1}, 98, 102, 99, 101)
	raw = append(raw, rates(cluster.Colocation{"a": 1, "quiet": 1}, 97, 103, 98, 100)...)
	raw = append(raw, rates(cluster.Colocation{"a": 1, "loud": 1}, 49, 51, 50, 50)...)
	cells := Cells(history.Aggregate(raw))
	within := map[string]bool{}
	for _, c := range cells {
		within[c.Colocation.Key()] = c.WithinNoise
	}
	if !within["a+quiet"] || within["a+loud"] {
		t.Errorf("within noise: %v", within)
	}
	loud := cells[1]
	// Standard errors: sd/sqrt(4)/mean of both, added as squares.
	want := .5 * math.Hypot(math.Sqrt(2./3)/2/50, math.Sqrt(10./3)/2/100)
	if loud.Performance != .5 || math.Abs(loud.Error-want) > 1e-12 {
		t.Errorf("performance %g±%g, want .5±%g", loud.Performance, loud.Error, want)
	}
}

func TestNoiseShowsDrift(t *testing.T) {
	raw := rates(cluster.Colocation{"a": 1}, 100, 100, 110, 110)
	raw = append(raw, rates(cluster.Colocation{"a": 1, "b": 1}, 9, 11)...)
	got := NoiseOf(raw)
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	n := got[0]
	if math.Abs(n.Drift-.1) > 1e-12 || n.Alone != 105 || n.Repeats != 4 || math.Abs(n.Together-math.Sqrt2/10) > 1e-12 {
		t.Errorf("%+v", n)
	}
}

// What was measured once has no spread of its own: it is judged by what is
// repeated elsewhere on the record, the workload's own repeats first, and not at
// all where nothing is.
func TestOneRepeatStatesNoSpread(t *testing.T) {
	pair := cluster.Colocation{"a": 1, "b": 1}
	one := rates(pair, 100)
	other := rates(cluster.Colocation{"c": 1}, 60, 140)
	for i := range other {
		other[i].Workload = "c"
	}
	alone := rates(cluster.Colocation{"a": 1}, 99, 101, 100)
	for _, c := range []struct {
		name    string
		record  []history.Sample
		unknown bool
		df      int
		spread  float64
	}{
		{"nothing repeated", one, true, 0, 0},
		{"once alone", append(rates(cluster.Colocation{"a": 1}, 100), one...), true, 0, 0},
		{"only others repeated", append(other, one...), false, 1, 100 * math.Hypot(40, 40) / 100},
		{"alone-runs repeated", append(append(alone, other...), one...), false, 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			record := history.Aggregate(c.record)
			var recorded history.Sample
			for _, cell := range Cells(record) {
				if cell.Colocation.Key() == "a+b" {
					recorded = cell.Sample
					if cell.Alone > 0 && math.IsNaN(cell.Error) != c.unknown {
						t.Errorf("error of the performance %g, while the spread is unknown: %v", cell.Error, c.unknown)
					}
				}
			}
			same := scattersOf(record).check(recorded, recorded)
			if same.Unknown != c.unknown || same.Within == c.unknown || math.Abs(same.Spread-c.spread) > 1e-9 {
				t.Fatalf("%+v; want unknown %v and a spread of %g", same, c.unknown, c.spread)
			}
			if c.unknown {
				return
			}
			if want := studentT95(c.df) * c.spread * math.Sqrt2; math.Abs(same.Tolerance-want) > 1e-9 || !same.Borrowed {
				t.Errorf("tolerance %g, borrowed %v; want %g", same.Tolerance, same.Borrowed, want)
			}
			far := recorded
			far.Value += 1.01 * same.Tolerance
			if scattersOf(record).check(recorded, far).Within {
				t.Errorf("%g is within %g of %g", far.Value, same.Tolerance, recorded.Value)
			}
		})
	}
	// One cell that is as good as alone, and one that is not.
	record := history.Aggregate(append(append(alone, one...), rates(cluster.Colocation{"a": 1, "loud": 1}, 50)...))
	for _, c := range Cells(record) {
		if want := c.Colocation.Key() != "a+loud"; c.WithinNoise != want {
			t.Errorf("%s: within noise %v", c.Colocation.Key(), c.WithinNoise)
		}
	}
	n := NoiseOf(append(rates(cluster.Colocation{"a": 1}, 100), one...))[0]
	if !math.IsNaN(n.Spread) || !math.IsNaN(n.Drift) || !math.IsNaN(n.Together) {
		t.Errorf("of a single repeat: %+v", n)
	}
}

func TestToleranceIsAPredictionInterval(t *testing.T) {
	for df, want := range map[int]float64{1: 12.706, 4: 2.776, 5: 2.571, 10: 2.228, 30: 2.042, 1000: 1.962} {
		if got := studentT95(df); math.Abs(got/want-1) > .005 {
			t.Errorf("t with %d degrees of freedom: %g, want %g", df, got, want)
		}
	}
	// Of 30 cells at 5 %, 1.5 lie outside on average; more than 5 do in 0.3 %
	// of cases, more than 4 in 1.6 %.
	for n, want := range map[int]int{0: 0, 1: 1, 10: 3, 30: 5, 100: 11} {
		if got := Allowed(n); got != want {
			t.Errorf("%d cells allow %d outside, want %d", n, got, want)
		}
	}
}
