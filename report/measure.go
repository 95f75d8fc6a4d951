package report

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// Measured is an account of samples. Measure fills it, except for what no
// sample knows: Source, Machine, Notes and Units are the caller's words.
type Measured struct {
	Source  string
	Machine string
	// Notes say by workload what it is; Units are what its rate counts.
	Notes, Units map[string]string
	// From and To bound the time of measuring; zero where unknown.
	From, To time.Time
	// Cells counts (co-location, workload, metric); Colocations counts
	// co-locations of at least one task, on all classes.
	Cells, Colocations int
	// Repeats are the fewest and the most measurements of a cell.
	Repeats [2]int
	// Spread and SpreadP95 are the median and the 95th percentile, over the
	// cells of the rate that were repeated, of standard deviation / mean; NaN
	// where nothing was repeated.
	Spread, SpreadP95 float64
	// Noise is the mean, over the cells of the rate in co-locations of at least
	// two tasks that were repeated, of the standard error of their mean / mean:
	// how well the truth itself is known; NaN where nothing was repeated.
	Noise   float64
	Classes []Class
}

// Class is what was measured on one class of nodes.
type Class struct {
	Name      string
	Workloads []Workload
	// Pairs[i][j] is the performance of workload i next to one task of workload
	// j and nothing else; Tails the same for p99 / p99 alone. Tails is nil where
	// no latency was measured.
	Pairs, Tails [][]Cell
	// Sizes[k] is about the co-locations of k+1 tasks.
	Sizes []Size
}

// Workload is what was measured of a workload alone.
type Workload struct {
	Name string
	// Alone is the rate alone, in the workload's own unit; NaN where only
	// ratios are known. Spread is its standard deviation / mean, NaN where it
	// was not repeated.
	Alone, Spread float64
	Repeats       int
	// Tail is the p99 alone in seconds; NaN where it was not measured.
	Tail float64
}

// Cell is a ratio to alone and its standard deviation over repeats (NaN where
// it was not repeated). Value is NaN where it was not measured.
type Cell struct{ Value, Spread float64 }

// Size is how the performance falls in co-locations of a number of tasks.
type Size struct {
	Tasks, Colocations int
	// All is over all cells; ByWorkload in the order of Class.Workloads.
	All        Range
	ByWorkload []Range
}

// Range summarises performances; all NaN where Cells is 0.
type Range struct {
	Cells           int
	Mean, Low, High float64
}

// Measure gives the account of samples. Repeats of a cell are merged as
// history.Summarise merges them. Samples of a scope other than a node are
// left out, since a pair on a device or a rack is not a pair on a node.
func Measure(samples []history.Sample) Measured {
	m := Measured{Spread: math.NaN(), SpreadP95: math.NaN()}
	var merged []history.Sample
	for _, s := range history.Summarise(samples).Samples {
		if s.Scope == "" || s.Scope == history.ScopeNode {
			merged = append(merged, s)
		}
	}
	m.Cells = len(merged)
	byClass := map[string][]history.Sample{}
	var spreads, errors []float64
	for i, s := range merged {
		byClass[s.Class] = append(byClass[s.Class], s)
		if !s.Start.IsZero() && (m.From.IsZero() || s.Start.Before(m.From)) {
			m.From = s.Start
		}
		if s.End.After(m.To) {
			m.To = s.End
		}
		n := max(s.Repeats, 1)
		if i == 0 {
			m.Repeats = [2]int{n, n}
		}
		m.Repeats[0], m.Repeats[1] = min(m.Repeats[0], n), max(m.Repeats[1], n)
		if s.Metric == history.Rate && n > 1 && s.Value > 0 {
			spreads = append(spreads, s.Spread/s.Value)
			if !s.Colocation.Alone() {
				errors = append(errors, s.Spread/s.Value/math.Sqrt(float64(n)))
			}
		}
	}
	slices.Sort(spreads)
	m.Spread, m.SpreadP95 = quantile(spreads, .5), quantile(spreads, .95)
	m.Noise, _ = meanAndSpread(errors)
	for _, name := range slices.Sorted(maps.Keys(byClass)) {
		c := measureClass(name, byClass[name])
		for _, s := range c.Sizes {
			m.Colocations += s.Colocations
		}
		m.Classes = append(m.Classes, c)
	}
	return m
}

// reading is one cell as a ratio to alone.
type reading struct {
	colocation cluster.Colocation
	workload   string
	metric     history.Metric
	cell       Cell
}

