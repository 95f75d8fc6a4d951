package balance

import (
	"fmt"
	"math"
	"slices"
)

// limits are what a worker may take: Min..Max, or only the sizes listed.
type limits struct {
	lo, hi int
	sizes  []int // ascending; nil where all of lo..hi are allowed
}

// maxWorkers and maxBatch bound what is asked from outside, so that no request
// exhausts the memory.
const (
	maxWorkers = 1 << 16
	maxBatch   = 1 << 40
	maxBuckets = 1 << 12
	maxName    = 256
)

// limitsOf checks a worker's limits; total is the global batch.
func limitsOf(w Worker, total int) (limits, error) {
	bad := func(field string, value any, why string) (limits, error) {
		return limits{}, fmt.Errorf("%w: worker %q: %s: %v %s", ErrInvalid, short(w.Name), field, value, why)
	}
	switch {
	case w.Name == "":
		return bad("name", `""`, "is empty; every worker needs one")
	case len(w.Name) > maxName:
		return bad("name", len(w.Name), fmt.Sprintf("bytes are more than %d", maxName))
	case w.Min < 0:
		return bad("min", w.Min, "is negative")
	case w.Max < 0:
		return bad("max", w.Max, "is negative; 0 is no limit")
	case w.Max > 0 && w.Max < w.Min:
		return bad("max", w.Max, fmt.Sprintf("is less than min, %d", w.Min))
	case w.Data < 0:
		return bad("data", w.Data, "is negative; 0 is no limit")
	case len(w.Buckets) > maxBuckets:
		return bad("buckets", len(w.Buckets), fmt.Sprintf("are more than %d", maxBuckets))
	}
	l := limits{lo: w.Min, hi: total}
	if w.Max > 0 {
		l.hi = min(l.hi, w.Max)
	}
	if w.Data > 0 {
		l.hi = min(l.hi, w.Data)
	}
	if l.hi < l.lo {
		return bad("min", w.Min, fmt.Sprintf("is more than the %d that the worker's data or the global batch allow", l.hi))
	}
	if len(w.Buckets) == 0 {
		return l, nil
	}
	for _, b := range w.Buckets {
		if b < 0 {
			return bad("buckets", b, "is negative")
		}
		if b >= l.lo && b <= l.hi {
			l.sizes = append(l.sizes, b)
		}
	}
	slices.Sort(l.sizes)
	l.sizes = slices.Compact(l.sizes)
	if len(l.sizes) == 0 {
		return bad("buckets", w.Buckets[0], fmt.Sprintf("and the others lie outside %d..%d", l.lo, l.hi))
	}
	l.lo, l.hi = l.sizes[0], l.sizes[len(l.sizes)-1]
	return l, nil
}

// short cuts a name to what fits on a line.
func short(name string) string {
	if len(name) > 60 {
		return name[:60] + "..."
	}
	return name
}

// allows says whether a size is within the limits.
func (l limits) allows(size int) bool {
	if size < l.lo || size > l.hi {
		return false
	}
	if l.sizes == nil {
		return true
	}
	_, found := slices.BinarySearch(l.sizes, size)
	return found
}

// checkAll checks all workers' limits and that some vector meets the total.
func checkAll(workers []Worker, total int) ([]limits, error) {
	switch {
	case total <= 0 || total > maxBatch:
		return nil, fmt.Errorf("%w: global batch: %d is not in 1..%d", ErrInvalid, total, maxBatch)
	case len(workers) == 0:
		return nil, fmt.Errorf("%w: workers: none; a generation has at least one", ErrInvalid)
	case len(workers) > maxWorkers:
		return nil, fmt.Errorf("%w: workers: %d are more than %d", ErrInvalid, len(workers), maxWorkers)
	}
	seen := make(map[string]bool, len(workers))
	all := make([]limits, len(workers))
	least, most := 0, 0
	buckets := false
	for i, w := range workers {
		if seen[w.Name] {
			return nil, fmt.Errorf("%w: workers: two have the name %q", ErrInvalid, short(w.Name))
		}
		seen[w.Name] = true
		l, err := limitsOf(w, total)
		if err != nil {
			return nil, err
		}
		all[i] = l
		least = min(least+l.lo, math.MaxInt/2)
		most = min(most+l.hi, math.MaxInt/2)
		buckets = buckets || l.sizes != nil
	}
	switch {
	case least > total:
		return nil, fmt.Errorf("%w: the least sizes of the workers sum to %d, more than the global batch %d; lower min or raise the global batch", ErrInfeasible, least, total)
	case most < total:
		return nil, fmt.Errorf("%w: the largest sizes of the workers sum to %d, less than the global batch %d; raise max, add workers or lower the global batch", ErrInfeasible, most, total)
	}
	if buckets {
		if _, err := fit(all, equalTimes(all), total); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// holds says whether the sizes are within the limits and sum to the total.
func holds(all []limits, sizes []int, total int) bool {
	if len(sizes) != len(all) {
		return false
	}
	sum := 0
	for i, s := range sizes {
		if !all[i].allows(s) {
			return false
		}
		sum += s
	}
	return sum == total
}

func (l limits) equal(m limits) bool {
	return l.lo == m.lo && l.hi == m.hi && (l.sizes == nil) == (m.sizes == nil) && slices.Equal(l.sizes, m.sizes)
}
