package balance

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/cotenant/cotenant/internal/num"
)

// madeUp draws the curves of a job of a kind that no allocator was fitted to:
// unlike devices, of which some are of one make and so alike but for a factor.
func madeUp(seed uint64) (curves []Curve, total int) {
	rng := num.Rand(seed, 0xfa)
	makes := make([]func(x int) float64, 1+rng.IntN(2))
	for i := range makes {
		makes[i] = madeUpDevice(rng)
	}
	n := 3 + rng.IntN(4)
	hi := 100 + rng.IntN(100)
	for i := range n {
		device := makes[rng.IntN(len(makes))]
		factor := math.Exp(1.5 * rng.Float64())
		c := Curve{Worker: fmt.Sprint("w", i), Lo: 2}
		for x := c.Lo; x <= hi; x++ {
			c.Ms = append(c.Ms, factor*device(x)*math.Exp(0.004*rng.NormFloat64()))
		}
		curves = append(curves, c)
	}
	return curves, n * (10 + rng.IntN(hi*6/10))
}

// madeUpDevice is a time by size: a start that is flat or costs something, as
// much in proportion as in steps, steps of a tile's size, and dips.
func madeUpDevice(rng *rand.Rand) func(x int) float64 {
	tile := []int{8, 16, 32, 64, 10 + rng.IntN(40)}[rng.IntN(5)]
	stepped := 0.7 * rng.Float64()
	overhead := 30 * rng.Float64() * rng.Float64()
	flat := 0
	if rng.IntN(2) == 0 {
		flat = rng.IntN(24)
	}
	dips := map[int]float64{}
	for range rng.IntN(4) {
		at := tile * (1 + rng.IntN(6))
		depth := 1 - 0.2*rng.Float64()
		for x := at - rng.IntN(3); x <= at; x++ {
			dips[x] = depth
		}
	}
	return func(x int) float64 {
		whole := float64(tile * ((x + tile - 1) / tile))
		t := overhead + (1-stepped)*float64(max(x, flat)) + stepped*max(whole, float64(flat))
		if d, ok := dips[x]; ok {
			t *= d
		}
		return t
	}
}
