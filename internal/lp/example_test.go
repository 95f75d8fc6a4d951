package lp_test

import (
	"fmt"

	"github.com/cotenant/cotenant/internal/lp"
)

// Two products share 4 hours of one machine and 3 of another; the generator
// offers each while its price is worth it.
func ExampleMaximize() {
	products := []lp.Column{
		{Cost: 5, Rows: []int32{0, 1}, Vals: []float64{2, 1}, Tag: 0},
		{Cost: 4, Rows: []int32{0, 1}, Vals: []float64{1, 1}, Tag: 1},
		{Cost: 0, Rows: []int32{0}, Vals: []float64{1}, Tag: 2}, // idle hours
		{Cost: 0, Rows: []int32{1}, Vals: []float64{1}, Tag: 3},
	}
	r := lp.Maximize([]float64{4, 3}, func(dual []float64, phase int) []lp.Column {
		var worth []lp.Column
		for _, c := range products {
			reduced := 0.0
			if phase == 2 {
				reduced = c.Cost
			}
			for i, row := range c.Rows {
				reduced -= dual[row] * c.Vals[i]
			}
			if reduced > 1e-9 {
				worth = append(worth, c)
			}
		}
		return worth
	}, lp.Options{})
	fmt.Printf("%.4g at prices %.3g\n", r.Objective, r.Dual)
	// Output: 13 at prices [1 3]
}
