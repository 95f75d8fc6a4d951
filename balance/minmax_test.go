package balance

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// brute is the least longest time over all vectors, and whether there is one.
func brute(all []limits, times []timing, total int) (float64, bool) {
	if len(all) == 0 {
		return 0, total == 0
	}
	best, found := math.Inf(1), false
	for s := all[0].lo; s <= all[0].hi && s <= total; s++ {
		if !all[0].allows(s) {
			continue
		}
		if rest, ok := brute(all[1:], times[1:], total-s); ok {
			best, found = min(best, max(rest, times[0].at(s))), true
		}
	}
	return best, found
}

func drawLimits(t *rapid.T) limits {
	l := limits{lo: rapid.IntRange(0, 4).Draw(t, "lo")}
	l.hi = l.lo + rapid.IntRange(0, 9).Draw(t, "span")
	if rapid.Bool().Draw(t, "buckets") {
		for s := l.lo; s <= l.hi; s++ {
			if s == l.lo || rapid.Bool().Draw(t, "bucket") {
				l.sizes = append(l.sizes, s)
			}
		}
		l.hi = l.sizes[len(l.sizes)-1]
	}
	return l
}

func TestFitIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "workers")
		var all []limits
		var times []timing
		for range n {
			l := drawLimits(t)
			all = append(all, l)
			if rapid.Bool().Draw(t, "linear") {
				times = append(times, linear{l, rapid.Float64Range(0.1, 10).Draw(t, "speed"), rapid.Float64Range(0, 2).Draw(t, "fixed")})
				continue
			}
			c := curve{Lo: max(l.lo, 1), Grain: 1}
			for range max(l.hi, c.Lo) - c.Lo + 1 {
				c.Mean = append(c.Mean, float64(rapid.IntRange(-4, 4).Draw(t, "log time")))
			}
			c.SD = make(floats, len(c.Mean))
			times = append(times, c.timing(l, 0, 0))
		}
		total := rapid.IntRange(0, 30).Draw(t, "total")
		want, possible := brute(all, times, total)
		sizes, err := fit(all, times, total)
		if possible != (err == nil) {
			t.Fatalf("fit: %v, brute force finds one: %v", err, possible)
		}
		if err != nil {
			return
		}
		if !holds(all, sizes, total) {
			t.Fatalf("%v does not sum to %d within the limits %v", sizes, total, all)
		}
		if got := longest(times, sizes); got != want {
			t.Fatalf("%v takes %v, the least is %v", sizes, got, want)
		}
	})
}

func TestFitOfManyWorkersWithBuckets(t *testing.T) {
	var all []limits
	for i := range 1000 {
		all = append(all, limits{lo: 8, hi: 64, sizes: []int{8, 16, 24, 32, 48, 64}[:3+i%4]})
		all[i].hi = all[i].sizes[len(all[i].sizes)-1]
	}
	sizes, err := fit(all, equalTimes(all), 24_000)
	if err != nil || !holds(all, sizes, 24_000) {
		t.Fatalf("sizes of 1000 workers from buckets: %v", err)
	}
	if got := longest(equalTimes(all), sizes); got != 24 {
		t.Errorf("longest %v, want 24: every worker has that bucket", got)
	}
}

func TestProportionalIsCloseToItsIdeal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "workers")
		total := rapid.IntRange(n, 5000).Draw(t, "total")
		all := make([]limits, n)
		speeds, sum := make([]float64, n), 0.0
		for i := range all {
			all[i] = limits{0, total, nil}
			speeds[i] = rapid.Float64Range(1, 1000).Draw(t, "speed")
			sum += speeds[i]
		}
		sizes, err := proportional(all, speeds, make([]float64, n), total)
		if err != nil || !holds(all, sizes, total) {
			t.Fatalf("%v sums not to %d: %v", sizes, total, err)
		}
		for i, s := range sizes {
			if ideal := float64(total) * speeds[i] / sum; math.Abs(float64(s)-ideal) >= 1.0001 {
				t.Errorf("size %d is %d, its ideal %v", i, s, ideal)
			}
		}
	})
}
