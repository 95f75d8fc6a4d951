package lp_test

import (
	"errors"
	"math"
	"testing"

	"github.com/cotenant/cotenant/internal/lp"
	"gonum.org/v1/gonum/mat"
	gonum "gonum.org/v1/gonum/optimize/convex/lp"
	"pgregory.net/rapid"
)

// all offers every column that is worth its price.
func all(columns []lp.Column) lp.Generator {
	return func(dual []float64, phase int) []lp.Column {
		var worth []lp.Column
		for _, c := range columns {
			if reduced(c, dual, phase) > 1e-9 {
				worth = append(worth, c)
			}
		}
		return worth
	}
}

func reduced(c lp.Column, dual []float64, phase int) float64 {
	r := 0.0
	if phase == 2 {
		r = c.Cost
	}
	for i, row := range c.Rows {
		r -= dual[row] * c.Vals[i]
	}
	return r
}

// TestAgainstDenseSimplex: the optimum is that of gonum's simplex, the primal
// solution is feasible, no column is worth more than its dual price, and
// primal equals dual. Every other program has a bounded row, so that none is
// unbounded.
func TestAgainstDenseSimplex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.IntRange(1, 6).Draw(t, "rows")
		n := m + rapid.IntRange(1, 12).Draw(t, "columns")
		b := make([]float64, m)
		for i := range b {
			b[i] = float64(rapid.IntRange(0, 9).Draw(t, "b"))
		}
		a := mat.NewDense(m, n, nil)
		cost := make([]float64, n)
		columns := make([]lp.Column, n)
		for j := range columns {
			c := lp.Column{Tag: j}
			if j >= n-m { // slack: keeps the program feasible where drawn so
				c.Rows, c.Vals = []int32{int32(j - (n - m))}, []float64{1}
			} else {
				c.Cost = float64(rapid.IntRange(-3, 9).Draw(t, "cost"))
				for i := range m {
					if v := rapid.IntRange(0, 4).Draw(t, "a"); v > 0 || i == 0 {
						c.Rows, c.Vals = append(c.Rows, int32(i)), append(c.Vals, float64(max(1, v)))
					}
				}
			}
			for i, row := range c.Rows {
				a.Set(int(row), j, c.Vals[i])
			}
			cost[j] = -c.Cost
			columns[j] = c
		}
		want, _, err := gonum.Simplex(cost, a, b, 1e-10, nil)
		r := lp.Maximize(b, all(columns), lp.Options{})
		if errors.Is(err, gonum.ErrInfeasible) {
			t.Fatal("slacks make every program feasible")
		}
		if r.Status != lp.Optimal {
			t.Fatalf("status %v", r.Status)
		}
		if err == nil && math.Abs(r.Objective+want) > 1e-5*(1+math.Abs(want)) {
			t.Fatalf("objective %g, gonum's %g", r.Objective, -want)
		}
		check(t, b, columns, r)
	})
}

func check(t *rapid.T, b []float64, columns []lp.Column, r lp.Result) {
	sum := make([]float64, len(b))
	for i, c := range r.Columns {
		if r.X[i] < 0 {
			t.Fatalf("x[%d] = %g", i, r.X[i])
		}
		for k, row := range c.Rows {
			sum[row] += r.X[i] * c.Vals[k]
		}
	}
	dual := 0.0
	for i, v := range b {
		if math.Abs(sum[i]-v) > 1e-5 {
			t.Fatalf("row %d holds %g, not %g", i, sum[i], v)
		}
		dual += v * r.Dual[i]
	}
	for _, c := range columns {
		if reduced(c, r.Dual, 2) > 1e-6 {
			t.Fatalf("column %d is worth more than its price at the optimum", c.Tag)
		}
	}
	if math.Abs(dual-r.Objective) > 1e-5*(1+math.Abs(dual)) {
		t.Fatalf("primal %g, dual %g", r.Objective, dual)
	}
}

func TestInfeasible(t *testing.T) {
	// x + y = 1 and x + y = 2.
	columns := []lp.Column{
		{Cost: 1, Rows: []int32{0, 1}, Vals: []float64{1, 1}},
		{Cost: 2, Rows: []int32{0, 1}, Vals: []float64{1, 1}},
	}
	if r := lp.Maximize([]float64{1, 2}, all(columns), lp.Options{}); r.Status != lp.Infeasible {
		t.Errorf("status %v, want infeasible", r.Status)
	}
}

func TestStopAndRedundantRows(t *testing.T) {
	columns := []lp.Column{
		{Cost: 1, Rows: []int32{0, 1}, Vals: []float64{1, 1}},
		{Cost: 3, Rows: []int32{0, 1}, Vals: []float64{1, 1}},
	}
	if r := lp.Maximize([]float64{2, 2}, all(columns), lp.Options{}); r.Status != lp.Optimal || math.Abs(r.Objective-6) > 1e-6 {
		t.Errorf("status %v, objective %g; want optimal, 6", r.Status, r.Objective)
	}
	if r := lp.Maximize([]float64{2, 2}, all(columns), lp.Options{Stop: func() bool { return true }}); r.Status != lp.Limit {
		t.Errorf("status %v after Stop, want the limit", r.Status)
	}
}
