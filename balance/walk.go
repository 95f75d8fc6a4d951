package balance

import (
	"math"
	"slices"
)

// walk is the model of a curve over the sizes from lo on, in grains, and the
// memory to work it out in.
//
// The logarithm of the time is a base plus a random walk over sizes. The base
// is affine, log b (x + kappa), with the shape of other workers' curves on top
// where they have one in common. The steps of the walk are mostly small and
// seldom large: the jumps where a batch no longer fits a tile of the hardware,
// and the dips where it fits well. Measurements are normal around it. Those
// from before a change are off by a factor of which nothing is known.
type walk struct {
	lo    int
	tiles tiles
	// Variance and mean of what jumps and their counter add before each size, from
	// size 0 on.
	spread, drift []float64

	base  []float64
	slope []float64 // variance of the step from each size to the next, without jump
	jump  []float64 // probability of a jump there
	lean  []float64 // its mean
	still []float64 // mean of the step without jump
	u, v  []float64 // mean and variance of the step, as far as is known whether it jumps

	m, p   []float64 // mean and variance by all measurements at most as large
	bm, bp []float64 // and by all at least as large
	all    []sighting
}

// sighting is a cell with the variance of its mean.
type sighting struct {
	size int
	y, r float64
	old  bool
}

const (
	slopeSD    = 0.3 // of the slope, as a share of the base's
	priorNoise = 0.05
	priorFree  = 6
	oldSD      = 0.01 // of what a change does to a size besides the factor
	diffuse    = 100  // variance of a level of which nothing is known
	rounds     = 3    // of deciding which steps are jumps
)

// kappas are the sizes whose time a batch takes on top of its own, from which
// the affine base is chosen.
var kappas = []float64{0.05, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256}

// How much likelier a base is beforehand, as a logarithm, and that what is old
// still holds: a few cells side by side say little of how a curve goes on, its
// own past says much.
const (
	favourKin = 1
	favourOld = 3
)

// learn brings mean and sd, of sizes from lo to hi grains, up to date. Noise is
// the relative standard deviation of a measurement. Kin is the shape of the
// other workers' curves, nil where there is none. Of the bases at hand, with
// and without what is old, the likeliest counts.
func (w *walk) learn(c *curve, lo, hi, grain int, noise float64, kin *shape) {
	n := hi - lo + 1
	c.stale()
	c.Lo, c.Grain, c.Shift = lo, grain, 0
	// Anew, as a snapshot may hold the old ones.
	c.Mean, c.SD, c.Step, c.Told = make(floats, n), make(floats, n), make(floats, n), make(floats, n)
	w.lo = lo
	if w.tiles.grain != grain || len(w.spread) < hi+2 {
		w.tiles.grain = grain
		w.spread, w.drift = stretched(w.spread, hi+2), stretched(w.drift, hi+2)
		w.spread[0], w.drift[0] = 0, 0
		for x := range hi + 1 {
			mean, v := jumps(w.tiles.rate(x), w.tiles.lean(x))
			w.spread[x+1], w.drift[x+1] = w.spread[x]+v, w.drift[x]+mean+w.tiles.counter()
		}
	}
	best, kappa, shape, forgotten := math.Inf(-1), 0.0, (*shape)(nil), true
	for _, forget := range []bool{true, false} {
		if !forget && len(c.Old) == 0 {
			continue
		}
		w.look(c, noise, forget)
		for _, k := range kin.and() {
			for i, kap := range kappas {
				l, shift := w.likelihood(kap, k)
				l -= 0.25 * float64(i) // the simplest that explains
				if k != nil {
					l += favourKin
				}
				if !forget {
					l += favourOld - w.before(kap, k)
				}
				if l > best {
					best, kappa, shape, forgotten, c.Shift = l, kap, k, forget, shift
				}
			}
		}
	}
	w.look(c, noise, forgotten)
	for i, s := range w.all {
		if s.old {
			w.all[i].y += c.Shift
		}
	}
	w.affine(kappa, n, shape)
	w.smooth(c)
	if shape != nil {
		// What others take over is all that is not affine: with the part that came
		// from them as far as it was confirmed.
		for i := range n - 1 {
			c.Step[i] += c.Told[i] * (shape.sum[i+1] - shape.sum[i])
		}
	}
}

