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
	// Again: a worker has changed, and most is known already.
	Again bool `json:"again,omitempty"`
	// Tried is when something was tried last, as iteration + 1: where reports take
	// more than an iteration, it is not tried again before they tell.
	Tried int64 `json:"tried,omitempty"`
	// Of many workers: how often study was called, and what it would try next.
	Studied int   `json:"studied,omitempty"`
	Bold    []int `json:"bold,omitempty"`

	walk walk
}

// Constants of learning.
const (
	learning   = 100   // decisions, with tries that become less bold; shares move for any gain
	settling   = 8     // of them without tries, the last: learning does not end amid one
	relearning = 28    // of them with tries, after a change
	optimism   = 3.25  // standard deviations below the mean that the first try hopes for; the last hopes for none
	caution    = 0.12  // and above it, of what is not tried
	fear       = 0.35  // standard deviations above the mean at which the cost of a try is reckoned
	worthTry   = 0.003 // gain hoped for
	maxTryCost = 0.3   // predicted cost of one try
	tryBudget  = 2.0   // iterations that all tries may cost, and per decision:
	tryRate    = 0.004
)

func (g *byGPU) allocate(b *Balancer, current []int, iteration int64) ([]int, error) {
	p := b.plan()
	if !p.known {
		if current != nil {
			return current, nil
		}
		return b.equal(), nil
	}
	g.Since++
	if current != nil && !holds(p.all, current, p.total) {
		current = nil
	}
	many := len(p.curves) > maxKin
	switch {
	case !many:
		g.learn(p, nil)
	case current == nil:
		g.learn(p, func(i int) bool { return !p.fits(i) })
	case !p.fitAll():
		return current, nil // study has yet to see them
	}
	safe, expected, err := p.safe()
	if err != nil {
		return nil, err
	}
	if g.Since > learning {
		if current != nil && expected > p.time(current)*(1-max(b.options.Threshold, 0)) {
			return current, nil
		}
		return safe, nil
	}
	if current != nil {
		if t := p.time(current); t <= expected {
			safe, expected = current, t
		}
	}
	if g.Since > g.horizon() || p.reported+1 < g.Tried {
		return safe, nil
	}
	bold := g.Bold
	if g.Bold = nil; !many {
		bold = g.try(p, safe, expected)
	}
	if bold == nil || !holds(p.all, bold, p.total) {
		return safe, nil
	}
	g.Tried = iteration + 1
	return bold, nil
}

// horizon is for how many decisions it tries.
func (g *byGPU) horizon() int {
	if g.Again {
		return relearning
	}
	return learning - settling
}

// try is a vector that may be faster than safe, at an affordable cost; nil
// where there is none. Of the sizes in safe it hopes for nothing: they are
// measured anyway.
func (g *byGPU) try(p *plan, safe []int, expected float64) []int {
	feared := p.shade(fear, nil)
	for _, share := range []float64{1, 0.5, 0.25} {
		hopes := p.shade(-optimism*share*(1-float64(g.Since)/float64(g.horizon()+1)), safe)
		bold, err := fit(p.all, hopes, p.total)
		if err != nil {
			return nil
		}
		gain := 1 - longest(hopes, bold)/expected
		cost := max(0, longest(feared, bold)/expected-1)
		if gain > worthTry && cost < maxTryCost && g.Spent+cost < tryBudget+tryRate*float64(g.Since) && !slices.Equal(bold, safe) {
			g.Spent += cost
			return bold
		}
	}
	return nil
}

// learn brings curves up to date: those of which want is true, or all.
func (g *byGPU) learn(p *plan, want func(i int) bool) {
	n := len(p.curves)
	for i, c := range p.curves {
		if want != nil && !want(i) {
			continue
		}
		lo, hi := span(p.all[i], p.grain, n)
		var others *shape
		if n > 1 && n <= maxKin {
			others = kin(p.curves, i, lo, hi, p.grain)
		}
		g.walk.learn(c, lo, hi, p.grain, p.noise, others)
		c.Late = false
	}
	var known []*curve
	for _, c := range p.curves {
		if len(c.Cells) > 0 && len(known) < maxKin {
			known = append(known, c)
		}
	}
	for i, c := range p.curves {
		if len(c.Cells) == 0 && (want == nil || want(i)) {
			c.guess(known)
		}
	}
}

// study does for many workers, when the shares are out, what takes long: it
// learns the curves of those that have changed and of some others, and looks
// for what to try.
func (g *byGPU) study(b *Balancer) {
	if len(b.workers) <= maxKin {
		return
	}
	p := b.plan()
	if !p.known {
		return
	}
	g.Studied++
	g.learn(p, func(i int) bool { return p.curves[i].Late || (i+g.Studied)%rotation == 0 || !p.fits(i) })
	g.Bold = nil
	// This leaves the tables behind that the next decision goes by.
	safe, expected, err := p.safe()
	if err == nil && g.Since < g.horizon() && g.Studied%rarely == 0 {
		g.Bold = g.try(p, safe, expected)
	}
}

// plan is what a decision goes by.
type plan struct {
	all    []limits
	curves []*curve
	total  int
	grain  int
	noise  float64
	known  bool // of any worker
	// reported is the last iteration of which anything is known.
	reported int64
}

func (b *Balancer) plan() *plan {
	p := &plan{all: b.withinMemory(), total: b.options.GlobalBatch, grain: b.grain(), noise: b.noise(), reported: -1, curves: make([]*curve, len(b.workers))}
	for i, m := range b.forecaster.all {
		p.curves[i] = &m.Curve
		p.known = p.known || len(m.Curve.Cells) > 0
		p.reported = max(p.reported, m.Iteration)
	}
	return p
}

// fits says whether a curve spans what its worker may take.
func (p *plan) fits(i int) bool {
	c := p.curves[i]
	lo, hi := span(p.all[i], p.grain, len(p.curves))
	return c.Lo == lo && c.Grain == p.grain && len(c.Mean) == hi-lo+1
}

func (p *plan) fitAll() bool {
	for i := range p.curves {
		if !p.fits(i) {
			return false
		}
	}
	return true
}

// safe is the best vector if what was not tried is a little slower than it
// seems, and the time that is expected of it.
func (p *plan) safe() ([]int, float64, error) {
	sizes, err := fit(p.all, p.shade(caution, nil), p.total)
	if err != nil {
		return nil, 0, err
	}
	return sizes, p.time(sizes), nil
}

// time is what is expected of sizes, in seconds.
func (p *plan) time(sizes []int) float64 {
	t := 0.0
	for i, s := range sizes {
		t = max(t, p.curves[i].at(s))
	}
	return t
}

// shade is all workers' times, off by a number of standard deviations, but for
// sizes that are sure: those count as they are believed.
func (p *plan) shade(by float64, sure []int) []timing {
	times := make([]timing, len(p.curves))
	for i, c := range p.curves {
		size := 0
		if sure != nil {
			size = sure[i]
		}
		times[i] = c.timing(p.all[i], by, size)
	}
	return times
}

// noise is the relative standard deviation of the job's measurements.
func (b *Balancer) noise() float64 {
	squares, free := priorFree*priorNoise*priorNoise, float64(priorFree)
	for _, m := range b.forecaster.all {
		squares += m.Curve.Squares
		free += m.Curve.Free
	}
	return min(max(math.Sqrt(squares/free), 0.003), 0.5)
}

// Constants of many workers.
const (
	maxKin   = 32 // workers whose curves are compared; of more, study learns
	rotation = 8  // study learns one in so many curves anew,
	rarely   = 8  // and looks for something to try once in so many times
)
