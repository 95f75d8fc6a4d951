// Package lp solves linear programs with few rows and many columns, by the
// revised simplex method with column generation: the columns come from a
// function that, given the dual prices, finds those worth having.
//
//	r := lp.Maximize([]float64{4, 3}, func(dual []float64, phase int) []lp.Column {
//		return profitable // columns with Cost - dual . Vals > 0, best first
//	}, lp.Options{})
//
// gonum's simplex does not serve here: it takes all columns at once as a dense
// matrix, returns no dual prices and cannot go on from an earlier basis.
package lp