// stretched has length n, in the memory of v where that is enough.
func stretched(v []float64, n int) []float64 { return slices.Grow(v[:0], n)[:n] }

// look collects the measurements, ascending by size.
func (w *walk) look(c *curve, noise float64, forget bool) {
	w.all = w.all[:0]
	add := func(cells []cell, old bool, more float64) {
		for _, m := range cells {
			w.all = append(w.all, sighting{min(max(m.Size/c.Grain, w.lo), w.lo+len(c.Mean)-1), m.Mean, noise*noise/m.N + more, old})
		}
	}
	add(c.Cells, false, 0)
	if !forget {
		add(c.Old, true, oldSD*oldSD)
		slices.SortStableFunc(w.all, func(a, b sighting) int { return a.size - b.size })
	}
}

// likelihood is the logarithm of how likely the measurements are under a base,
// and the likeliest shift of the old ones: the filter of Kalman (1960) from
// measurement to measurement. It is linear in the shift, so the response to a
// shift of 1 is filtered along. Level and shift are free.
func (w *walk) likelihood(kappa float64, kin *shape) (l, shift float64) {
	m, p, b := 0.0, float64(diffuse), 0.0
	ab, bb := 0.0, 0.0
	from := 0
	for j, s := range w.all {
		x := float64(s.size) + kappa
		e := s.y - math.Log(x) - m
		k := 0
		if kin != nil {
			k = min(max(s.size-kin.lo, 0), len(kin.sum)-1)
			e -= kin.sum[k]
		}
		if j > 0 {
			before := w.all[j-1].size
			// The sum of the steps' variances, as an integral.
			spread, drift := w.spread[s.size]-w.spread[before], w.drift[s.size]-w.drift[before]
			if kin != nil {
				spread -= kin.spread[k] - kin.spread[from]
				drift -= kin.drift[k] - kin.drift[from]
			}
			m += drift
			e -= drift
			p += slopeSD*slopeSD*(1/(float64(before)+kappa)-1/x) + spread
		}
		from = k
		response := -b
		if s.old {
			response++
		}
		v := p + s.r
		if j > 0 {
			l -= 0.5 * (math.Log(v) + e*e/v)
		}
		ab += response * e / v
		bb += response * response / v
		m, b, p = m+p/v*e, b+p/v*response, p*s.r/v
	}
	if bb > 1e-3 {
		// Old measurements read y = f - shift.
		shift = -ab / bb
		l += 0.5*ab*ab/bb - 0.5*math.Log(bb)
	}
	return l, shift
}

// before is the likelihood of the old measurements alone.
func (w *walk) before(kappa float64, kin *shape) float64 {
	old := walk{lo: w.lo, spread: w.spread, drift: w.drift}
	for _, s := range w.all {
		if s.old {
			s.old = false
			old.all = append(old.all, s)
		}
	}
	l, _ := old.likelihood(kappa, kin)
	return l
}

// affine sets the base log(x + kappa), with the shape of others on top where
// there is one, and the prior of its steps.
func (w *walk) affine(kappa float64, n int, kin *shape) {
	w.u, w.lean, w.still = stretched(w.u, n), stretched(w.lean, n), stretched(w.still, n)
	w.base, w.slope, w.jump, w.v = stretched(w.base, n), stretched(w.slope, n), stretched(w.jump, n), stretched(w.v, n)
	for i := range n {
		x := float64(w.lo+i) + kappa
		s := slopeSD / x
		w.base[i] = math.Log(x)
		w.slope[i], w.jump[i] = s*s+1e-8, w.tiles.rate(w.lo+i)
		if kin != nil {
			w.base[i] += kin.sum[i]
			// Where others were measured, jumps are in the base.
			w.jump[i] -= kin.fewer[i]
		}
		w.lean[i] = w.tiles.lean(w.lo + i)
		w.still[i] = w.tiles.counter()
		if kin != nil {
			w.still[i] *= 1 - kin.known[i]
		}
		mean, v := jumps(w.jump[i], w.lean[i])
		w.u[i], w.v[i] = mean+w.still[i], w.slope[i]+v
	}
}

