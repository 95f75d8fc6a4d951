package history

import (
	"fmt"
	"math"
	"time"

	"github.com/cotenant/cotenant/cluster"
)

// Cell is what a sample measured, whoever measured it and whenever: samples
// of one cell are repeats of each other. It is comparable.
type Cell struct {
	Class      string
	Scope      Scope  // never empty: ScopeNode where the sample has none
	Colocation string // cluster.Colocation.Key
	Workload   string
	Role       cluster.Role
	Span       cluster.Span
	Workers    int // never 0: 1 where the sample has none
	BatchSize  int
	Metric     Metric
}

// Cell is the sample's cell.
func (s Sample) Cell() Cell {
	scope := s.Scope
	if scope == "" {
		scope = ScopeNode
	}
	return Cell{
		Class: s.Class, Scope: scope, Colocation: s.Colocation.Key(), Workload: s.Workload,
		Role: s.Role, Span: s.Span, Workers: max(s.Workers, 1), BatchSize: s.BatchSize, Metric: s.Metric,
	}
}

// String names the cell in words: "rate of redis in mms*2+redis on class c5".
func (c Cell) String() string {
	text := fmt.Sprintf("%s of %s in %s", c.Metric, c.Workload, c.Colocation)
	if c.Class != "" {
		text += " on class " + c.Class
	}
	if c.Scope != ScopeNode {
		text += " (scope " + string(c.Scope) + ")"
	}
	if c.Role != "" {
		text += " as " + string(c.Role)
	}
	if c.Span != "" {
		text += " spanning " + string(c.Span)
	}
	if c.Workers > 1 {
		text += fmt.Sprintf(" with %d workers", c.Workers)
	}
	if c.BatchSize != 0 {
		text += fmt.Sprintf(" at batch size %d", c.BatchSize)
	}
	return text
}

// When two measurements of a cell contradict each other: they are further
// apart than Tolerance of the larger plus Sigmas standard deviations of their
// difference. Measurements that carry no spread have only the tolerance.
const (
	Tolerance = 0.25
	Sigmas    = 4
)

// apart says whether two values contradict each other; spread is the standard
// deviation of their difference.
func apart(low, high, spread float64) bool { return high-low > Tolerance*high+Sigmas*spread }

// Culprits is an error about certain samples. Where they were read from, who
// read them can say.
type Culprits interface {
	error
	Culprits() []Sample
}

// Contradiction is a cell whose lowest and highest measurement can't both be
// right, by Tolerance and Sigmas.
type Contradiction struct {
	Cell Cell
	// Low and High are the two values, in the unit of the cell's first sample;
	// LowAt and HighAt their positions in the samples given to Summarise.
	Low, High     float64
	LowAt, HighAt int
	// samples are those two, as they were given.
	samples [2]Sample
}

// Error says which cell was measured twice, and how: in the samples' own
// numbers, which are what one looks for in a file.
func (c Contradiction) Error() string {
	low, high := fmt.Sprint(c.samples[0].Value), fmt.Sprint(c.samples[1].Value)
	if a, b := c.samples[0].Alone, c.samples[1].Alone; a != b {
		low, high = low+besides(a), high+besides(b)
	}
	return fmt.Sprintf("%s: measured as %s and as %s; remove the wrong one, or give them the classes they were measured on",
		c.Cell, low, high)
}

// Culprits implements the interface of that name.
func (c Contradiction) Culprits() []Sample { return c.samples[:] }

func besides(alone float64) string {
	if alone == 0 {
		return " (alone not given)"
	}
	return fmt.Sprintf(" (alone %g)", alone)
}

// Summary is what Summarise makes of samples.
type Summary struct {
	// Samples has one sample a cell, in the order of the cells' first samples.
	Samples []Sample
	// Duplicates counts samples equal in every field to an earlier one. They
	// still count as repeats: equal measurements happen.
	Duplicates int
	// Contradictions lists the cells that contradict themselves, in the order
	// of Samples, where their mean is kept all the same.
	Contradictions []Contradiction
}

