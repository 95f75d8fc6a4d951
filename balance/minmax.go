package balance

import (
	"container/heap"
	"fmt"
	"math"
	"slices"
)

// run is a stretch of batch sizes, both ends included.
type run struct{ lo, hi int }

// timing is how long a worker takes for each size that it may take. Times are
// not negative and need not grow with the size.
type timing interface {
	// at is the time of a size that is allowed.
	at(size int) float64
	// top is the run of allowed sizes with a time of at most t that holds the
	// largest of them; false where there is none.
	top(t float64) (run, bool)
	// runs appends all such runs to dst, ascending.
	runs(t float64, dst []run) []run
}

// fit finds the sizes that sum to total with the least longest time: exact
// min-max (LB-BSP, section 4.3: the largest size with a time of at most T, and
// a search on T). Among the vectors of that time it lowers the slowest workers
// first. Sizes with gaps, such as buckets or curves with dips, are settled by
// the set of sums they can reach.
func fit(all []limits, times []timing, total int) ([]int, error) {
	none := func() error {
		return fmt.Errorf("%w: no sizes from the workers' buckets sum to the global batch %d; add a bucket, or a worker without", ErrInfeasible, total)
	}
	t, ok := relaxed(times, total)
	if !ok {
		return nil, none()
	}
	if sizes, ok := descend(times, total, t); ok {
		return sizes, nil
	}
	if sizes, ok := reach(times, total, t); ok {
		return sizes, nil
	}
	// The sets of sizes grow with t, so feasibility is monotone: a search over
	// the bits of t, which for positive floats are in the order of the numbers.
	if sizes, ok := reach(times, total, math.MaxFloat64); !ok {
		return nil, none()
	} else if len(sizes) == 0 {
		return sizes, nil
	}
	lo, hi := math.Float64bits(t), math.Float64bits(math.MaxFloat64)
	var best []int
	for lo+1 < hi {
		mid := lo + (hi-lo)/2
		sizes, ok := reach(times, total, math.Float64frombits(mid))
		if !ok {
			lo = mid
			continue
		}
		best = sizes
		hi = math.Float64bits(longest(times, sizes))
	}
	if best == nil {
		best, _ = reach(times, total, math.Float64frombits(hi))
	}
	return best, nil
}

// longest is the time of the slowest worker.
func longest(times []timing, sizes []int) float64 {
	t := 0.0
	for i, s := range sizes {
		t = max(t, times[i].at(s))
	}
	return t
}

// relaxed is the least t for which the largest sizes sum to at least total: no
// vector is faster.
func relaxed(times []timing, total int) (float64, bool) {
	if tables := tablesOf(times); tables != nil {
		return relaxedTables(tables, total)
	}
	enough := func(t float64) bool {
		sum := 0
		for _, c := range times {
			r, ok := c.top(t)
			if !ok {
				return false
			}
			sum += r.hi
		}
		return sum >= total
	}
	if enough(0) {
		return 0, true
	}
	if !enough(math.MaxFloat64) {
		return 0, false
	}
	lo, hi := uint64(0), math.Float64bits(math.MaxFloat64)
	for lo+1 < hi {
		mid := lo + (hi-lo)/2
		if enough(math.Float64frombits(mid)) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return math.Float64frombits(hi), true
}

// tablesOf are the times as tables of sizes without gaps; nil if they are not.
func tablesOf(times []timing) []*table {
	out := make([]*table, len(times))
	for i, c := range times {
		t, ok := c.(*table)
		if !ok {
			return nil
		}
		out[i] = t
	}
	return out
}

// window is what is left of the search for one worker's largest size.
type window struct {
	*table
	from, to int // counts of grains at the lower and the upper end
}

// relaxedTables is relaxed, with the search for each worker's size narrowed as
// the times are.
func relaxedTables(tables []*table, total int) (float64, bool) {
	open := make([]window, 0, len(tables))
	closed := 0 // the sizes of those that need no search any more
	// Below floor somebody has no size.
	floor, ceiling := 0.0, 0.0
	for _, t := range tables {
		open = append(open, window{t, 0, len(t.times)})
		if t.lo > 0 {
			floor = max(floor, t.least[0])
		}
		ceiling = max(ceiling, t.least[len(t.least)-1])
	}
	mids := make([]int, len(open))
	enough := func(t float64) bool {
		sum := closed
		for i, w := range open {
			mids[i] = w.count(t, w.from, w.to, w.hint)
			sum += w.largest(mids[i])
		}
		return sum >= total
	}
	// narrow takes over what enough has found.
	narrow := func(fits bool) {
		kept := open[:0]
		for i, w := range open {
			w.hint = mids[i]
			if fits {
				w.to = mids[i]
			} else {
				w.from = mids[i]
			}
			if w.from == w.to {
				closed += w.largest(w.to)
				continue
			}
			kept = append(kept, w)
		}
		open = kept // not empty once both ends are known: their sums differ
	}
	if enough(floor) {
		return floor, true
	}
	if !enough(ceiling) {
		return 0, false
	}
	// Out from what was found last, then halving.
	guess, up := floor, 0.0
	for _, t := range tables {
		if t.hint > 0 && t.hint <= len(t.least) {
			guess = max(guess, t.least[t.hint-1])
		}
	}
	lo, hi := floor, ceiling
	for factor := 1.01; guess > lo && guess < hi; factor *= factor {
		fits := enough(guess)
		narrow(fits)
		switch {
		case fits:
			hi = guess
			guess /= factor
		default:
			lo = guess
			guess *= factor
		}
		if up != 0 && (up > 0) == fits {
			break
		}
		if up = 1; fits {
			up = -1
		}
	}
	from, to := math.Float64bits(lo), math.Float64bits(hi)
	for from+1 < to {
		mid := from + (to-from)/2
		fits := enough(math.Float64frombits(mid))
		narrow(fits)
		if fits {
			to = mid
		} else {
			from = mid
		}
	}
	return math.Float64frombits(to), true
}

// descend starts from the largest sizes of a time of at most t and takes
// single samples from the slowest worker until the total is met. False where
// a gap in the sizes is in the way.
func descend(times []timing, total int, t float64) ([]int, bool) {
	sizes := make([]int, len(times))
	room, excess := 0, -total
	q := slowest{}
	for i, c := range times {
		r, ok := c.top(t)
		if !ok {
			return nil, false
		}
		sizes[i] = r.hi
		excess += r.hi
		room += r.hi - r.lo
		if r.hi > r.lo {
			q = append(q, step{i, r.lo, c.at(r.hi)})
		}
	}
	if excess < 0 || room < excess {
		return nil, false
	}
	heap.Init(&q)
	// By single samples; by more where that would take many steps.
	by := max(1, excess/(64*len(times)))
	for excess > 0 {
		s := &q[0]
		give := min(by, excess, sizes[s.worker]-s.lo)
		sizes[s.worker] -= give
		excess -= give
		if sizes[s.worker] == s.lo {
			heap.Pop(&q)
			continue
		}
		s.time = times[s.worker].at(sizes[s.worker])
		heap.Fix(&q, 0)
	}
	return sizes, true
}

type step struct {
	worker, lo int
	time       float64
}

// slowest is a heap of workers that can give a sample, the slowest on top.
type slowest []step

func (q slowest) Len() int { return len(q) }
func (q slowest) Less(i, j int) bool {
	return q[i].time > q[j].time || q[i].time == q[j].time && q[i].worker < q[j].worker
}
func (q slowest) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *slowest) Push(x any)   { *q = append(*q, x.(step)) }
func (q *slowest) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// maxReach bounds the memory of reach, in bits.
const maxReach = 1 << 31

