package bound

import (
	"math"

	"github.com/cotenant/cotenant/internal/lp"
)

// targets fixes how many pending tasks each domain of a spread rule takes: the
// fractional solution's numbers, rounded so that they add up and keep within
// the rule. The spread rows are then met exactly, so that whatever is rounded
// afterwards keeps the spread. It reports whether there are such rows.
func (q *pricing) targets(r lp.Result) bool {
	if len(q.caps) == 0 {
		return false
	}
	share := make([]float64, len(q.caps))
	for i, x := range r.X {
		if tag := r.Columns[i].Tag; tag >= 0 && x > 0 {
			c := q.columns[tag]
			cl := &q.classes[c.class]
			cl.shape.tasks(c.option, func(k int) {
				if row := cl.rows[k]; row >= 0 {
					share[row] += x
				}
			})
		}
	}
	for _, rule := range q.spreads {
		left := 0
		for k, n := range q.demand {
			if q.trial.Workload(k) == rule.workload {
				left += n
			}
		}
		count := make([]int, len(rule.rows))
		for i, row := range rule.rows {
			count[i] = min(max(int(share[row]+1e-6), rule.least[i]), int(q.caps[row]))
			left -= count[i]
		}
		for left != 0 {
			at := -1
			for i, row := range rule.rows {
				fits := left > 0 && count[i] < int(q.caps[row]) || left < 0 && count[i] > rule.least[i]
				short := func(i int) float64 { return share[rule.rows[i]] - float64(count[i]) }
				if fits && (at < 0 || (left > 0) == (short(i) > short(at))) {
					at = i
				}
			}
			if at < 0 {
				return false // the rule cannot hold with all tasks placed
			}
			step := int(math.Copysign(1, float64(left)))
			count[at] += step
			left -= step
		}
		for i, row := range rule.rows {
			q.caps[row] = float64(count[i])
		}
	}
	q.exact = true
	return true
}
