package compare_test

import (
	"errors"
	"math"
	"testing"

	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
)

func outcome(policy string, seed uint64, mean, bound float64) compare.Outcome {
	return compare.Outcome{
		Spec: compare.Spec{Text: policy, Name: policy}, Seed: seed, Result: sim.Result{MeanJCT: mean, LowerBound: bound, MaxWait: mean / 10},
	}
}

// Ratios are paired by seed: that seeds differ tenfold does not count.
func TestRowsArePaired(t *testing.T) {
	rows := compare.Rows([]compare.Outcome{
		outcome("spread", 1, 100, 50), outcome("spread", 2, 1000, 600),
		outcome("greedy", 1, 80, 50), outcome("greedy", 2, 900, 600),
	})
	g := rows[1]
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s is %g; want %g", what, got, want)
		}
	}
	near("ratio", g.Ratio, (0.8+0.9)/2)
	near("its standard error", g.RatioError, math.Sqrt(2*0.05*0.05/1)/math.Sqrt2)
	near("bound", g.Bound, (0.5+0.6)/2)
	near("closed", g.Closed, (20.0+100)/(50+400))
	// Leaving out one of two seeds leaves 100/400 and 20/50.
	near("its standard error", g.ClosedError, math.Sqrt((0.075*0.075*2)*0.5))
	near("spread", rows[0].Ratio, 1)
	near("spread's error", rows[0].RatioError, 0)
	near("longest wait", g.MaxWait, 90)

	one := compare.Rows([]compare.Outcome{outcome("spread", 1, 100, 50), outcome("greedy", 1, 80, 50)})[1]
	near("error of one seed", one.RatioError, math.NaN())
	near("closed with one seed", one.Closed, 0.4)
}

// What left jobs unfinished, or failed, has no ratio.
func TestRowsOfRunsThatAreNone(t *testing.T) {
	left, failed := outcome("greedy", 1, 80, 50), outcome("tetris", 1, 0, 0)
	left.Result.Unfinished = []string{"x"}
	failed.Err = errors.New("no")
	rows := compare.Rows([]compare.Outcome{outcome("spread", 1, 100, 50), left, failed})
	if !math.IsNaN(rows[1].Ratio) || !math.IsNaN(rows[1].Closed) || rows[1].Unfinished != 1 {
		t.Errorf("%+v", rows[1])
	}
	if !math.IsNaN(rows[2].Ratio) || rows[2].Failed != 1 {
		t.Errorf("%+v", rows[2])
	}
	if alone := compare.Rows([]compare.Outcome{outcome("greedy", 1, 80, 50)}); !math.IsNaN(alone[0].Ratio) {
		t.Errorf("without spread: %+v", alone[0])
	}
}

func TestParseSpec(t *testing.T) {
	s, err := compare.ParseSpec(" greedy-wait:truth:threshold.v100=0.4,pessimism=1 ")
	if err != nil || s.Name != "greedy-wait" || !s.Truth || s.Values["threshold.v100"] != 0.4 || s.Pessimism() != 1 || s.Text != "greedy-wait:truth:threshold.v100=0.4,pessimism=1" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, text := range []string{"", "x", "greedy@f", "greedy:a", "greedy:a=b", "greedy:a=1:a=2", "exec", "greedy:pessimism=99"} {
		if _, err := compare.ParseSpec(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
