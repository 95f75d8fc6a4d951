package jobs

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The assignment against all assignments.
func TestPropertyAssignment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 5).Draw(t, "rows")
		cols := rapid.IntRange(rows, 6).Draw(t, "cols")
		values := make([]float64, rows*cols)
		for i := range values {
			values[i] = float64(rapid.IntRange(-4, 6).Draw(t, "value"))
		}
		value := func(r, c int) float64 { return values[r*cols+c] }
		match := make([]int, rows)
		var a assignment
		for range 2 { // its memory serves again
			a.solve(rows, cols, value, match)
		}
		sum, taken := 0.0, map[int]bool{}
		for r, c := range match {
			if taken[c] {
				t.Fatalf("column %d is taken twice: %v", c, match)
			}
			taken[c] = true
			sum += value(r, c)
		}
		best := math.Inf(-1)
		var try func(r int, used uint, sum float64)
		try = func(r int, used uint, sum float64) {
			if r == rows {
				best = max(best, sum)
				return
			}
			for c := range cols {
				if used>>c&1 == 0 {
					try(r+1, used|1<<c, sum+value(r, c))
				}
			}
		}
		try(0, 0, 0)
		if math.Abs(sum-best) > 1e-9 {
			t.Fatalf("sum %g of %v, the best is %g", sum, match, best)
		}
	})
}