// smooth gives mean and standard deviation at each size: filters from both
// ends, and which steps are jumps by expectation propagation (Minka, UAI 2001):
// what the measurements on both sides say of a step, without its own prior,
// weighs the two normal distributions that it may come from.
func (w *walk) smooth(c *curve) {
	n := len(w.base)
	w.m, w.p, w.bm, w.bp = stretched(w.m, n), stretched(w.p, n), stretched(w.bm, n), stretched(w.bp, n)
	for range rounds {
		w.forward()
		w.backward()
	}
	w.forward()
	for i := range n {
		// Both have the measurements of this size, so the smaller ones come by way
		// of the step.
		m, p := w.m[i], w.p[i]
		if i+1 < n {
			ahead := w.bp[i+1] + w.v[i]
			m, p = (m*ahead+(w.bm[i+1]-w.u[i])*p)/(p+ahead), p*ahead/(p+ahead)
			s, e := w.p[i]+w.bp[i+1], w.bm[i+1]-w.m[i]
			c.Step[i] = w.u[i] + w.v[i]/(w.v[i]+s)*(e-w.u[i])
			_, prior := jumps(w.tiles.rate(w.lo+i), w.tiles.lean(w.lo+i))
			c.Told[i] = min(max(1-w.v[i]*s/(w.v[i]+s)/(w.slope[i]+prior), 0), 1)
		}
		c.Mean[i], c.SD[i] = m+w.base[i], math.Sqrt(p)
	}
	c.Step[n-1], c.Told[n-1] = 0, 0
}

func (w *walk) forward() {
	m, p, k := 0.0, float64(diffuse), 0
	for i := range w.base {
		if i > 0 {
			m += w.u[i-1]
			p += w.v[i-1]
		}
		for ; k < len(w.all) && w.all[k].size == w.lo+i; k++ {
			m, p = w.take(k, i, m, p)
		}
		w.m[i], w.p[i] = m, p
	}
}

// backward also decides each step, from the two filters next to it.
func (w *walk) backward() {
	m, p, k := 0.0, float64(diffuse), len(w.all)-1
	for k >= 0 && w.all[k].size >= w.lo+len(w.base) {
		k--
	}
	for i := len(w.base) - 1; i >= 0; i-- {
		if i+1 < len(w.base) {
			w.decide(i, m-w.m[i], p+w.p[i])
			m -= w.u[i]
			p += w.v[i]
		}
		for ; k >= 0 && w.all[k].size == w.lo+i; k-- {
			m, p = w.take(k, i, m, p)
		}
		w.bm[i], w.bp[i] = m, p
	}
}

func (w *walk) take(k, i int, m, p float64) (float64, float64) {
	s := w.all[k]
	v := p + s.r
	return m + p/v*(s.y-w.base[i]-m), p * s.r / v
}

// decide sets the variance of a step, of which the measurements say e with
// variance s.
func (w *walk) decide(i int, e, s float64) {
	calm, wild := w.slope[i], w.slope[i]+jumpSD*jumpSD
	a, b := calm+s, wild+s
	e -= w.still[i]
	f := e - w.lean[i]
	odds := w.jump[i] / (1 - w.jump[i]) * math.Sqrt(a/b) * math.Exp(min(0.5*(e*e/a-f*f/b), 500))
	mean, v := jumps(odds/(1+odds), w.lean[i])
	w.u[i], w.v[i] = mean+w.still[i], calm+v
}
