package balance

import (
	"math"
	"slices"
)

// byGPU learns each worker's curve of time by size and finds the exact min-max
// on it (LB-BSP, section 4.3). While it learns it tries sizes that may be
// faster; then it stays until the predicted gain is worth a move.
type byGPU struct {
	// Since is how many decisions ago learning began, Spent what trying has cost
	// since, in iterations.
	Since int     `json:"since"`
	Spent float64 `json:"spent"`
	walk  walk
}

// Constants of learning.
const (
	learning   = 100   // decisions
	optimism   = 2.0   // standard deviations below the mean that the first try hopes for; the last hopes for none
	caution    = 0.35  // and above it, of what is not tried
	fear       = 0.5   // standard deviations above the mean at which the cost of a try is reckoned
	worthTry   = 0.004 // gain hoped for
	maxTryCost = 0.25  // predicted cost of one try
	maxKin     = 32    // workers whose curves are compared
	rarely     = 8     // decisions of more workers than that are made once in so many,
	rotation   = 3     // of whose curves one in so many is learned anew each time
	tryBudget  = 2.0   // iterations that all tries may cost, and per decision:
	tryRate    = 0.004
)

func (g *byGPU) allocate(b *Balancer, current []int, _ int64) ([]int, error) {
	all := b.withinMemory()
	noise := b.noise()
	n := len(b.workers)
	known := false
	curves := make([]*curve, n)
	for i, w := range b.workers {
		curves[i] = &b.known[w.Name].Curve
		known = known || len(curves[i].Cells) > 0
	}
	if !known {
		if current != nil {
			return current, nil
		}
		return b.equal(), nil
	}
	g.Since++
	grain := b.grain()
	if n > maxKin && g.Since%rarely != 1 && current != nil && holds(all, current, b.options.GlobalBatch) {
		return current, nil
	}
	for i, c := range curves {
		lo, hi := span(all[i], grain, n)
		fits := c.Lo == lo && c.Grain == grain && len(c.Mean) == hi-lo+1
		if n > maxKin && fits && (i+g.Since/rarely)%rotation != 0 {
			continue
		}
		var others *shape
		if n > 1 && n <= maxKin {
			others = kin(curves, i, lo, hi, grain)
		}
		g.walk.learn(c, lo, hi, grain, noise, others)
	}
	for _, c := range curves {
		if len(c.Cells) == 0 {
			c.guess(curves)
		}
	}
	shade := func(by float64) []timing {
		times := make([]timing, n)
		for i, c := range curves {
			times[i] = c.timing(all[i], by)
		}
		return times
	}
	means := shade(0)
	safe, err := fit(all, shade(caution), b.options.GlobalBatch)
	if err != nil {
		return nil, err
	}
	expected := longest(means, safe)
	if g.Since > learning {
		if current != nil && holds(all, current, b.options.GlobalBatch) &&
			expected > longest(means, current)*(1-max(b.options.Threshold, 0)) {
			return current, nil
		}
		return safe, nil
	}
	if current != nil && holds(all, current, b.options.GlobalBatch) && longest(means, current) <= expected {
		safe = current
		expected = longest(means, current)
	}
	feared := shade(fear)
	for _, share := range []float64{1, 0.5, 0.25} {
		hopes := shade(-optimism * share * (1 - float64(g.Since)/(learning+1)))
		bold, err := fit(all, hopes, b.options.GlobalBatch)
		if err != nil {
			return nil, err
		}
		gain := 1 - longest(hopes, bold)/expected
		cost := max(0, longest(feared, bold)/expected-1)
		if gain > worthTry && cost < maxTryCost && g.Spent+cost < tryBudget+tryRate*float64(g.Since) && !slices.Equal(bold, safe) {
			g.Spent += cost
			return bold, nil
		}
	}
	return safe, nil
}

// noise is the relative standard deviation of the job's measurements.
func (b *Balancer) noise() float64 {
	squares, free := priorFree*priorNoise*priorNoise, float64(priorFree)
	for _, w := range b.workers {
		c := &b.known[w.Name].Curve
		squares += c.Squares
		free += c.Free
	}
	return min(max(math.Sqrt(squares/free), 0.003), 0.5)
}