func measureClass(name string, samples []history.Sample) Class {
	c := Class{Name: name}
	names := map[string]bool{}
	for _, s := range samples {
		for w := range s.Colocation {
			names[w] = true
		}
	}
	index := map[string]int{}
	for _, w := range slices.Sorted(maps.Keys(names)) {
		index[w] = len(c.Workloads)
		c.Workloads = append(c.Workloads, workloadAlone(w, samples))
	}
	readings := ratios(samples, c.Workloads, index)
	c.Pairs = pairs(readings, index, history.Rate)
	c.Tails = pairs(readings, index, history.P99)
	c.Sizes = sizes(readings, index)
	return c
}

// workloadAlone prefers what was measured of a single task to what another
// sample says about it.
func workloadAlone(name string, samples []history.Sample) Workload {
	w := Workload{Name: name, Alone: math.NaN(), Spread: math.NaN(), Tail: math.NaN()}
	for _, s := range samples {
		if s.Workload != name || !s.Colocation.Alone() {
			continue
		}
		switch s.Metric {
		case history.Rate:
			w.Alone, w.Repeats = s.Value, max(s.Repeats, 1)
			if s.Repeats > 1 && s.Value > 0 {
				w.Spread = s.Spread / s.Value
			}
		case history.P99:
			w.Tail = s.Value
		}
	}
	for _, s := range samples {
		if s.Workload != name || s.Alone == 0 {
			continue
		}
		if s.Metric == history.Rate && math.IsNaN(w.Alone) {
			w.Alone = s.Alone
		}
		if s.Metric == history.P99 && math.IsNaN(w.Tail) {
			w.Tail = s.Alone
		}
	}
	// A rate of 1 for the workload alone is a ratio, not a rate.
	if w.Alone == 1 {
		w.Alone = math.NaN()
	}
	return w
}

func ratios(samples []history.Sample, workloads []Workload, index map[string]int) []reading {
	var out []reading
	for _, s := range samples {
		base := s.Alone
		if base == 0 {
			w := workloads[index[s.Workload]]
			switch s.Metric {
			case history.Rate:
				base = w.Alone
			case history.P99:
				base = w.Tail
			}
		}
		if !(base > 0) {
			continue
		}
		r := reading{s.Colocation, s.Workload, s.Metric, Cell{s.Value / base, math.NaN()}}
		if s.Repeats > 1 {
			r.cell.Spread = s.Spread / base
		}
		out = append(out, r)
	}
	return out
}

func pairs(readings []reading, index map[string]int, metric history.Metric) [][]Cell {
	out := make([][]Cell, len(index))
	for i := range out {
		out[i] = slices.Repeat([]Cell{{math.NaN(), math.NaN()}}, len(index))
	}
	any := false
	for _, r := range readings {
		if r.metric != metric || r.colocation.Tasks() != 2 {
			continue
		}
		other := r.workload
		for w := range r.colocation {
			if w != r.workload {
				other = w
			}
		}
		out[index[r.workload]][index[other]] = r.cell
		any = true
	}
	if !any && metric != history.Rate {
		return nil
	}
	return out
}

func sizes(readings []reading, index map[string]int) []Size {
	most := 0
	for _, r := range readings {
		most = max(most, r.colocation.Tasks())
	}
	out := make([]Size, most)
	keys := map[string]bool{}
	for i := range out {
		out[i] = Size{Tasks: i + 1, All: noRange(), ByWorkload: make([]Range, len(index))}
		for w := range out[i].ByWorkload {
			out[i].ByWorkload[w] = noRange()
		}
	}
	for _, r := range readings {
		s := &out[r.colocation.Tasks()-1]
		if key := r.colocation.Key(); !keys[key] {
			keys[key] = true
			s.Colocations++
		}
		if r.metric != history.Rate {
			continue
		}
		s.All.add(r.cell.Value)
		s.ByWorkload[index[r.workload]].add(r.cell.Value)
	}
	return out
}

func noRange() Range { return Range{Mean: math.NaN(), Low: math.NaN(), High: math.NaN()} }

func (r *Range) add(v float64) {
	r.Cells++
	if r.Cells == 1 {
		r.Mean, r.Low, r.High = v, v, v
		return
	}
	r.Mean += (v - r.Mean) / float64(r.Cells)
	r.Low, r.High = min(r.Low, v), max(r.High, v)
}

// quantile of sorted values, by linear interpolation; NaN where there are none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := q * float64(len(sorted)-1)
	i := min(int(at), len(sorted)-1)
	j := min(i+1, len(sorted)-1)
	return sorted[i] + (at-float64(i))*(sorted[j]-sorted[i])
}
