package jobs

import "math"

// assignment finds, for a matrix of values of rows (as many as columns, or
// fewer), the column of each row such that no column is taken twice and the
// sum of values is the largest that there is. It is the Hungarian method by
// shortest augmenting paths (Jonker and Volgenant, A shortest augmenting path
// algorithm for dense and sparse linear assignment problems, Computing 38,
// 1987), in O(rows^2 columns). All values must be finite.
type assignment struct {
	rowPrice, colPrice []float64
	rowOf              []int // by column; -1 where free
	distance           []float64
	from               []int // the column before on the shortest path
	done               []bool
}

// solve writes the column of each row to out.
func (a *assignment) solve(rows, cols int, value func(r, c int) float64, out []int) {
	a.rowPrice, a.colPrice = zeros(a.rowPrice, rows+1), zeros(a.colPrice, cols+1)
	a.distance = zeros(a.distance, cols+1)
	a.rowOf, a.from = resize(a.rowOf, cols+1), resize(a.from, cols+1)
	if cap(a.done) < cols+1 {
		a.done = make([]bool, cols+1)
	}
	a.done = a.done[:cols+1]
	// The column at the end is where each row begins its search.
	root := cols
	for c := range a.rowOf {
		a.rowOf[c] = -1
	}
	for r := range rows {
		a.rowOf[root] = r
		for c := range a.distance {
			a.distance[c], a.done[c] = math.Inf(1), false
		}
		at := root
		for a.rowOf[at] >= 0 {
			at = a.extend(at, cols, value)
		}
		for at != root { // turn the path round
			a.rowOf[at] = a.rowOf[a.from[at]]
			at = a.from[at]
		}
	}
	for c := range cols {
		if r := a.rowOf[c]; r >= 0 {
			out[r] = c
		}
	}
}

// extend settles a column, reaches out from its row, and returns the nearest
// column that is not settled.
func (a *assignment) extend(at, cols int, value func(r, c int) float64) int {
	a.done[at] = true
	r := a.rowOf[at]
	nearest, least := -1, math.Inf(1)
	for c := range cols {
		if a.done[c] {
			continue
		}
		if d := -value(r, c) - a.rowPrice[r] - a.colPrice[c]; d < a.distance[c] {
			a.distance[c], a.from[c] = d, at
		}
		if a.distance[c] < least {
			nearest, least = c, a.distance[c]
		}
	}
	for c := range cols + 1 {
		if a.done[c] {
			a.rowPrice[a.rowOf[c]] += least
			a.colPrice[c] -= least
		} else {
			a.distance[c] -= least
		}
	}
	return nearest
}

func zeros(x []float64, n int) []float64 {
	if cap(x) < n {
		return make([]float64, n)
	}
	x = x[:n]
	clear(x)
	return x
}

func resize(x []int, n int) []int {
	if cap(x) < n {
		return make([]int, n)
	}
	return x[:n]
}
