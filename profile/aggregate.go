package profile

import (
	"cmp"
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// cell is what repeats of one measurement share.
type cell struct {
	class, colocation, workload, job string
	scope                            history.Scope
	role                             cluster.Role
	span                             cluster.Span
	batch                            int
	metric                           history.Metric
}

func cellOf(s history.Sample) cell {
	return cell{s.Class, s.Colocation.Key(), s.Workload, s.Job, s.Scope, s.Role, s.Span, s.BatchSize, s.Metric}
}

// Aggregate joins the repeats of each (class, co-location, workload, metric):
// Value becomes the mean, Repeats their number, Spread their standard
// deviation, and Alone the mean of the workload's alone-runs on the same class
// where there are any. Samples that are means already weigh as many repeats as
// they state. The result is in order of tasks, co-location, workload, metric.
func Aggregate(samples []history.Sample) []history.Sample {
	type sums struct {
		first        history.Sample
		n            int
		sum, squares float64
	}
	cells := map[cell]*sums{}
	var order []cell
	for _, s := range samples {
		k := cellOf(s)
		c := cells[k]
		if c == nil {
			c = &sums{first: s}
			cells[k] = c
			order = append(order, k)
		}
		n := max(1, s.Repeats)
		c.n += n
		c.sum += float64(n) * s.Value
		c.squares += float64(n)*s.Value*s.Value + float64(n-1)*s.Spread*s.Spread
		if s.Start.Before(c.first.Start) {
			c.first.Start = s.Start
		}
		if s.End.After(c.first.End) {
			c.first.End = s.End
		}
	}
	out := make([]history.Sample, 0, len(order))
	alone := map[cell]float64{}
	for _, k := range order {
		c := cells[k]
		s := c.first
		s.Value = c.sum / float64(c.n)
		s.Repeats, s.Spread = c.n, 0
		if c.n > 1 {
			s.Spread = math.Sqrt(max(0, c.squares-c.sum*s.Value) / float64(c.n-1))
		}
		out = append(out, s)
		if s.Colocation.Alone() {
			alone[k] = s.Value
		}
	}
	for i := range out {
		k := cellOf(out[i])
		k.colocation = cluster.Colocation{k.workload: 1}.Key()
		if v, ok := alone[k]; ok {
			out[i].Alone = v
		}
	}
	slices.SortStableFunc(out, func(a, b history.Sample) int {
		return cmp.Or(
			cmp.Compare(a.Class, b.Class),
			cmp.Compare(a.Colocation.Tasks(), b.Colocation.Tasks()),
			cmp.Compare(a.Colocation.Key(), b.Colocation.Key()),
			cmp.Compare(a.Workload, b.Workload),
			cmp.Compare(a.Span, b.Span),
			-cmp.Compare(a.Metric, b.Metric), // rate, p99, p50
		)
	})
	return out
}
