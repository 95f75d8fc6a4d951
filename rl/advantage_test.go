package rl

import (
	"math"
	"testing"

	"github.com/cotenant/cotenant/internal/num"
	"pgregory.net/rapid"
)

func TestAdvantagesAgreeWithTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "decisions")
		number := rapid.Float64Range(-10, 10)
		rewards := rapid.SliceOfN(number, n, n).Draw(t, "rewards")
		seconds := rapid.SliceOfN(rapid.Float64Range(0, 50), n, n).Draw(t, "seconds")
		values := rapid.SliceOfN(number, n+1, n+1).Draw(t, "values")
		g := Discount(rapid.Float64Range(0.8, 1).Draw(t, "discount"))
		trace := Trace{rapid.Float64Range(0, 1).Draw(t, "lambda"), rapid.SampledFrom([]float64{0, 1, 0.99}).Draw(t, "lambda per second")}
		got := make([]float64, n)
		Advantages(got, rewards, seconds, values, g, trace)
		for i := range n {
			// A_i = sum_l (product of what lies between) delta_i+l
			want := 0.0
			for l := i; l < n; l++ {
				weight := 1.0
				for j := i; j < l; j++ {
					weight *= math.Pow(float64(g), seconds[j]) * trace.Decision
					if trace.Second != 0 {
						weight *= math.Pow(trace.Second, seconds[j])
					}
				}
				want += weight * (rewards[l] + math.Pow(float64(g), seconds[l])*values[l+1] - values[l])
			}
			if math.Abs(got[i]-want) > 1e-9*(1+math.Abs(want)) {
				t.Fatalf("advantage %d is %g, want %g", i, got[i], want)
			}
		}
	})
}

// With lambda 1 and no critic, an advantage is the discounted integral of what
// follows, however the stream is cut into decisions and events.
func TestTrajectoryIntegratesRewards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := Discount(rapid.SampledFrom([]float64{1, 0.999, 0.9}).Draw(t, "discount"))
		tr, candidates := NewTrajectory(g), num.New(1, 1)
		tr.Flow(100, 100) // before the first decision: nobody's
		tr.Gain(100)
		now, want := 0.0, 0.0
		tr.Add(candidates, nil, Choice{Expert: -1})
		for range rapid.IntRange(1, 20).Draw(t, "events") {
			switch rapid.IntRange(0, 2).Draw(t, "event") {
			case 0:
				rate, dt := rapid.Float64Range(-2, 2).Draw(t, "rate"), rapid.Float64Range(0, 20).Draw(t, "dt")
				tr.Flow(rate, dt)
				// Numerically, in many small steps.
				const steps = 2000
				for s := range steps {
					want += rate * math.Pow(float64(g), now+(float64(s)+0.5)*dt/steps) * dt / steps
				}
				now += dt
			case 1:
				r := rapid.Float64Range(-5, 5).Draw(t, "reward")
				tr.Gain(r)
				want += r * math.Pow(float64(g), now)
			default:
				tr.Add(candidates, nil, Choice{Expert: -1})
			}
		}
		tr.End()
		got := make([]float64, tr.Len())
		Advantages(got, tr.Rewards, tr.Seconds, make([]float64, tr.Len()+1), g, Trace{Decision: 1})
		if math.Abs(got[0]-want) > 1e-4*(1+math.Abs(want)) {
			t.Fatalf("return %g, want %g", got[0], want)
		}
	})
}

func TestSchedule(t *testing.T) {
	for _, c := range []struct {
		s    Schedule
		at   int
		want float64
	}{
		{Constant(3), 0, 3},
		{Constant(3), 100, 3},
		{Schedule{From: 1, To: 0, Steps: 4}, 0, 1},
		{Schedule{From: 1, To: 0, Steps: 4}, 1, 0.75},
		{Schedule{From: 1, To: 0, Steps: 4}, 4, 0},
		{Schedule{From: 1, To: 0, Steps: 4}, 9, 0},
		{Schedule{From: 1, To: 0.01, Steps: 4, Geometric: true}, 2, 0.1},
	} {
		if got := c.s.At(c.at); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v at %d is %g, want %g", c.s, c.at, got, c.want)
		}
	}
}
