package lp

import (
	"math"
	"slices"
)

// Column is a variable x >= 0: what it brings and what it takes of each row.
type Column struct {
	Cost float64
	Rows []int32 // row numbers, each once
	Vals []float64
	// Tag is the caller's name for the column.
	Tag int
}

// Status is how a solve ended.
type Status int

// The ways a solve ends.
const (
	Optimal    Status = iota
	Infeasible        // no x >= 0 meets the rows, as far as the generator found columns
	Limit             // the pivot limit was reached or Stop said so
)

// Options tune a solve.
type Options struct {
	// Start are columns known beforehand, priced before the generator is asked.
	Start []Column
	// MaxPivots bounds the work; 0 means 200 a row, 20,000 at least.
	MaxPivots int
	// Stop, where not nil, ends the solve early with Limit.
	Stop func() bool
}

// Result is the outcome: x by column, and a dual price for each row.
type Result struct {
	Status    Status
	Objective float64
	Columns   []Column  // every column met
	X         []float64 // by column; at most as many are positive as there are rows
	Dual      []float64 // by row
	Pivots    int
}

// Generator returns columns whose reduced cost is positive, best first, or
// none where there is none left. In phase 1 all costs count as 0: the reduced
// cost is -(dual . column). In phase 2 it is Cost - (dual . column).
type Generator func(dual []float64, phase int) []Column

const (
	tolerance  = 1e-9  // a reduced cost or pivot below it counts as 0
	refactor   = 120   // pivots between fresh inversions of the basis
	perturb    = 1e-7  // of the right-hand side, against cycling
	feasible   = 1e-6  // phase 1 ends when artificials sum to less, relative
	artificial = -1000 // column numbers from here down are artificials
)

type simplex struct {
	m       int
	b       []float64 // perturbed
	columns []Column
	inBasis []bool
	basis   []int // column number by row; artificial-i is the artificial of row i
	inverse []float64
	x       []float64 // value by basis position
	phase   int
	since   int
	work    []float64
}

// Maximize finds x >= 0 with A x = b, b >= 0, that maximises cost . x.
func Maximize(b []float64, generate Generator, o Options) Result {
	s := &simplex{m: len(b), columns: slices.Clone(o.Start), phase: 1, work: make([]float64, len(b))}
	s.inBasis = make([]bool, len(s.columns))
	s.b = make([]float64, s.m)
	scale := 1.0
	for _, v := range b {
		scale = max(scale, v)
	}
	for i, v := range b {
		// A different small amount for each row, by a golden-ratio sequence.
		_, frac := math.Modf(float64(i+1) * math.Phi)
		s.b[i] = v + perturb*(0.5+frac)
	}
	s.basis = make([]int, s.m)
	s.inverse = make([]float64, s.m*s.m)
	s.x = slices.Clone(s.b)
	for i := range s.basis {
		s.basis[i] = artificial - i
		s.inverse[i*s.m+i] = 1
	}
	limit := o.MaxPivots
	if limit == 0 {
		limit = max(20000, 200*s.m)
	}
	status := Optimal
	pivots := 0
	for ; ; pivots++ {
		if pivots >= limit || (o.Stop != nil && pivots%16 == 0 && o.Stop()) {
			status = Limit
			break
		}
		if s.phase == 1 && s.infeasibility() <= feasible*scale {
			s.phase = 2
		}
		dual := s.dual()
		enter := s.price(dual)
		if enter < 0 {
			enter = s.grow(generate(dual, s.phase), dual)
		}
		if enter < 0 {
			if s.phase == 1 {
				status = Infeasible
			}
			break
		}
		if !s.pivot(enter) {
			// Unbounded cannot happen where every column takes of some bounded
			// row; numerical trouble can. A fresh inverse settles which.
			if s.since == 0 {
				break
			}
			s.invert()
		}
	}
	return s.result(b, status, pivots)
}

func (s *simplex) cost(col int) float64 {
	switch {
	case col <= artificial && s.phase == 1:
		return -1
	case col <= artificial || s.phase == 1:
		return 0
	}
	return s.columns[col].Cost
}

func (s *simplex) infeasibility() float64 {
	sum := 0.0
	for i, c := range s.basis {
		if c <= artificial {
			sum += max(0, s.x[i])
		}
	}
	return sum
}

// dual is c_B B^-1.
func (s *simplex) dual() []float64 {
	y := make([]float64, s.m)
	for i, c := range s.basis {
		if cost := s.cost(c); cost != 0 {
			for j, v := range s.inverse[i*s.m : (i+1)*s.m] {
				y[j] += cost * v
			}
		}
	}
	return y
}

func (s *simplex) reduced(c *Column, dual []float64) float64 {
	r := 0.0
	if s.phase == 2 {
		r = c.Cost
	}
	for i, row := range c.Rows {
		r -= dual[row] * c.Vals[i]
	}
	return r
}