// reach finds sizes of a time of at most t that sum to total, by the set of
// sums that the first workers can reach, as bits.
func reach(times []timing, total int, t float64) ([]int, bool) {
	n := len(times)
	all := make([][]run, n)
	least, unit := 0, 0
	for i, c := range times {
		all[i] = c.runs(t, nil)
		if len(all[i]) == 0 {
			return nil, false
		}
		first := all[i][0].lo
		least += first
		for _, r := range all[i] {
			unit = gcd(unit, r.lo-first)
			if r.hi > r.lo {
				unit = 1
			}
		}
	}
	rest := total - least
	if rest < 0 || unit == 0 && rest > 0 || unit > 0 && rest%unit != 0 {
		return nil, false
	}
	unit = max(unit, 1)
	width := rest/unit + 1
	if n > maxReach/width {
		return nil, false
	}
	sums := make([]bits, n+1)
	sums[0] = newBits(width)
	sums[0].set(0)
	for i, runs := range all {
		sums[i+1] = newBits(width)
		for _, r := range runs {
			sums[i+1].orShifted(sums[i], (r.lo-runs[0].lo)/unit, (r.hi-runs[0].lo)/unit)
		}
	}
	if !sums[n].has(width - 1) {
		return nil, false
	}
	sizes := make([]int, n)
	left := width - 1
	for i := n - 1; i >= 0; i-- {
		sizes[i], left = pick(all[i], sums[i], times[i], left, unit)
	}
	return sizes, true
}

// pick is a size of a worker such that what is left can be reached by those
// before it: the fastest such size, the largest of equals.
func pick(runs []run, before bits, times timing, left, unit int) (size, rest int) {
	first := runs[0].lo
	best := math.Inf(1)
	size, rest = -1, 0
	for _, r := range slices.Backward(runs) {
		for s := r.hi; s >= r.lo; s -= unit {
			at := left - (s-first)/unit
			if at < 0 || !before.has(at) {
				continue
			}
			if t := times.at(s); t < best {
				best, size, rest = t, s, at
			}
		}
	}
	return size, rest
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// bits is a set of small numbers.
type bits struct {
	words []uint64
	width int
}

func newBits(width int) bits { return bits{make([]uint64, (width+63)/64), width} }

func (b bits) set(i int)      { b.words[i/64] |= 1 << (i % 64) }
func (b bits) has(i int) bool { return b.words[i/64]>>(i%64)&1 == 1 }

// orShifted adds all s + k with s in from and k in lo..hi, as far as they fit.
func (b bits) orShifted(from bits, lo, hi int) {
	// from spread over 0..span by doubling, then shifted.
	span := min(hi, b.width-1) - lo
	if span < 0 {
		return
	}
	spread := bits{slices.Clone(from.words), from.width}
	for have := 0; have < span; {
		by := min(have+1, span-have)
		next := bits{slices.Clone(spread.words), spread.width}
		next.or(spread, by)
		spread, have = next, have+by
	}
	b.or(spread, lo)
}

// or adds all s + by with s in from.
func (b bits) or(from bits, by int) {
	whole, part := by/64, by%64
	for i := len(b.words) - 1; i >= whole; i-- {
		w := from.words[i-whole] << part
		if part > 0 && i > whole {
			w |= from.words[i-whole-1] >> (64 - part)
		}
		b.words[i] |= w
	}
	if extra := b.width % 64; extra > 0 {
		b.words[len(b.words)-1] &= 1<<extra - 1
	}
}
