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

// AloneCell is the cell whose measurement c's is compared with: the same
// workload, alone.
func (c Cell) AloneCell() Cell {
	c.Colocation = cluster.Colocation{c.Workload: 1}.Key()
	return c
}
