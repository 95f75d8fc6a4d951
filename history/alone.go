package history

import (
	"cmp"
	"slices"

	"github.com/cotenant/cotenant/cluster"
)

// Aggregate turns raw repeats into one sample a cell, as Summarise does, and
// fills in Alone: the mean of the workload's alone-runs on the same class, 0
// where there are none. The result is in order of class, tasks, co-location,
// workload, span, metric (rate first).
//
// Repeats that differ much are what noise looks like, so they are no
// contradiction here: Spread tells.
func Aggregate(raw []Sample) []Sample {
	out := Summarise(raw).Samples
	alone := map[Cell]float64{}
	for _, s := range out {
		if s.Colocation.Alone() {
			alone[s.Cell()] = s.Value
		}
	}
	for i := range out {
		out[i].Alone = alone[out[i].Cell().AloneCell()]
	}
	slices.SortStableFunc(out, func(a, b Sample) int {
		return cmp.Or(
			cmp.Compare(a.Class, b.Class),
			cmp.Compare(a.Colocation.Tasks(), b.Colocation.Tasks()),
			cmp.Compare(a.Colocation.Key(), b.Colocation.Key()),
			cmp.Compare(a.Workload, b.Workload),
			cmp.Compare(a.Span, b.Span),
			-cmp.Compare(a.Metric, b.Metric),
		)
	})
	return out
}

// Joined joins, by Aggregate, the repeats of a raw record, such as those of
// `cotenant profile` and `cotenant import prometheus`: all its samples have a
// window and none a rate alone. Those of a cell differ by noise, which is then
// its spread; in other samples, which are returned as they are, that much
// difference is a contradiction.
func Joined(samples []Sample) []Sample {
	for _, s := range samples {
		if s.Alone != 0 || s.Start.IsZero() {
			return samples
		}
	}
	return Aggregate(samples)
}

// AloneCell is the cell whose measurement c's is compared with: the same
// workload, alone.
func (c Cell) AloneCell() Cell {
	c.Colocation = cluster.Colocation{c.Workload: 1}.Key()
	return c
}
