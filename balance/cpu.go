package balance

import (
	"slices"
)

// bySpeed gives each worker a batch in proportion to its predicted speed
// (LB-BSP, section 4.2). With upload, the time of sending the update counts
// too: sizes are such that compute and upload together take as long everywhere.
type bySpeed struct{ upload bool }

func (s bySpeed) allocate(b *Balancer, current []int, _ int64) ([]int, error) {
	speeds, fixed, known := b.speeds(s.upload)
	if !known {
		if current != nil {
			return current, nil
		}
		return b.equal(), nil
	}
	all := b.withinMemory()
	sizes, err := proportional(all, speeds, fixed, b.options.GlobalBatch)
	if err != nil {
		return nil, err
	}
	if current == nil || !holds(all, current, b.options.GlobalBatch) {
		return sizes, nil
	}
	if slowest, next := worst(current, speeds, fixed), worst(sizes, speeds, fixed); next > slowest*(1-max(b.options.Threshold, 0)) {
		return current, nil
	}
	return sizes, nil
}

// worst is the predicted time of the slowest worker in seconds.
func worst(sizes []int, speeds, fixed []float64) float64 {
	t := 0.0
	for i, s := range sizes {
		if s > 0 {
			t = max(t, fixed[i]+float64(s)/speeds[i])
		}
	}
	return t
}

// speeds are the predicted ones in samples a second, fixed the predicted
// uploads in seconds; workers that have not reported get the median of the
// others. Known is false where nobody has.
func (b *Balancer) speeds(upload bool) (speeds, fixed []float64, known bool) {
	speeds, fixed = make([]float64, len(b.workers)), make([]float64, len(b.workers))
	var have, links []float64
	for i, w := range b.workers {
		m := b.known[w.Name]
		if v := b.forecaster.speed(m); v > 0 {
			speeds[i], fixed[i] = v, m.Upload
			have, links = append(have, v), append(links, m.Upload)
		}
	}
	if len(have) == 0 {
		return speeds, fixed, false
	}
	slices.Sort(have)
	slices.Sort(links)
	for i, v := range speeds {
		if v == 0 {
			speeds[i], fixed[i] = have[len(have)/2], links[len(links)/2]
		}
	}
	if !upload {
		clear(fixed)
	}
	return speeds, fixed, true
}

// withinMemory are the limits without the sizes that ran out of memory, nor
// those close to them. Where no vector is left, memory is not looked at.
func (b *Balancer) withinMemory() []limits {
	capped := false
	all := slices.Clone(b.limits)
	for i, w := range b.workers {
		m := b.known[w.Name]
		if m.Burst == 0 {
			continue
		}
		// Half way between what ran and what did not: near the limit, memory that
		// is fragmented decides.
		hi := max(m.Fits, (m.Fits+m.Burst)/2)
		if hi >= m.Burst {
			hi = m.Burst - 1
		}
		if hi >= all[i].hi {
			continue
		}
		capped = true
		w.Max = max(hi, w.Min, 1)
		l, err := limitsOf(w, b.options.GlobalBatch)
		if err != nil {
			return b.limits
		}
		all[i] = l
	}
	if !capped {
		return all
	}
	if _, err := proportional(all, ones(len(all)), make([]float64, len(all)), b.options.GlobalBatch); err != nil {
		return b.limits
	}
	most := 0
	for _, l := range all {
		most += l.hi
	}
	if most < b.options.GlobalBatch {
		return b.limits
	}
	return all
}

func ones(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = 1
	}
	return v
}
