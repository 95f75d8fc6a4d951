package balance

import "math"

// shape is how curves of other workers differ from affine ones: the logarithm
// of that from size lo on, and how well each step is known.
type shape struct {
	lo    int
	sum   []float64
	known []float64 // 0 not at all, 1 measured well
	fewer []float64 // by how much a jump away from the shape is less likely than else
	// By how much variance and mean of what jumps add before each size are less.
	spread, drift []float64
}

// and is no shape, and s where there is one.
func (s *shape) and() []*shape {
	if s == nil {
		return []*shape{nil}
	}
	return []*shape{nil, s}
}

// kin is the shape common to all curves but the one of index skip: steps
// averaged by how well each worker has measured them.
func kin(curves []*curve, skip, lo, hi, grain int) *shape {
	n := hi - lo + 1
	s := &shape{lo, make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)}
	t := tiles{grain}
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
		s.fewer[x-lo] = s.known[x-lo] * (t.rate(x) - calmRate)
		r, l := t.rate(x), t.lean(x)
		m0, v0 := jumps(r, l)
		m1, v1 := jumps(r-s.fewer[x-lo], l)
		s.spread[x-lo+1] = s.spread[x-lo] + v0 - v1
		s.drift[x-lo+1] = s.drift[x-lo] + m0 - m1 + t.counter()*s.known[x-lo]
		any = any || weight > 0.1
	}
	if !any {
		return nil
	}
	return s
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
	c.stale()
}
