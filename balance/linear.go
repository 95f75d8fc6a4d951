package balance

import (
	"cmp"
	"math"
	"slices"
)

// linear is the time of a worker of constant speed: fixed + size / speed; a
// worker that takes nothing takes no time.
type linear struct {
	limits
	speed float64 // samples a second, positive
	fixed float64 // seconds, not negative
}

func (c linear) at(size int) float64 {
	if size == 0 {
		return 0
	}
	return c.fixed + float64(size)/c.speed
}

// most is the largest size of at most t, within lo-1..hi.
func (c linear) most(t float64) int {
	if c.at(c.hi) <= t {
		return c.hi
	}
	s := min(max((t-c.fixed)*c.speed, float64(c.lo-1)), float64(c.hi))
	size := int(s)
	// The division and the product round each on their own.
	for size < c.hi && c.at(size+1) <= t {
		size++
	}
	for size >= c.lo && c.at(size) > t {
		size--
	}
	return size
}

func (c linear) top(t float64) (run, bool) {
	hi := c.most(t)
	if hi < c.lo {
		return run{}, false
	}
	if c.sizes == nil {
		return run{c.lo, hi}, true
	}
	at, found := slices.BinarySearch(c.sizes, hi)
	if !found {
		at--
	}
	return run{c.sizes[at], c.sizes[at]}, true
}

func (c linear) runs(t float64, dst []run) []run {
	hi := c.most(t)
	if c.sizes == nil {
		if hi >= c.lo {
			dst = append(dst, run{c.lo, hi})
		}
		return dst
	}
	for _, s := range c.sizes {
		if s <= hi {
			dst = append(dst, run{s, s})
		}
	}
	return dst
}

// equalTimes treats all workers alike.
func equalTimes(all []limits) []timing {
	times := make([]timing, len(all))
	for i, l := range all {
		times[i] = linear{limits: l, speed: 1}
	}
	return times
}

// proportional divides the total in proportion to the speeds, within the
// limits: x_i = clamp(T v_i) with the T that meets the total, rounded by
// largest remainder. Where there are buckets it is the exact min-max instead.
func proportional(all []limits, speeds, fixed []float64, total int) ([]int, error) {
	buckets := slices.ContainsFunc(all, func(l limits) bool { return l.sizes != nil })
	if buckets {
		times := make([]timing, len(all))
		for i, l := range all {
			times[i] = linear{l, speeds[i], fixed[i]}
		}
		return fit(all, times, total)
	}
	ideal := make([]float64, len(all))
	fill := func(t float64) (sum float64) {
		for i, l := range all {
			ideal[i] = min(max((t-fixed[i])*speeds[i], float64(l.lo)), float64(l.hi))
			sum += ideal[i]
		}
		return sum
	}
	lo, hi := 0.0, 1.0
	for fill(hi) < float64(total) && hi < math.MaxFloat64/4 {
		hi *= 2
	}
	for range 200 {
		mid := lo + (hi-lo)/2
		if mid == lo || mid == hi {
			break
		}
		if fill(mid) < float64(total) {
			lo = mid
		} else {
			hi = mid
		}
	}
	fill(hi)
	return round(all, ideal, total), nil
}

// round turns ideal sizes into whole ones of the same sum by largest
// remainder, within the limits, which must allow the total.
func round(all []limits, ideal []float64, total int) []int {
	sizes := make([]int, len(all))
	left := total
	order := make([]int, len(all))
	for i, x := range ideal {
		sizes[i] = min(max(int(math.Floor(x)), all[i].lo), all[i].hi)
		left -= sizes[i]
		order[i] = i
	}
	gap := func(i int) float64 { return ideal[i] - float64(sizes[i]) }
	for left != 0 {
		up := left > 0
		slices.SortStableFunc(order, func(a, b int) int {
			if up {
				return cmp.Compare(gap(b), gap(a))
			}
			return cmp.Compare(gap(a), gap(b))
		})
		// A pass moves all by the same, so that what clamping left over is shared
		// out evenly; that is 1 in the last, which the order of gaps decides.
		by := max(1, abs(left)/len(all))
		before := left
		for _, i := range order {
			if up {
				d := min(by, left, all[i].hi-sizes[i])
				sizes[i] += d
				left -= d
			} else {
				d := min(by, -left, sizes[i]-all[i].lo)
				sizes[i] -= d
				left += d
			}
		}
		if left == before {
			break // excluded by checkAll
		}
	}
	return sizes
}

func abs(x int) int { return max(x, -x) }
