package rl

import (
	"math"
	"testing"

	"github.com/cotenant/cotenant/internal/num"
	"pgregory.net/rapid"
)

// timed is a trajectory with decisions at these times.
func timed(group uint64, times ...float64) *Trajectory {
	t := NewTrajectory(1)
	t.Group = group
	now := 0.0
	for _, at := range times {
		t.Flow(0, at-now)
		t.Add(num.New(2, 1), nil, Choice{Expert: -1})
		now = at
	}
	t.End()
	return t
}

func TestSharedTakesOutWhatAllMet(t *testing.T) {
	// Two episodes of one group met the same rise; a third is alone.
	ts := []*Trajectory{timed(1, 1, 2, 4), timed(1, 1, 3), timed(0, 1, 2)}
	advantages := [][]float64{{10, 20, 40}, {10, 30}, {5, 7}}
	gone := Shared(ts, advantages)
	// The second episode has 10, 20 (half way), 30 (its last) at the times of the
	// first; the first 10, 30 at those of the second.
	c := (10*10 + 20*20 + 40*30 + 10*10 + 30*30) / (10.*10 + 20*20 + 30*30 + 10*10 + 30*30)
	c = min(c, 1)
	want := [][]float64{{10 - 10*c, 20 - 20*c, 40 - 30*c}, {10 - 10*c, 30 - 30*c}, {5, 7}}
	for i := range want {
		for d := range want[i] {
			if math.Abs(advantages[i][d]-want[i][d]) > 1e-9 {
				t.Errorf("episode %d, decision %d: %g, want %g", i, d, advantages[i][d], want[i][d])
			}
		}
	}
	if gone < 0.8 || gone > 1 {
		t.Errorf("%g of the variance is gone", gone)
	}
}

// It never adds variance, and leaves alone what nothing explains.
func TestPropertySharedOnlyTakesVariance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ts []*Trajectory
		var advantages [][]float64
		before, after := 0.0, 0.0
		for range rapid.IntRange(1, 6).Draw(t, "episodes") {
			gaps := rapid.SliceOfN(rapid.Float64Range(0, 3), 1, 8).Draw(t, "gaps")
			now, times := 0.0, []float64{}
			for _, g := range gaps {
				now += g
				times = append(times, now)
			}
			ts = append(ts, timed(rapid.Uint64Range(0, 2).Draw(t, "group"), times...))
			as := rapid.SliceOfN(rapid.Float64Range(-5, 5), len(gaps), len(gaps)).Draw(t, "advantages")
			advantages = append(advantages, as)
			for _, a := range as {
				before += a * a
			}
		}
		gone := Shared(ts, advantages)
		for _, as := range advantages {
			for _, a := range as {
				after += a * a
			}
		}
		if after > before*(1+1e-9) || math.IsNaN(gone) || gone < -1e-9 {
			t.Fatalf("squares %g became %g, it says %g", before, after, gone)
		}
	})
}
