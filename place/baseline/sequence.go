package baseline

import (
	"fmt"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// Chooser is what differs between policies that place one task after another
// in arrival order and never look back.
type Chooser interface {
	// Choose picks a node that takes a task of the kind now, or -1.
	Choose(kind int) int
	// Put and Take keep the chooser's books, the placement's among them.
	Put(kind, node int)
	Take(kind, node int)
	// Reason accounts for the last Choose, before its Put.
	Reason(kind, node int) place.Reason
}

// Orderer is a Chooser that says which task is next. The tasks of a group come
// in no order; those of gangs are placed as they are listed.
type Orderer interface {
	// Next is a kind of which tasks are left, left by kind, and one fits; -1
	// where none does.
	Next(left []int) int
}

// Renewer is a Chooser that keeps books of the board: Renew tells it that a
// search has moved tasks past it.
type Renewer interface{ Renew() }

// Sequence places the pending tasks one after another. Gangs that do not fit
// whole are taken back at once, so that later tasks may use the room.
type Sequence struct {
	req       place.Request
	placement *cluster.Placement
	chooser   Chooser
	explain   bool

	at   []int // node by pending task; -1 while held
	why  map[int]place.Reason
	held map[int]string // why the last try of a gang failed, by its first task

	full    []bool // by kind: no node takes one, until something changes that
	skewing bool   // a task more can make room for another: spread rules
	tried   []bool // by task: it has had its turn
	turns   int    // had by so many
	stopped bool
}

// stopEvery is how many tasks are placed between two looks at the time: a
// batch of fewer is done before anybody waits for it.
const stopEvery = 256

// NewSequence is a sequence over the tasks of req, none placed yet. c chooses
// for p; explain keeps its reasons.
func NewSequence(req place.Request, p *cluster.Placement, c Chooser, explain bool) *Sequence {
	s := &Sequence{req: req, placement: p, chooser: c, explain: explain, why: map[int]place.Reason{}, held: map[int]string{}}
	for _, g := range req.Pending {
		for range g.Tasks {
			s.at = append(s.at, -1)
		}
	}
	s.full, s.tried = make([]bool, p.Kinds()), make([]bool, len(s.at))
	s.skewing = len(req.View.Constraints().Spread) > 0
	return s
}

// Place tries every task that is held, in order, until a pass places none: a
// task that would have skewed its spread may fit once others are placed. It
// reports whether it placed any. Where the request's time is up, it ends.
func (s *Sequence) Place() bool {
	moved := false
	clear(s.full) // the caller may have moved tasks since
	for placed := true; placed && !s.stopped; {
		placed = false
		first := 0
		for _, g := range s.req.Pending {
			last := first + len(g.Tasks)
			o, orders := s.chooser.(Orderer)
			switch {
			case g.Gang:
				placed = s.gang(g, first) || placed
			case orders:
				placed = s.ordered(o, first, last) || placed
			default:
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

// ordered tries the tasks first to last that are held in an order of the
// chooser's, then those of which it said that none fits.
func (s *Sequence) ordered(o Orderer, first, last int) (placed bool) {
	left, tasks := make([]int, s.placement.Kinds()), make([][]int, s.placement.Kinds())
	for i := first; i < last; i++ {
		if k := s.placement.Kind(i); s.at[i] < 0 {
			left[k]++
			tasks[k] = append(tasks[k], i)
		}
	}
	for k := o.Next(left); k >= 0 && !s.stopped; k = o.Next(left) {
		if !s.one(tasks[k][0]) {
			left[k] = 0
			continue
		}
		placed = true
		tasks[k] = tasks[k][1:]
		left[k]--
	}
	for _, of := range tasks {
		for _, i := range of {
			placed = s.one(i) || placed
		}
	}
	return placed
}

func (s *Sequence) one(i int) bool {
	k := s.placement.Kind(i)
	if !s.tried[i] {
		s.stopped = s.stopped || s.turns%stopEvery == stopEvery-1 && s.req.Stopped()
		if s.stopped {
			return false
		}
		s.tried[i] = true
		s.turns++
	}
	if s.full[k] {
		return false
	}
	n := s.chooser.Choose(k)
	if n < 0 {
		s.full[k] = true
		return false
	}
	if s.skewing {
		clear(s.full)
	}
	if s.explain {
		s.why[i] = s.chooser.Reason(k, n)
	}
	s.chooser.Put(k, n)
	s.at[i] = n
	return true
}

func (s *Sequence) gang(g cluster.Group, first int) bool {
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
			s.chooser.Take(s.placement.Kind(j), s.at[j])
			s.at[j] = -1
			delete(s.why, j)
		}
		clear(s.full)
		return false
	}
	return true
}

// Decision is what was placed, with the reasons if they were asked for.
func (s *Sequence) Decision() place.Decision {
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
	tasks := s.req.Tasks()
	late := map[cluster.TaskID]bool{}
	if s.stopped {
		for i, t := range tasks {
			late[t.ID] = !s.tried[i]
		}
	}
	for i := range d.Hold {
		if why, ok := gang[d.Hold[i].Task]; ok {
			d.Hold[i].Why = why
		}
		if late[d.Hold[i].Task] {
			d.Hold[i].Why = fmt.Sprintf("the time was up after %d of %d tasks, before its turn", s.turns, len(tasks))
		}
	}
	if s.explain {
		d.Why = make(place.Reasons, len(s.why))
		for i, t := range tasks {
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
	// worth. Some scores depend on all candidates (kube-scheduler normalises):
	// each stands for the nodes that are like it, fit nodes in all.
	rank(kind int, candidates []int, fit int, scores []float64)
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

	alike      *alike
	candidates []int
	scores     []float64
}

func newRanked(req place.Request, p *cluster.Placement, r ranker, randomTies bool) *ranked {
	return &ranked{Placement: p, ranker: r, req: req, randomTies: randomTies && req.Rand != nil, alike: newAlike(req, p)}
}

func (r *ranked) Choose(kind int) int {
	r.candidates = r.candidates[:0]
	fit := 0
	for _, s := range r.alike.live {
		// All nodes of a set take the task or none does.
		set := r.alike.sets[s].nodes
		if n := int(set[0]); r.Check(kind, n) == cluster.Fits {
			r.candidates = append(r.candidates, n)
			fit += len(set)
		}
	}
	if len(r.candidates) == 0 {
		return -1
	}
	r.scores = slices.Grow(r.scores[:0], len(r.candidates))[:len(r.candidates)]
	r.rank(kind, r.candidates, fit, r.scores)
	best := slices.Max(r.scores)
	if r.randomTies {
		return r.draw(best)
	}
	lowest := -1
	for i, n := range r.candidates {
		if r.scores[i] == best && (lowest < 0 || n < lowest) {
			lowest = n
		}
	}
	return lowest
}

// draw picks any node of the best score with the same chance.
func (r *ranked) draw(best float64) int {
	set := func(i int) []int32 { return r.alike.sets[r.alike.at[r.candidates[i]]].nodes }
	ties := 0
	for i := range r.candidates {
		if r.scores[i] == best {
			ties += len(set(i))
		}
	}
	pick := r.req.Rand.IntN(ties)
	for i := range r.candidates {
		if r.scores[i] != best {
			continue
		}
		if nodes := set(i); pick < len(nodes) {
			return int(nodes[pick])
		}
		pick -= len(set(i))
	}
	panic("baseline: drew a node past the last")
}

func (r *ranked) Put(kind, node int) {
	r.Placement.Put(kind, node)
	r.counted(kind, node, 1)
	r.alike.moved(kind, node, 1)
}

func (r *ranked) Take(kind, node int) {
	r.Placement.Take(kind, node)
	r.counted(kind, node, -1)
	r.alike.moved(kind, node, -1)
}

func (r *ranked) Reason(kind, node int) place.Reason { return r.ranker.reason(kind, node) }

// place runs the whole request through a ranker.
func (r *ranked) place(explain bool) place.Decision {
	s := NewSequence(r.req, r.Placement, r, explain)
	s.Place()
	return s.Decision()
}