// Summarise merges the samples of each cell into one: Value is the mean over
// all repeats, Repeats their number and Spread their standard deviation, that
// within samples and that between them pooled. Samples that know their value
// alone are brought to the unit of the cell's first such sample, so that a
// normalised rate and a rate in requests/s merge by performance. Source, Job,
// Start and End stay where all samples of the cell agree on them; the window
// becomes the one that spans all.
func Summarise(samples []Sample) Summary {
	var out Summary
	cells := map[Cell]int{}
	var members [][]int
	for i := range samples {
		c := samples[i].Cell()
		at, seen := cells[c]
		if !seen {
			at = len(members)
			cells[c] = at
			members = append(members, nil)
		}
		members[at] = append(members[at], i)
	}
	for _, in := range members {
		merged, contradiction, duplicates := merge(samples, in)
		out.Samples = append(out.Samples, merged)
		out.Duplicates += duplicates
		if contradiction != nil {
			out.Contradictions = append(out.Contradictions, *contradiction)
		}
	}
	return out
}

// merge makes one sample of a cell's members, given by their positions.
func merge(samples []Sample, in []int) (Sample, *Contradiction, int) {
	out := samples[in[0]]
	if len(in) == 1 {
		return out, nil, 0
	}
	out.Alone = 0
	for _, i := range in {
		if out.Alone == 0 {
			out.Alone = samples[i].Alone
		}
		out = agree(out, samples[i])
	}

	clash := Contradiction{Cell: out.Cell(), Low: math.Inf(1), High: math.Inf(-1)}
	var lowSpread, highSpread float64
	// Repeats, mean and the sum of squared deviations from it, combined sample
	// by sample (Chan, Golub & LeVeque 1983).
	var n, mean, squares float64
	for _, i := range in {
		v, sd := inUnitOf(samples[i], out.Alone)
		k := float64(max(samples[i].Repeats, 1))
		gap := v - mean
		squares += (k-1)*sd*sd + gap*gap*n*k/(n+k)
		n += k
		mean += gap * k / n
		if v < clash.Low {
			clash.Low, lowSpread, clash.LowAt = v, sd, i
		}
		if v > clash.High {
			clash.High, highSpread, clash.HighAt = v, sd, i
		}
	}
	out.Value, out.Repeats, out.Spread = mean, int(n), math.Sqrt(squares/max(n-1, 1))
	if apart(clash.Low, clash.High, math.Hypot(lowSpread, highSpread)) {
		clash.samples = [2]Sample{samples[clash.LowAt], samples[clash.HighAt]}
		return out, &clash, duplicates(samples, in)
	}
	return out, nil, duplicates(samples, in)
}

// inUnitOf brings a value to the unit in which the workload alone is unit.
func inUnitOf(s Sample, unit float64) (value, spread float64) {
	if s.Alone == 0 || s.Alone == unit {
		return s.Value, s.Spread
	}
	return s.Value / s.Alone * unit, s.Spread / s.Alone * unit
}

// agree keeps of out's origin what s shares, and widens its window over s's.
func agree(out, s Sample) Sample {
	if s.Source != out.Source {
		out.Source = ""
	}
	if s.Job != out.Job {
		out.Job = ""
	}
	if s.Start.IsZero() || out.Start.IsZero() {
		out.Start, out.End = time.Time{}, time.Time{}
		return out
	}
	if s.Start.Before(out.Start) {
		out.Start = s.Start
	}
	if s.End.After(out.End) {
		out.End = s.End
	}
	return out
}

// duplicates counts the members equal in every field to an earlier member.
func duplicates(samples []Sample, in []int) int {
	type rest struct { // the fields that are not the cell's
		source, job          string
		start, end           int64
		value, alone, spread float64
		repeats              int
	}
	seen := make(map[rest]bool, len(in))
	for _, i := range in {
		s := samples[i]
		seen[rest{
			s.Source, s.Job, s.Start.UnixNano(), s.End.UnixNano(),
			s.Value, s.Alone, s.Spread, max(s.Repeats, 1),
		}] = true
	}
	return len(in) - len(seen)
}
