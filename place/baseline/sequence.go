package baseline

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// chooser is what differs between policies that place one task after another
// in arrival order and never look back.
type chooser interface {
	// choose picks a node that takes a task of the kind now, or -1.
	choose(kind int) int
	// put and take keep the chooser's books, the placement's among them.
	put(kind, node int)
	take(kind, node int)
	// reason accounts for the last choose, before its put.
	reason(kind, node int) place.Reason
}

// sequence places the pending tasks one after another. Gangs that do not fit
// whole are taken back at once, so that later tasks may use the room.
type sequence struct {
	req       place.Request
	placement *cluster.Placement
	chooser   chooser
	explain   bool

	at   []int // node by pending task; -1 while held
	why  map[int]place.Reason
	held map[int]string // why the last try of a gang failed, by its first task
}

func newSequence(req place.Request, p *cluster.Placement, c chooser, explain bool) *sequence {
	s := &sequence{req: req, placement: p, chooser: c, explain: explain, why: map[int]place.Reason{}, held: map[int]string{}}
	for _, g := range req.Pending {
		for range g.Tasks {
			s.at = append(s.at, -1)
		}
	}
	return s
}

// place tries every task that is held, in order, until a pass places none: a
// task that would have skewed its spread may fit once others are placed. It
// reports whether it placed any.
func (s *sequence) place() bool {
	moved := false
	for placed := true; placed; {
		placed = false
		first := 0
		for _, g := range s.req.Pending {
			last := first + len(g.Tasks)
			if g.Gang {
				placed = s.gang(g, first) || placed
			} else {
				for i := first; i < last; i++ {
					if s.at[i] < 0 {
						placed = s.one(i) || placed
					}
				}
			}
			first = last
		}
		moved = moved || placed
	}
	return moved
}

func (s *sequence) one(i int) bool {
	k := s.placement.Kind(i)
	n := s.chooser.choose(k)
	if n < 0 {
		return false
	}
	if s.explain {
		s.why[i] = s.chooser.reason(k, n)
	}
	s.chooser.put(k, n)
	s.at[i] = n
	return true
}

func (s *sequence) gang(g cluster.Group, first int) bool {
	if len(g.Tasks) == 0 || s.at[first] >= 0 {
		return false
	}
	for i := range g.Tasks {
		if s.one(first + i) {
			continue
		}
		s.held[first] = fmt.Sprintf("%d of %d tasks of gang %s fit and gangs are placed whole; for the next: %s",
			i, len(g.Tasks), g.Name, place.WhyNot(s.placement, s.placement.Kind(first+i)))
		for j := first + i - 1; j >= first; j-- {
			s.chooser.take(s.placement.Kind(j), s.at[j])
			s.at[j] = -1
			delete(s.why, j)
		}
		return false
	}
	return true
}

// decision is what was placed, with the reasons if they were asked for.
func (s *sequence) decision() place.Decision {
	d := place.DecisionOf(s.req, s.placement, s.at)
	gang := map[cluster.TaskID]string{}
	first := 0
	for _, g := range s.req.Pending {
		if g.Gang && len(g.Tasks) > 0 && s.at[first] < 0 {
			for _, t := range g.Tasks {
				gang[t.ID] = s.held[first]
			}
		}
		first += len(g.Tasks)
	}
	for i := range d.Hold {
		if why, ok := gang[d.Hold[i].Task]; ok {
			d.Hold[i].Why = why
		}
	}
	if s.explain {
		d.Why = make(place.Reasons, len(s.why))
		for i, t := range s.req.Tasks() {
			if why, ok := s.why[i]; ok {
				d.Why[t.ID] = why
			}
		}
	}
	return d
}

// ranker scores nodes for a task; the highest score wins.
type ranker interface {
	// rank writes into scores what the candidates, which all take the task, are
	// worth. Some scores depend on all candidates (kube-scheduler normalises).
	rank(kind int, candidates []int, scores []float64)
	// counted tells of a task that came to (by = 1) or left (-1) a node.
	counted(kind, node, by int)
	// reason accounts for a node that won over others.
	reason(kind, node int) place.Reason
}

// ranked is a chooser by scores. Ties go to a node drawn at random where the
// request has a source of randomness and the policy asks for that, otherwise to the
// lowest index.
type ranked struct {
	*cluster.Placement
	ranker
	req        place.Request
	randomTies bool

	candidates []int
	scores     []float64
}

func newRanked(req place.Request, p *cluster.Placement, r ranker, randomTies bool) *ranked {
	return &ranked{Placement: p, ranker: r, req: req, randomTies: randomTies}
}

func (r *ranked) choose(kind int) int {
	r.candidates = r.candidates[:0]
	for n := range r.req.View.Nodes() {
		if r.Check(kind, n) == cluster.Fits {
			r.candidates = append(r.candidates, n)
		}
	}
	if len(r.candidates) == 0 {
		return -1
	}
	if cap(r.scores) < len(r.candidates) {
		r.scores = make([]float64, len(r.req.View.Nodes()))
	}
	r.scores = r.scores[:len(r.candidates)]
	r.rank(kind, r.candidates, r.scores)
	best, ties := 0, 1
	for i := 1; i < len(r.scores); i++ {
		switch {
		case r.scores[i] > r.scores[best]:
			best, ties = i, 1
		case r.scores[i] == r.scores[best]:
			ties++
			// Each of the ties found so far stays with the same chance.
			if r.randomTies && r.req.Rand != nil && r.req.Rand.IntN(ties) == 0 {
				best = i
			}
		}
	}
	return r.candidates[best]
}

func (r *ranked) put(kind, node int) {
	r.Put(kind, node)
	r.counted(kind, node, 1)
}

func (r *ranked) take(kind, node int) {
	r.Take(kind, node)
	r.counted(kind, node, -1)
}

func (r *ranked) reason(kind, node int) place.Reason { return r.ranker.reason(kind, node) }

// place runs the whole request through a ranker.
func (r *ranked) place(explain bool) place.Decision {
	s := newSequence(r.req, r.Placement, r, explain)
	s.place()
	return s.decision()
}
