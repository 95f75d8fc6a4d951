package balance

import (
	"math"
	"testing"
)

// What was measured just before a change, and lay a little on its side by
// chance, is no part of the new curve.
func TestChangeBeginsWhereItDid(t *testing.T) {
	const noise = .05
	for _, sign := range []float64{1, -1} {
		c := &curve{Lo: 1, Grain: 1, Mean: make(floats, 8), SD: make(floats, 8)}
		changed := false
		for i, y := range []float64{-.04, .03, -.06, -.5, -.52} {
			if changed {
				t.Fatalf("sign %g: changed before measurement %d", sign, i)
			}
			changed = c.add(3, math.Exp(sign*y), noise)
		}
		if !changed || len(c.Cells) != 1 || c.Cells[0].N != 2 || math.Abs(c.Cells[0].Mean*sign+.51) > 1e-9 {
			t.Errorf("sign %g: changed: %v, the new curve: %v", sign, changed, c.Cells)
		}
		if len(c.Old) != 1 || c.Old[0].N != 3 || math.Abs(c.Old[0].Mean) > noise {
			t.Errorf("sign %g: the old curve: %v", sign, c.Old)
		}
	}
}
