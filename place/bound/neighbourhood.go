package bound

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cotenant/cotenant/internal/lp"
	"github.com/cotenant/cotenant/place"
)

// How many nodes a neighbourhood frees, how many neighbourhoods in a row may
// fail before the search ends, and how much work they may be.
const (
	fewest   = 6
	most     = 14
	patience = 30
	solves   = 60  // linear programs a neighbourhood
	branches = 3   // columns tried at each node of the search
	budget   = 450 // linear programs in all, where options are perProgram or fewer

	perProgram = 100_000
)

// search frees the pending tasks of a few nodes at a time and plans them anew
// by the linear program of those nodes alone; its bound tells beforehand where
// nothing is to be gained. It ends near the bound or after patience
// neighbourhoods in a row without a gain.
func (s *solution) search(req place.Request, rng *rand.Rand) {
	t, q := s.q.trial, s.q
	if t.Values.Objective().Worst > 0 || len(t.Snapshot().Nodes()) < 3 {
		return
	}
	where := make([]int, len(t.Snapshot().Nodes()))
	for i := range q.classes {
		for _, n := range q.classes[i].nodes {
			where[n] = i
		}
	}
	// Pricing looks at every option, so many options buy fewer programs.
	options := 1
	for _, sh := range q.shapes {
		options += len(sh.parent)
	}
	left := min(budget, budget*perProgram/options)
	for failed := 0; failed < patience && left > 0 && !req.Stopped(); failed++ {
		if s.bound-t.Value() <= gap*math.Abs(s.bound) {
			return
		}
		if s.replan(s.choose(rng, where), where, req, &left) {
			failed = -1
		}
	}
}

// choose picks the nodes of a neighbourhood: for the better half those whose
// co-location loses at the dual prices, since the losses of all nodes add up
// to the distance from the bound, and for the rest any.
func (s *solution) choose(rng *rand.Rand, where []int) []int {
	n := min(fewest+rng.IntN(most-fewest), len(where))
	var chosen, rest []int
	for _, node := range rng.Perm(len(where)) {
		if s.loss(where[node], node) > 1e-7 && len(chosen) < n*2/3 {
			chosen = append(chosen, node)
		} else {
			rest = append(rest, node)
		}
	}
	return append(chosen, rest[:n-len(chosen)]...)
}

// keepPrices remembers what the relaxation says of each class: the price of
// each kind, and what the best option at those prices is worth.
func (s *solution) keepPrices() {
	s.prices, s.top = nil, nil
	for i := range s.q.classes {
		prices := s.q.prices(i, s.lp.Dual)
		_, top, _ := s.q.best(i, prices, 2)
		s.prices, s.top = append(s.prices, prices), append(s.top, top)
	}
}

// replan plans the pending tasks of the given nodes anew and keeps the new
// plan if it is better.
func (s *solution) replan(nodes, where []int, req place.Request, left *int) bool {
	t, q := s.q.trial, s.q
	excess := q.excess()
	clear(q.demand)
	for i := range q.free {
		q.free[i] = nil
	}
	before := 0.0
	old := make([][]int, len(nodes))
	for i, n := range nodes {
		before += q.worth(n)
		old[i] = make([]int, t.Kinds())
		for k := range old[i] {
			old[i][k] = t.PutOn(k, n)
			q.demand[k] += old[i][k]
		}
		q.free[where[n]] = append(q.free[where[n]], n)
	}
	s.freeCaps(nodes, where)
	for i, n := range nodes {
		move(t, old[i], n, (*place.Trial).Take)
	}
	q.columns, q.banned = q.columns[:0], nil
	least := 1e-9 * math.Abs(s.bound)
	b := &brancher{q: q, req: req, best: before + least, solves: solves, excess: excess}
	b.branch(q.solve(lp.Options{Stop: req.Stop}), 0, nil)
	*left -= 1 + solves - b.solves
	if b.plan != nil {
		q.apply(b.plan)
	}
	for i, n := range nodes {
		if b.plan == nil {
			move(t, old[i], n, (*place.Trial).Put)
		}
	}
	clear(q.demand)
	return b.plan != nil
}

// brancher is a branch and bound over the columns of a small program: it
// fixes the whole part of the relaxation, then branches on what is fractional,
// largest first, each branch without the columns of its elder siblings.
type brancher struct {
	q      *pricing
	req    place.Request
	best   float64
	plan   []taken
	solves int // left
	excess int // most that spreads may exceed their rules by
}

func (b *brancher) branch(r lp.Result, sofar float64, path []taken) {
	q := b.q
	if r.Status != lp.Optimal || sofar+r.Objective <= b.best {
		return
	}
	fixed := q.floor(r)
	defer func() { q.back(fixed) }()
	path = append(path, fixed...)
	for _, t := range fixed {
		sofar += q.classes[t.class].shape.value[t.option]
	}
	if q.left() == 0 {
		for i, free := range q.free {
			sofar += float64(len(free)) * q.classes[i].shape.value[0]
		}
		if sofar > b.best && q.excess() <= b.excess {
			b.best, b.plan = sofar, slices.Clone(path)
		}
		return
	}
	if len(fixed) > 0 {
		b.solve(r, sofar, path)
		return
	}
	var ban []column
	fractions := q.fractions(r)
	for _, c := range fractions[:min(branches, len(fractions))] {
		if t, ok := q.take(c); ok {
			b.solve(r, sofar+q.classes[c.class].shape.value[c.option], append(path, t))
			q.back([]taken{t})
		}
		if b.solves <= 0 {
			break
		}
		if q.banned == nil {
			q.banned = map[column]bool{}
		}
		if !q.banned[c] {
			q.banned[c] = true
			ban = append(ban, c)
		}
	}
	for _, c := range ban {
		delete(q.banned, c)
	}
}

func (b *brancher) solve(r lp.Result, sofar float64, path []taken) {
	if b.solves <= 0 || b.req.Stopped() {
		return
	}
	b.solves--
	b.branch(b.q.solve(lp.Options{Stop: b.req.Stop, Start: b.q.usable(r.Columns)}), sofar, path)
}

func move(t *place.Trial, counts []int, node int, step func(*place.Trial, int, int)) {
	for k, n := range counts {
		for range n {
			step(t, k, node)
		}
	}
}

// freeCaps sets the spread rows to what the tasks on the nodes take of them,
// so that the domains keep their numbers.
func (s *solution) freeCaps(nodes, where []int) {
	q := s.q
	q.exact = len(q.caps) > 0
	clear(q.caps)
	for _, n := range nodes {
		for k, row := range q.classes[where[n]].rows {
			if row >= 0 {
				q.caps[row] += float64(q.trial.PutOn(k, n))
			}
		}
	}
}
