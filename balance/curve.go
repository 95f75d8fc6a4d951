package balance

import (
	"math"
	"slices"
)

// cell is what was measured at one batch size.
type cell struct {
	Size int     `json:"size"`
	N    float64 `json:"n"`    // how many measurements its mean stands for
	Mean float64 `json:"mean"` // of the logarithm of seconds
}

// curve is what is known of a worker's time by batch size.
//
// The logarithm of the time is a base plus a random walk over sizes. The base
// is affine, log b (x + kappa), until the worker has changed, and then the
// curve from before the change. The steps of the walk are mostly small and
// seldom large: the jumps where a batch no longer fits a tile of the hardware,
// and the dips where it fits well. Measurements are normal around it.
type curve struct {
	Cells []cell `json:"cells,omitempty"` // ascending
	// Base is the curve from before the last change, at sizes from BaseLo on.
	Base   floats `json:"base,omitempty"`
	BaseLo int    `json:"base_lo,omitempty"`

	// Up and Down are the sums of Page's test for a change of the mean (CUSUM,
	// Biometrika 1954), UpRun and DownRun the measurements since each was 0.
	Up      float64 `json:"up,omitempty"`
	Down    float64 `json:"down,omitempty"`
	UpRun   int     `json:"up_run,omitempty"`
	DownRun int     `json:"down_run,omitempty"`
	// Recent are the latest measurements, of which those since a change make the
	// new curve.
	Recent []cell `json:"recent,omitempty"`

	// Squares and Free estimate the noise: squared deviations from the means of
	// cells, and how many of them are free.
	Squares float64 `json:"squares,omitempty"`
	Free    float64 `json:"free,omitempty"`

	// Mean and SD are the curve as it is believed now, at Lo, Lo+1, ... times Grain
	// samples: sizes in the thousands are told apart by more than one.
	Lo    int    `json:"lo,omitempty"`
	Grain int    `json:"grain,omitempty"`
	Mean  floats `json:"mean,omitempty"`
	SD    floats `json:"sd,omitempty"`
	// Step is the walk's step from each size to the next, Told how much of it the
	// cells tell: 0 nothing, 1 all.
	Step floats `json:"step,omitempty"`
	Told floats `json:"told,omitempty"`
}

// Constants of the walk. Slope deviates from the base's by a share of it; jumps
// come every sixteenth step or so, as hardware has tiles of 8 to 32.
const (
	slopeSD    = 0.3
	jumpRate   = 1.0 / 16
	jumpSD     = 0.15
	calmRate   = 1.0 / 64 // of jumps away from a base that was measured
	priorNoise = 0.05
	priorFree  = 6
	maxN       = 60 // measurements a cell stands for at most, so that it can drift
	maxRecent  = 24
)

// Constants of the test for changes, in standard deviations of a measurement.
const (
	cusumDrift = 0.75
	cusumAlarm = 5.5
	cusumClip  = 4
)

// add takes in a measurement of a size, in seconds. True means that the worker
// has changed, and what was known before became the base.
func (c *curve) add(size int, seconds, noise float64) (changed bool) {
	y := math.Log(seconds)
	c.Recent = append(c.Recent, cell{size, 1, y})
	if len(c.Recent) > maxRecent {
		c.Recent = append(c.Recent[:0], c.Recent[1:]...)
	}
	if c.test(size, y, noise) {
		c.restart()
		return true
	}
	c.merge(size, y, noise)
	return false
}

func (c *curve) merge(size int, y, noise float64) {
	at, found := slices.BinarySearchFunc(c.Cells, size, func(a cell, s int) int { return a.Size - s })
	if !found {
		c.Cells = slices.Insert(c.Cells, at, cell{size, 1, y})
		return
	}
	m := &c.Cells[at]
	d := y - m.Mean
	// What is far off is a hiccup, or the first sign of a change: the test has
	// seen it, the mean takes it in as far as noise goes.
	if m.N >= 2 {
		d = min(max(d, -3*noise), 3*noise)
	}
	c.Squares += d * d * m.N / (m.N + 1)
	c.Free++
	if c.Free > 200 {
		c.Squares /= 2
		c.Free /= 2
	}
	m.N = min(m.N+1, maxN)
	m.Mean += d / m.N
}

