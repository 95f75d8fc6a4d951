package balance

import (
	"math"
	"slices"
)

// The sizes of a curve, per worker and together of all.
const (
	maxGrains = 4096
	minGrains = 256
	allGrains = 1 << 20
)

// grain is how many samples apart the sizes of curves are: 1, but for global
// batches of many thousands, such as those counted in tokens.
func (b *Balancer) grain() int {
	n := len(b.workers)
	// The largest batch worth a thought: all, or 32 times the mean share.
	most := min(b.options.GlobalBatch, 32*(b.options.GlobalBatch/n+1))
	per := grains(n)
	return max(1, (most+per-1)/per)
}

func grains(workers int) int { return min(max(allGrains/workers, minGrains), maxGrains) }

// span is the range of sizes, in grains, for which a worker's curve is kept.
func span(l limits, grain, workers int) (lo, hi int) {
	lo = max(l.lo/grain, 1)
	return lo, min(max(l.hi/grain, lo), lo+grains(workers))
}

// timing is the curve with times off by a number of standard deviations, but
// for the size that is sure, 0 for none. A worker that takes nothing takes no
// time.
func (c *curve) timing(l limits, by float64, sure int) timing {
	if t := c.cautious; t != nil && by == caution && t.limits.equal(l) {
		return t.timing()
	}
	t := &table{limits: l, unit: c.Grain, first: c.Lo, times: make([]float64, len(c.Mean))}
	for k, m := range c.Mean {
		t.times[k] = math.Exp(m + by*c.SD[k])
	}
	if by < 0 {
		c.hope(t.times, -by/optimism)
	}
	if sure > 0 {
		t.times[c.index(sure)] = c.at(sure)
	}
	t.most = min(l.hi, (c.Lo+len(c.Mean))*c.Grain-1)
	t.least = slices.Clone(t.times)
	for k := len(t.least) - 2; k >= 0; k-- {
		t.least[k] = min(t.least[k], t.least[k+1])
	}
	if by == caution {
		t.hint = c.hint
		c.cautious = t
	}
	return t.timing()
}

func (t *table) timing() timing {
	if t.sizes != nil {
		return bucketed{t}
	}
	return t
}

// table is a time for each grain of sizes, alike within the grain.
type table struct {
	limits
	unit  int       // samples in a grain
	first int       // grain of times[0]
	hint  int       // count found last
	most  int       // the largest size that the grains have
	times []float64 // seconds
	least []float64 // of this grain and all larger ones
}

func (t *table) at(size int) float64 {
	if size == 0 {
		return 0
	}
	return t.times[min(max(size/t.unit-t.first, 0), len(t.times)-1)]
}

// sized are the sizes of the grains from..to, as far as the limits go.
func (t *table) sized(from, to int) run {
	r := run{(t.first + from) * t.unit, (t.first+to+1)*t.unit - 1}
	if from == 0 {
		r.lo = t.lo // with 0, and what is less than a grain
	}
	return run{max(r.lo, t.lo), min(r.hi, t.most)}
}

func (t *table) top(most float64) (run, bool) {
	t.hint = t.count(most, 0, len(t.least), t.hint)
	return t.upTo(t.hint, most)
}

// count is the number of grains up to the largest in time, which is known to
// be within from..to and believed to be close to the hint.
func (t *table) count(most float64, from, to, hint int) int {
	// least ascends.
	for by := 1; from < to; by *= 2 {
		at := min(max(hint, from), to-1)
		if t.least[at] <= most {
			from = at + 1
			hint = at + by
			if hint >= to {
				break
			}
		} else {
			to = at
			hint = at - by
			if hint < from {
				break
			}
		}
	}
	for from < to {
		if mid := (from + to) / 2; t.least[mid] <= most {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return from
}

// largest is the largest size of so many grains.
func (t *table) largest(count int) int {
	if count == 0 {
		return 0
	}
	return min((t.first+count)*t.unit-1, t.most)
}

// upTo is the run of a time of at most most that ends with the grain of that
// count.
func (t *table) upTo(count int, most float64) (run, bool) {
	if count == 0 {
		return run{0, 0}, t.lo == 0
	}
	from := count - 1
	for from > 0 && t.times[from-1] <= most {
		from--
	}
	return t.sized(from, count-1), true
}

func (t *table) runs(most float64, dst []run) []run {
	from := -1
	if t.lo == 0 && t.times[0] > most {
		dst = append(dst, run{0, 0})
	}
	for k, v := range t.times {
		switch in := v <= most; {
		case in && from < 0:
			from = k
		case !in && from >= 0:
			dst = append(dst, t.sized(from, k-1))
			from = -1
		}
	}
	if from >= 0 {
		dst = append(dst, t.sized(from, len(t.times)-1))
	}
	return dst
}

// bucketed is a table of which only the limits' sizes are allowed.
type bucketed struct{ *table }

func (t bucketed) top(most float64) (run, bool) {
	for _, s := range slices.Backward(t.sizes) {
		if t.at(s) <= most {
			return run{s, s}, true
		}
	}
	return run{}, false
}

func (t bucketed) runs(most float64, dst []run) []run {
	for _, s := range t.sizes {
		if t.at(s) <= most {
			dst = append(dst, run{s, s})
		}
	}
	return dst
}
