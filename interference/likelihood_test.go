package interference

import (
	"math"
	"testing"

	"github.com/cotenant/cotenant/internal/num"
)

// A lesson of one class and metric whose truth is 0 everywhere; every row's
// cells share an error.
func sharedErrors(rows, outputs int, shared, own float64, seed uint64) *lesson {
	rng := num.Rand(seed)
	l := &lesson{y: num.New(rows, outputs), scale: num.New(rows, outputs), class: make([]int, rows)}
	for r := range rows {
		c := shared * rng.NormFloat64()
		for o := range outputs {
			l.scale.Row(r)[o] = 0.5
			l.y.Row(r)[o] = float32((c + own*rng.NormFloat64()) / 0.5)
		}
	}
	return l
}

// From the residuals alone it learns which part of the errors is shared.
func TestLikelihoodFindsTheSharedError(t *testing.T) {
	for _, c := range []struct{ shared, own float64 }{{0.04, 0.015}, {0.01, 0.05}} {
		l := sharedErrors(4000, 4, c.shared, c.own, 1)
		k := newLikelihood(1, 1, 4)
		batch := make([]int, 40)
		for step := range 1500 {
			for i := range batch {
				batch[i] = (step*len(batch) + i) % 4000
			}
			k.gradient(num.New(len(batch), 4), l, batch)
		}
		// Student's scale is less than the standard deviation of what it describes.
		shared, own := math.Sqrt(k.shared[0]), math.Sqrt(k.own[0])
		if shared < 0.6*c.shared || shared > 1.4*c.shared || own < 0.6*c.own || own > 1.4*c.own {
			t.Errorf("shared %g, own %g: learned %g, %g", c.shared, c.own, shared, own)
		}
	}
}

// What all tasks of a co-location have in common pulls less than what parts
// them, absent cells do not pull, and a wild value pulls less than its size.
func TestLikelihoodTrustsDifferences(t *testing.T) {
	l := &lesson{y: num.New(3, 4), scale: num.New(3, 4), class: make([]int, 3)}
	for r := range 3 {
		for o := range 3 {
			l.scale.Row(r)[o] = 1
		}
	}
	copy(l.y.Row(0), []float32{0.03, 0.03, 0.03, 9}) // in common
	copy(l.y.Row(1), []float32{0.03, 0, -0.03, 9})   // apart
	copy(l.y.Row(2), []float32{0.3, 0, -0.3, 9})     // far apart
	y := num.New(3, 4)
	newLikelihood(1, 1, 4).gradient(y, l, []int{0, 1, 2})
	common, apart, far := -y.Row(0)[0], -y.Row(1)[0], -y.Row(2)[0]
	if !(common > 0 && common < apart/2) {
		t.Errorf("an error in common pulls with %g, one of its own with %g", common, apart)
	}
	if !(far < 2*apart) {
		t.Errorf("an error ten times as large pulls with %g against %g", far, apart)
	}
	for r := range 3 {
		if y.Row(r)[3] != 0 {
			t.Errorf("row %d: what was not measured pulls with %g", r, y.Row(r)[3])
		}
	}
}

// One task alone in its metric: the shared error is part of its own, and the
// gradient is still one that leads to it.
func TestLikelihoodOfSingleCells(t *testing.T) {
	l := &lesson{y: num.New(1, 2), scale: num.New(1, 2), class: []int{0}}
	l.scale.Row(0)[0], l.y.Row(0)[0] = 1, 0.05
	y := num.New(1, 2)
	k := newLikelihood(1, 1, 2)
	before := k.shared[0]
	k.gradient(y, l, []int{0})
	if y.Row(0)[0] >= 0 || k.shared[0] != before {
		t.Errorf("gradient %g, shared variance %g after %g", y.Row(0)[0], k.shared[0], before)
	}
}