// test runs the test for a change with a measurement.
func (c *curve) test(size int, y, noise float64) bool {
	at := size/max(c.Grain, 1) - c.Lo
	if at < 0 || at >= len(c.Mean) {
		return false
	}
	sd := c.SD[at]
	z := (y - c.Mean[at]) / math.Sqrt(noise*noise+sd*sd)
	z = min(max(z, -cusumClip), cusumClip)
	c.Up, c.UpRun = max(0, c.Up+z-cusumDrift), c.UpRun+1
	c.Down, c.DownRun = max(0, c.Down-z-cusumDrift), c.DownRun+1
	if c.Up == 0 {
		c.UpRun = 0
	}
	if c.Down == 0 {
		c.DownRun = 0
	}
	return c.Up > cusumAlarm || c.Down > cusumAlarm
}

// restart makes the curve the base and keeps the measurements since the change.
func (c *curve) restart() {
	run := c.UpRun
	if c.Down > cusumAlarm {
		run = c.DownRun
	}
	since := slices.Clone(c.Recent[max(0, len(c.Recent)-run):])
	c.Base, c.BaseLo = slices.Clone(c.Mean), c.Lo
	c.Cells = nil
	c.Up, c.Down, c.UpRun, c.DownRun = 0, 0, 0, 0
	c.Recent = since
	for _, m := range since {
		c.merge(m.Size, m.Mean, math.Inf(1))
	}
	c.Mean, c.SD, c.Step, c.Told = nil, nil, nil, nil
}

// kappas are the sizes whose time a batch takes on top of its own, from which
// the affine base is chosen.
var kappas = []float64{0.05, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256}

// learn brings mean and sd, of sizes from lo to hi grains, up to date. Noise is the
// relative standard deviation of a measurement. Kin is the shape of the other
// workers' curves, nil where there is none: of the bases at hand the one under
// which the cells are most likely counts.
func (c *curve) learn(lo, hi, grain int, noise float64, kin *shape) {
	n := hi - lo + 1
	if c.Grain != grain {
		c.Base = nil
	}
	c.Lo, c.Grain = lo, grain
	cells := c.coarse()
	c.Mean, c.SD = slices.Grow(c.Mean[:0], n)[:n], slices.Grow(c.SD[:0], n)[:n]
	c.Step, c.Told = slices.Grow(c.Step[:0], n)[:n], slices.Grow(c.Told[:0], n)[:n]
	w := walk{noise: noise, lo: lo, cells: cells}
	best, choice := math.Inf(-1), 0
	bases := []func(){
		func() { w.affine(kappa(cells, noise, nil), lo, hi, nil) },
		func() { w.affine(kappa(cells, noise, kin), lo, hi, kin) },
		func() {
			w.base = c.based(lo, hi)
			w.prior(calmRate, func(x int) float64 { return 1 / float64(max(x, 1)) })
		},
	}
	for i, set := range bases {
		if i == 1 && kin == nil || i == 2 && c.Base == nil {
			continue
		}
		set()
		if l := w.filter() + favour[i]; l > best {
			best, choice = l, i
		}
	}
	bases[choice]()
	w.smooth(c)
	// What others take over is all that is not affine: with the part that came
	// from them, or from before a change, as far as it was confirmed.
	switch choice {
	case 1:
		for i := range n - 1 {
			c.Step[i] += c.Told[i] * (kin.sum[i+1] - kin.sum[i])
		}
	case 2:
		clear(c.Told)
	}
}

// coarse are the cells with sizes in grains.
func (c *curve) coarse() []cell {
	if c.Grain == 1 {
		return c.Cells
	}
	var out []cell
	for _, m := range c.Cells {
		m.Size /= c.Grain
		if n := len(out); n > 0 && out[n-1].Size == m.Size {
			last := &out[n-1]
			last.Mean = (last.Mean*last.N + m.Mean*m.N) / (last.N + m.N)
			last.N += m.N
			continue
		}
		out = append(out, m)
	}
	return out
}

