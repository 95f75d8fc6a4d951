package bound

import (
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/internal/lp"
	"github.com/cotenant/cotenant/place"
)

// prepare readies the relaxation for rounding: with spread rules, each domain
// gets its number of tasks.
func (s *solution) prepare(req place.Request) {
	if s.q.targets(s.lp) {
		if r := s.q.solve(lp.Options{Stop: req.Stop}); r.Status == lp.Optimal {
			s.lp = r
		} else {
			s.q.exact = false
			copy(s.q.caps, s.q.problem.caps)
		}
	}
	s.keepPrices()
	s.columns = slices.Clone(s.q.columns)
	s.start, s.exact = slices.Clone(s.q.caps), s.q.exact
}

// restart makes the pricing what it was before rounding; the trial is clear.
func (s *solution) restart() {
	q := s.q
	copy(q.demand, q.problem.demand)
	copy(q.caps, s.start)
	for i := range q.free {
		q.free[i] = slices.Clone(q.classes[i].nodes)
	}
	q.banned, q.exact = nil, s.exact
	q.columns = append(q.columns[:0:0], s.columns...)
}

// dive fixes the whole part of a fractional solution, solves what is left
// anew, and where nothing is whole fixes the largest fraction, or one drawn.
// The tasks are put on the trial; what no column took is left for repair.
func (q *pricing) dive(r lp.Result, req place.Request) {
	for {
		fixed := q.floor(r)
		if len(fixed) == 0 {
			c := q.fractions(r)
			if len(c) == 0 {
				return
			}
			at := 0
			if q.draw != nil {
				at = q.draw.IntN(len(c))
			}
			if _, ok := q.take(c[at]); !ok {
				return
			}
		}
		if q.left() == 0 || req.Stopped() {
			return
		}
		r = q.solve(lp.Options{Stop: req.Stop, Start: q.usable(r.Columns)})
		if r.Status != lp.Optimal {
			return
		}
	}
}

// usable are the columns that still fit what is left to place.
func (q *pricing) usable(columns []lp.Column) []lp.Column {
	var out []lp.Column
	for _, c := range columns {
		if c.Tag < 0 || q.allows(q.columns[c.Tag]) {
			out = append(out, c)
		}
	}
	return out
}

func (q *pricing) allows(c column) bool {
	s := q.classes[c.class].shape
	if len(q.free[c.class]) == 0 || q.banned[c] {
		return false
	}
	most := q.most(c.class)
	for at := c.option; at > 0; at = s.parent[at] {
		if int(s.run[at]) > most[s.kind[at]] {
			return false
		}
	}
	return true
}

// taken is a node that was given an option.
type taken struct {
	column
	node int
}

// take gives a free node of the column's class its option: the tasks are put
// and leave the demand.
func (q *pricing) take(c column) (taken, bool) {
	cl := &q.classes[c.class]
	if !q.allows(c) {
		return taken{}, false
	}
	node := q.free[c.class][0]
	var kinds []int
	cl.shape.tasks(c.option, func(k int) { kinds = append(kinds, k) })
	// Rules across nodes (anti-affinity over a zone) are not in the relaxation.
	for i, k := range kinds {
		if !q.fits(k, node) {
			for _, undo := range kinds[:i] {
				q.trial.Take(undo, node)
			}
			return taken{}, false
		}
		q.trial.Put(k, node)
	}
	for _, k := range kinds {
		q.demand[k]--
		if r := cl.rows[k]; r >= 0 {
			q.caps[r]--
		}
	}
	q.free[c.class] = q.free[c.class][1:]
	return taken{c, node}, true
}

// back undoes takes, last first.
func (q *pricing) back(all []taken) {
	for _, t := range slices.Backward(all) {
		cl := &q.classes[t.class]
		cl.shape.tasks(t.option, func(k int) {
			q.trial.Take(k, t.node)
			q.demand[k]++
			if r := cl.rows[k]; r >= 0 {
				q.caps[r]++
			}
		})
		q.free[t.class] = append([]int{t.node}, q.free[t.class]...)
	}
}

// apply takes a plan again.
func (q *pricing) apply(plan []taken) {
	for _, t := range plan {
		cl := &q.classes[t.class]
		cl.shape.tasks(t.option, func(k int) {
			q.trial.Put(k, t.node)
			q.demand[k]--
			if r := cl.rows[k]; r >= 0 {
				q.caps[r]--
			}
		})
		i := slices.Index(q.free[t.class], t.node)
		q.free[t.class] = slices.Delete(slices.Clone(q.free[t.class]), i, i+1)
	}
}

func (q *pricing) left() int {
	n := 0
	for _, d := range q.demand {
		n += d
	}
	return n
}

// floor takes the whole part of a solution.
func (q *pricing) floor(r lp.Result) []taken {
	var all []taken
	for i, x := range r.X {
		if r.Columns[i].Tag < 0 {
			continue
		}
		for range int(x + 1e-6) {
			t, ok := q.take(q.columns[r.Columns[i].Tag])
			if !ok {
				break
			}
			all = append(all, t)
		}
	}
	return all
}

