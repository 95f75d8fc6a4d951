package bound

import (
	"math"
	"slices"

	"github.com/cotenant/cotenant/internal/lp"
	"github.com/cotenant/cotenant/place"
)

// levelSolves is how many linear programs a level of worst performance may
// cost.
const levelSolves = 150

// planWorst raises the lowest performance of a plan: by bisection between what
// it reaches and what the relaxation allows, it looks for whole nodes among the
// options that keep a level.
func (s *solution) planWorst(req place.Request) {
	t, q := s.q.trial, s.q
	if t.Values.Objective().Worst == 0 || q.left() > 0 {
		return
	}
	reached := math.Inf(1)
	for n := range t.Snapshot().Nodes() {
		reached = min(reached, t.Values.Value(t.Config(n)).Worst)
	}
	low, _ := slices.BinarySearch(s.levels, reached)
	high, _ := slices.BinarySearch(s.levels, s.atLeast)
	value := t.Value()
	best := s.clear()
	for low < high && !req.Stopped() {
		mid := (low + high + 1) / 2
		s.restart()
		q.atLeast = s.levels[mid]
		b := &brancher{q: q, req: req, best: math.Inf(-1), solves: levelSolves, excess: q.excess()}
		b.branch(q.solve(lp.Options{Stop: req.Stop}), 0, nil)
		if b.plan == nil {
			high = mid - 1
			continue
		}
		low = mid
		q.apply(b.plan)
		if v := t.Value(); v > value {
			value = v
			best = s.clear()
		} else {
			s.clear()
		}
	}
	for n, counts := range best {
		move(t, counts, n, (*place.Trial).Put)
	}
	clear(q.demand)
}