// guess fills the curve of a worker that was never measured with the mean of
// the others, far from sure.
func (c *curve) guess(curves []*curve) {
	for x := c.Lo; x < c.Lo+len(c.Mean); x++ {
		total, n := 0.0, 0.0
		for _, o := range curves {
			if len(o.Cells) > 0 && len(o.Mean) > 0 && o.Grain == c.Grain {
				k := min(max(x-o.Lo, 0), len(o.Mean)-1)
				total += o.Mean[k] + math.Log(float64(x)/float64(o.Lo+k))
				n++
			}
		}
		c.Mean[x-c.Lo], c.SD[x-c.Lo] = total/max(n, 1), 0.5
	}
	clear(c.Told)
}

// favour is how much likelier each base is beforehand, as a logarithm: a few
// cells side by side say little of how a curve goes on, its own past says much.
var favour = [3]float64{0, 1, 2}

// shape is how curves of other workers differ from affine ones: the logarithm
// of that from size lo on, and how well each step is known.
type shape struct {
	lo    int
	sum   []float64
	known []float64 // 0 not at all, 1 measured well
}

// kin is the shape common to all curves but the one of index skip: steps
// averaged by how well each worker has measured them.
func kin(curves []*curve, skip, lo, hi, grain int) *shape {
	s := &shape{lo, make([]float64, hi-lo+1), make([]float64, hi-lo+1)}
	any := false
	for x := lo; x < hi; x++ {
		total, weight := 0.0, 0.0
		for i, c := range curves {
			k := x - c.Lo
			if i == skip || c.Grain != grain || k < 0 || k+1 >= len(c.Step) {
				continue
			}
			a := c.Told[k] / (1.02 - c.Told[k])
			total += a * c.Step[k]
			weight += a
		}
		s.sum[x-lo+1] = s.sum[x-lo] + total/(weight+0.5)
		s.known[x-lo] = weight / (weight + 0.5)
		any = any || weight > 0.1
	}
	if !any {
		return nil
	}
	return s
}

// kappa chooses the affine base by the likelihood of the cells, with the walk
// between them.
func kappa(cells []cell, noise float64, kin *shape) float64 {
	best, choice := math.Inf(-1), kappas[0]
	for i, k := range kappas {
		l := -0.25 * float64(i) // the simplest that explains
		m, p := 0.0, float64(diffuse)
		for j, cell := range cells {
			x := float64(cell.Size) + k
			if j > 0 {
				from := cells[j-1].Size
				// The sum of the steps' variances, as an integral.
				p += slopeSD*slopeSD*(1/(float64(from)+k-0.04)-1/(x-0.04)) + jumpRate*jumpSD*jumpSD*float64(cell.Size-from)
			}
			r := noise * noise / cell.N
			e, s := cell.Mean-math.Log(x)-m, p+r
			if kin != nil && cell.Size >= kin.lo && cell.Size-kin.lo < len(kin.sum) {
				e -= kin.sum[cell.Size-kin.lo]
			}
			if j > 0 {
				l -= 0.5 * (math.Log(s) + e*e/s)
			}
			m, p = m+p/s*e, p*r/s
		}
		if l > best {
			best, choice = l, k
		}
	}
	return choice
}

// based is the base at sizes from lo to hi, continued by its slope per doubling.
func (c *curve) based(lo, hi int) []float64 {
	base := make([]float64, hi-lo+1)
	last := len(c.Base) - 1
	for x := lo; x <= hi; x++ {
		k := min(max(x-c.BaseLo, 0), last)
		base[x-lo] = c.Base[k] + math.Log(float64(max(x, 1))/float64(max(c.BaseLo+k, 1)))
	}
	return base
}

// walk is the model of one curve over the sizes from lo on.
type walk struct {
	noise float64
	lo    int
	cells []cell
	base  []float64
	slope []float64 // variance of the step from each size to the next, without jump
	jump  []float64 // probability of a jump there

	m, p []float64 // filtered mean and variance
	v    []float64 // variance of steps, with jumps
}