// fractions are the columns with a fractional part, largest first. Empty
// options are what is left over, never a goal.
func (q *pricing) fractions(r lp.Result) []column {
	type part struct {
		c column
		f float64
	}
	var parts []part
	for i, x := range r.X {
		f := x - math.Floor(x+1e-6)
		if tag := r.Columns[i].Tag; tag >= 0 && f > 1e-6 && q.columns[tag].option != 0 {
			parts = append(parts, part{q.columns[tag], f})
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int {
		switch {
		case a.f > b.f:
			return -1
		case a.f < b.f:
			return 1
		}
		return 0
	})
	out := make([]column, len(parts))
	for i, p := range parts {
		out[i] = p.c
	}
	return out
}

// repair evens out spreads that the rounding left too uneven, by the moves
// that cost least, and puts the tasks that are left where they gain most.
func (s *solution) repair() {
	for range 4 {
		s.insert()
		if !s.even() {
			break
		}
	}
	s.shed()
}

// shed takes back tasks of workloads whose spread is more uneven than their
// rules and the running tasks make it: no way was found to place them all.
func (s *solution) shed() {
	t := s.q.trial
	nodes := len(t.Snapshot().Nodes())
	for k := range s.q.demand {
		w := t.Workload(k)
		for t.Skew(w) > s.q.skew[w] {
			best, at := math.MaxInt, -1
			for n := range nodes {
				if t.PutOn(k, n) == 0 {
					continue
				}
				t.Take(k, n)
				if skew := t.Skew(w); skew < best {
					best, at = skew, n
				}
				t.Put(k, n)
			}
			if at < 0 {
				break
			}
			t.Take(k, at)
			s.q.demand[k]++
		}
	}
}

// insert puts what is left where it gains most, and where nothing is free
// makes room by letting other pending tasks give way.
func (s *solution) insert() {
	t := s.q.trial
	for k := range s.q.demand {
		for s.q.demand[k] > 0 {
			if at := bestNode(t, k); at >= 0 {
				t.Put(k, at)
			} else if work := ejections; !s.makeRoom(k, 3, &work) {
				break
			}
			s.q.demand[k]--
		}
	}
}

// ejections bounds the checks that making room for one task may cost.
const ejections = 2_000_000

// bestNode is the node that fits a task of kind k with the highest gain, or -1.
func bestNode(t *place.Trial, k int) int {
	best, at := math.Inf(-1), -1
	for n := range t.Snapshot().Nodes() {
		if t.Check(k, n) == cluster.Fits {
			if g := t.Gain(k, n); g > best || at < 0 {
				best, at = g, n
			}
		}
	}
	return at
}

// makeRoom puts a task of kind k where another pending task gives way, which
// is then put elsewhere, by giving way in turn up to the given depth.
func (s *solution) makeRoom(k, depth int, work *int) bool {
	t := s.q.trial
	nodes := len(t.Snapshot().Nodes())
	for n := range nodes {
		for j := range t.Kinds() {
			if j == k || t.PutOn(j, n) == 0 || *work < 0 {
				continue
			}
			t.Take(j, n)
			*work -= nodes
			if at := bestNode(t, k); at >= 0 {
				t.Put(k, at)
				if other := bestNode(t, j); other >= 0 {
					t.Put(j, other)
					return true
				}
				if depth > 1 && s.makeRoom(j, depth-1, work) {
					return true
				}
				t.Take(k, at)
			}
			t.Put(j, n)
		}
	}
	return false
}

// even lowers the skew of each workload whose spread exceeds its rule: a task
// moves from a fuller domain to an emptier one, or trades places with a task
// of another kind. It reports whether it changed anything.
func (s *solution) even() bool {
	t := s.q.trial
	nodes := len(t.Snapshot().Nodes())
	changed := false
	for k := range s.q.demand {
		w := t.Workload(k)
		for work := ejections; t.Skew(w) > s.q.skew[w] && work > 0; {
			before := s.q.excess()
			type move struct{ from, to, trade int }
			best, at := math.Inf(-1), move{}
			for from := range nodes {
				if t.PutOn(k, from) == 0 {
					continue
				}
				for to := range nodes {
					if to == from {
						continue
					}
					for trade := -1; trade < t.Kinds(); trade++ {
						if trade == k || (trade >= 0 && t.PutOn(trade, to) == 0) {
							continue
						}
						work--
						if gain, ok := s.exchange(k, from, to, trade, before, false); ok && gain > best {
							best, at = gain, move{from, to, trade}
						}
					}
				}
				if !math.IsInf(best, -1) && work < ejections/2 {
					break // one of many is good enough
				}
			}
			if math.IsInf(best, -1) {
				break
			}
			s.exchange(k, at.from, at.to, at.trade, before, true)
			changed = true
		}
	}
	return changed
}

// excess is by how much spreads are more uneven than their rules and the
// running tasks make them, over all workloads.
func (p *problem) excess() int {
	sum := 0
	for w, unavoidable := range p.skew {
		sum += max(0, p.trial.Skew(w)-unavoidable)
	}
	return sum
}

// exchange moves a task of kind k from one node to another, in trade for one
// of kind trade unless that is -1, if the constraints allow it and the total
// excess falls. It is undone unless keep is set.
func (s *solution) exchange(k, from, to, trade, excess int, keep bool) (gain float64, ok bool) {
	t := s.q.trial
	before := s.q.worth(from) + s.q.worth(to)
	t.Take(k, from)
	if trade >= 0 {
		t.Take(trade, to)
	}
	fit := func(kind, node int) bool {
		r := t.Check(kind, node)
		return r == cluster.Fits || r == cluster.Skewed
	}
	put := 0
	if fit(k, to) {
		t.Put(k, to)
		put = 1
		if trade < 0 || fit(trade, from) {
			if trade >= 0 {
				t.Put(trade, from)
			}
			put = 2
		}
	}
	gain = s.q.worth(from) + s.q.worth(to) - before
	ok = put == 2 && s.q.excess() < excess && !math.IsInf(gain, -1)
	if keep && ok {
		return gain, true
	}
	if put == 2 && trade >= 0 {
		t.Take(trade, from)
	}
	if put >= 1 {
		t.Take(k, to)
	}
	if trade >= 0 {
		t.Put(trade, to)
	}
	t.Put(k, from)
	return gain, ok
}
