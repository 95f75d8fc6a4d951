package balance

import "math"

// tiles is what is believed of where curves jump before anything is measured.
// Hardware works in tiles of 8, 16 and more samples: behind a whole number of
// them the time jumps up, and a batch that fills them may be faster than those
// just below it. Sizes in grains have no such places.
type tiles struct{ grain int }

// Rates of jumps by place: how often, on average, the step from a size to the
// next one is a jump.
const (
	anyRate  = 1.0 / 16 // of sizes in grains
	behind16 = 1.0 / 3  // from a multiple of 16
	behind8  = 1.0 / 6
	into8    = 1.0 / 12 // to a multiple of 8
	elsehow  = 1.0 / 32 // elsewhere
	calmRate = 1.0 / 64 // away from a shape that others were measured to have
	tileLean = 0.1      // mean of the jumps behind tiles, and less it those into them
	jumpSD   = 0.15
)

// rate is how likely the step from size x to x+1 is a jump.
func (t tiles) rate(x int) float64 {
	switch {
	case t.grain > 1:
		return anyRate
	case x%16 == 0:
		return behind16
	case x%8 == 0:
		return behind8
	case (x+1)%8 == 0:
		return into8
	}
	return elsehow
}

// lean is the mean of a jump there.
func (t tiles) lean(x int) float64 {
	switch {
	case t.grain > 1:
		return 0
	case x%8 == 0:
		return tileLean
	case (x+1)%8 == 0:
		return -tileLean
	}
	return 0
}

// What is hoped of sizes that fill tiles and were never tried, as logarithms: a
// dip of one size is too unlikely, between two that were measured, for its
// standard deviation to tell of it, and yet worth one try.
const (
	fill16 = 0.2
	fill8  = 0.1
)

// fill is that of a size; 0 for others.
func (t tiles) fill(x int) float64 {
	switch {
	case t.grain > 1:
		return 0
	case x%16 == 0:
		return fill16
	case x%8 == 0:
		return fill8
	}
	return 0
}

// hope lowers times to what sizes that fill tiles may have, in the share of it
// that the time of learning leaves.
func (c *curve) hope(times []float64, share float64) {
	t := tiles{c.Grain}
	for k, m := range c.Mean {
		if fill := t.fill(c.Lo + k); fill > 0 && !c.tried(c.Lo+k) {
			times[k] = min(times[k], math.Exp(m-share*fill))
		}
	}
}

// counter is the mean of every step besides jumps, so that jumps change nothing
// over many sizes.
func (t tiles) counter() float64 {
	if t.grain > 1 {
		return 0
	}
	return -tileLean * (behind16 + behind8 - 2*into8) / 16
}

// jumps are mean and variance that a jump adds to a step that is one with
// probability p.
func jumps(p, lean float64) (mean, variance float64) {
	return p * lean, p*jumpSD*jumpSD + p*(1-p)*lean*lean
}