// price finds the known column with the highest reduced cost.
func (s *simplex) price(dual []float64) int {
	best, at := tolerance*10, -1
	for i := range s.columns {
		if !s.inBasis[i] {
			if r := s.reduced(&s.columns[i], dual); r > best {
				best, at = r, i
			}
		}
	}
	return at
}

func (s *simplex) grow(fresh []Column, dual []float64) int {
	best, at := tolerance*10, -1
	for _, c := range fresh {
		r := s.reduced(&c, dual)
		if r <= tolerance*10 {
			continue
		}
		if r > best {
			best, at = r, len(s.columns)
		}
		s.columns = append(s.columns, c)
		s.inBasis = append(s.inBasis, false)
	}
	return at
}

// direction is B^-1 a.
func (s *simplex) direction(c *Column) []float64 {
	d := s.work
	clear(d)
	for k, row := range c.Rows {
		v := c.Vals[k]
		for i := range d {
			d[i] += v * s.inverse[i*s.m+int(row)]
		}
	}
	return d
}

// pivot brings a column into the basis; false where no row limits it.
func (s *simplex) pivot(enter int) bool {
	d := s.direction(&s.columns[enter])
	leave, ratio := -1, math.Inf(1)
	for i, v := range d {
		if s.phase == 2 && s.basis[i] <= artificial {
			// An artificial left over from phase 1 is 0 and must stay so: any
			// column that would move it takes its place.
			if math.Abs(v) > 1e-7 {
				leave, ratio = i, 0
				break
			}
			continue
		}
		if v <= tolerance {
			continue
		}
		r := max(0, s.x[i]) / v
		// Among equal ratios the larger pivot is the safer.
		if r < ratio-1e-12 || (r <= ratio+1e-12 && leave >= 0 && v > d[leave]) {
			leave, ratio = i, min(r, ratio)
		}
	}
	if leave < 0 {
		return false
	}
	if s.basis[leave] <= artificial && s.phase == 2 {
		ratio = s.x[leave] / d[leave]
	}
	for i, v := range d {
		if i != leave {
			s.x[i] -= ratio * v
		}
	}
	s.x[leave] = ratio
	s.eliminate(leave, d)
	if old := s.basis[leave]; old > artificial {
		s.inBasis[old] = false
	}
	s.basis[leave] = enter
	s.inBasis[enter] = true
	if s.since++; s.since >= refactor {
		s.invert()
	}
	return true
}

// eliminate updates B^-1 for column d replacing basis position leave.
func (s *simplex) eliminate(leave int, d []float64) {
	m := s.m
	row := s.inverse[leave*m : (leave+1)*m]
	inv := 1 / d[leave]
	for j := range row {
		row[j] *= inv
	}
	for i, f := range d {
		if i == leave || f == 0 {
			continue
		}
		other := s.inverse[i*m : (i+1)*m]
		for j, v := range row {
			if v != 0 {
				other[j] -= f * v
			}
		}
	}
}

// invert recomputes B^-1 and x from the columns, by Gauss-Jordan elimination
// with the positions of the basis permuted for stability.
func (s *simplex) invert() {
	s.since = 0
	m := s.m
	old := slices.Clone(s.basis)
	clear(s.inverse)
	for i := range m {
		s.inverse[i*m+i] = 1
		s.basis[i] = artificial - i
	}
	done := make([]bool, m)
	// Artificials first: each keeps its own row, at no cost.
	for _, c := range old {
		if c <= artificial {
			done[artificial-c] = true
		}
	}
	for _, c := range old {
		if c <= artificial {
			continue
		}
		d := s.direction(&s.columns[c])
		at, best := -1, 1e-11
		for i, v := range d {
			if !done[i] && math.Abs(v) > best {
				at, best = i, math.Abs(v)
			}
		}
		if at < 0 {
			// The basis had become singular: the column is dropped and an
			// artificial stands in.
			s.inBasis[c] = false
			continue
		}
		s.eliminate(at, d)
		s.basis[at] = c
		done[at] = true
	}
	s.solve(s.b)
	if s.phase == 2 && s.infeasibility() > 1e-5 {
		s.phase = 1
	}
}

// solve sets x = B^-1 b.
func (s *simplex) solve(b []float64) {
	for i := range s.x {
		v := 0.0
		for j, w := range s.inverse[i*s.m : (i+1)*s.m] {
			v += w * b[j]
		}
		s.x[i] = v
	}
}

func (s *simplex) result(b []float64, status Status, pivots int) Result {
	s.invert()
	s.solve(b) // the true right-hand side
	r := Result{Status: status, Columns: s.columns, X: make([]float64, len(s.columns)), Dual: s.dual(), Pivots: pivots}
	for i, c := range s.basis {
		if c > artificial {
			r.X[c] = max(0, s.x[i])
			r.Objective += s.columns[c].Cost * r.X[c]
		}
	}
	return r
}
