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
	fewest   = 8
	most     = 20
	patience = 80
	solves   = 80   // linear programs a neighbourhood
	budget   = 2000 // linear programs in all
)

// search frees the pending tasks of a few nodes at a time and plans them anew
// by the linear program of those nodes alone; its bound tells beforehand where
// nothing is to be gained. It ends near the bound or after patience
// neighbourhoods in a row without a gain.
func (s *solution) search(req place.Request) {
	t, q := s.q.trial, s.q
	if t.Values.Objective().Worst > 0 || len(t.Snapshot().Nodes()) < 3 {
		return
	}
	rng := rand.New(rand.NewPCG(1, 1)) // the plan depends on the request alone
	where := make([]int, len(t.Snapshot().Nodes()))
	for i := range q.classes {
		for _, n := range q.classes[i].nodes {
			where[n] = i
		}
	}
	left := budget
	for failed := 0; failed < patience && left > 0 && !req.Stopped(); failed++ {
		if s.bound-t.Value() <= gap*math.Abs(s.bound) {
			return
		}
		if s.replan(rng.Perm(len(where))[:min(fewest+rng.IntN(most-fewest), len(where))], where, req, &left) {
			failed = -1
		}
	}
}

// replan plans the pending tasks of the given nodes anew and keeps the new
// plan if it is better.
func (s *solution) replan(nodes, where []int, req place.Request, left *int) bool {
	t, q := s.q.trial, s.q
	clear(q.demand)
	for i := range q.free {
		q.free[i] = nil
	}
	before := 0.0
	old := make([][]int, len(nodes))
	for i, n := range nodes {
		before += t.Values.Value(t.Config(n)).Sum
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
	skew := totalSkew(t)
	q.columns, q.banned = q.columns[:0], nil
	least := 1e-9 * math.Abs(s.bound)
	b := &brancher{q: q, req: req, best: before + least, solves: solves, skew: max(0, skew)}
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
	skew   int
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
		if sofar > b.best && totalSkew(q.trial) <= b.skew {
			b.best, b.plan = sofar, slices.Clone(path)
		}
		return
	}
	if len(fixed) > 0 {
		b.solve(r, sofar, path)
		return
	}
	var ban []column
	for _, c := range q.fractions(r) {
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

// freeCaps sets the spread rows to what the tasks outside the nodes leave.
func (s *solution) freeCaps(nodes, where []int) {
	q := s.q
	if len(q.caps) == 0 {
		return
	}
	copy(q.caps, q.problem.caps)
	inside := map[int]bool{}
	for _, n := range nodes {
		inside[n] = true
	}
	for n, class := range where {
		if inside[n] {
			continue
		}
		for k, row := range q.classes[class].rows {
			if row >= 0 {
				q.caps[row] -= float64(q.trial.PutOn(k, n))
			}
		}
	}
	for i, c := range q.caps {
		q.caps[i] = max(0, c)
	}
}