// affine sets the base log(x + kappa), with the shape of others on top where
// there is one, and its prior.
func (w *walk) affine(kappa float64, lo, hi int, kin *shape) {
	w.base = slices.Grow(w.base[:0], hi-lo+1)[:hi-lo+1]
	for x := lo; x <= hi; x++ {
		w.base[x-lo] = math.Log(float64(x) + kappa)
	}
	w.prior(jumpRate, func(x int) float64 { return 1 / (float64(x) + kappa) })
	if kin == nil {
		return
	}
	for i := range w.base {
		w.base[i] += kin.sum[i]
		// Where others were measured, jumps are in the base.
		w.jump[i] += kin.known[i] * (calmRate - jumpRate)
		w.v[i] = w.slope[i] + w.jump[i]*jumpSD*jumpSD
	}
}

// prior sets the variances of steps from the base's slope.
func (w *walk) prior(rate float64, slope func(x int) float64) {
	n := len(w.base)
	w.slope, w.jump, w.v = slices.Grow(w.slope[:0], n)[:n], slices.Grow(w.jump[:0], n)[:n], slices.Grow(w.v[:0], n)[:n]
	for i := range n {
		s := slopeSD * slope(w.lo+i)
		w.slope[i] = s*s + 1e-8
		w.jump[i] = rate
		w.v[i] = w.slope[i] + rate*jumpSD*jumpSD
	}
}

// diffuse is the variance of the level, of which nothing is known.
const diffuse = 100

// filter runs forward over the sizes (Kalman 1960) and returns the logarithm
// of the likelihood of the cells but the first, which sets the level.
func (w *walk) filter() float64 {
	n := len(w.base)
	w.m, w.p = slices.Grow(w.m[:0], n)[:n], slices.Grow(w.p[:0], n)[:n]
	m, p, l := 0.0, float64(diffuse), 0.0
	k, first := 0, true
	for k < len(w.cells) && w.cells[k].Size < w.lo {
		k++
	}
	for i := range n {
		if i > 0 {
			p += w.v[i-1]
		}
		if k < len(w.cells) && w.cells[k].Size == w.lo+i {
			r := w.noise * w.noise / w.cells[k].N
			e := w.cells[k].Mean - w.base[i] - m
			s := p + r
			if !first {
				l -= 0.5 * (math.Log(s) + e*e/s)
			}
			first = false
			m += p / s * e
			p *= r / s
			k++
		}
		w.m[i], w.p[i] = m, p
	}
	return l
}

// rounds of deciding which steps are jumps.
const rounds = 4

// smooth gives mean and standard deviation at each size: the filter backwards
// (Rauch, Tung and Striebel 1965), and which steps are jumps by expectation
// maximisation.
func (w *walk) smooth(c *curve) {
	mean, sd := c.Mean, c.SD
	n := len(w.base)
	for round := range rounds {
		w.filter()
		m, p := w.m[n-1], w.p[n-1]
		mean[n-1], sd[n-1] = m, p
		for i := n - 2; i >= 0; i-- {
			ahead := w.p[i] + w.v[i]
			g := w.p[i] / ahead
			newM := w.m[i] + g*(m-w.m[i])
			newP := w.p[i] + g*g*(p-ahead)
			// The step and its variance, from the smoothed states and their
			// covariance g p.
			d, left := m-newM, max(0, p+newP-2*g*p)
			if round < rounds-1 {
				w.decide(i, d*d+left)
			} else {
				c.Step[i] = d
				c.Told[i] = min(max(1-left/(w.slope[i]+jumpRate*jumpSD*jumpSD), 0), 1)
			}
			m, p = newM, newP
			mean[i], sd[i] = m, p
		}
	}
	for i := range n {
		mean[i] += w.base[i]
		sd[i] = math.Sqrt(max(sd[i], 0))
	}
}

// decide sets the variance of a step from its second moment: how likely it is
// a jump, and as precisions average.
func (w *walk) decide(i int, second float64) {
	calm, wild := w.slope[i], w.slope[i]+jumpSD*jumpSD
	odds := w.jump[i] / (1 - w.jump[i]) * math.Sqrt(calm/wild) * math.Exp(min(0.5*second*(1/calm-1/wild), 500))
	p := odds / (1 + odds)
	w.v[i] = 1 / ((1-p)/calm + p/wild)
}
