package baseline

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

var searchEntry = entry{
	name:      "greedy-search",
	needModel: true,
	params: []Param{
		{"evals", "20000000", "work before it stops, in looks at a pair of nodes, about 0.1 us each"},
		{"kicks", "3000", "perturbations to try"},
		{"colocations", "150000", "different co-locations to look at before it stops"},
	},
	make: func(o Options, s settings) (place.Policy, error) {
		evals, err := s.whole("evals")
		if err != nil {
			return nil, err
		}
		kicks, err := s.whole("kicks")
		if err != nil {
			return nil, err
		}
		colocations, err := s.whole("colocations")
		return GreedySearch{
			Model: o.Model, Pessimism: o.Pessimism, Evals: evals, Kicks: kicks, Colocations: colocations, Explain: o.Explain,
		}, err
	},
}

// GreedySearch begins with Greedy and improves it pair of nodes by pair of
// nodes: first by moves and swaps of tasks, then by any split of what was put
// on the two, until no pair gains (iterated local search with don't-look
// bits; Lourenço, Martin, Stützle: Iterated local search, 2003). Then it
// perturbs a few nodes by Request.Rand, searches from there, and keeps the
// result unless it is worse, while kicks and budget last. Running tasks stay.
// Without a Request.Rand it stops at the local optimum.
type GreedySearch struct {
	Model     interference.Model
	Pessimism float64
	// Evals bounds the work, counted in looks at a pair of nodes (valuing any
	// other split of what was put on the two counts 8), Kicks the perturbations,
	// and Colocations what the model is asked about, which takes memory (about
	// 1 kB each) and, with a slow model, time.
	Evals, Kicks, Colocations int
	Explain                   bool
	// Start makes what places the tasks that the search then moves; nil is
	// Greedy's way. It may be a Renewer.
	Start func(place.Request, *Board) Chooser
}

// Place implements place.Policy.
func (g GreedySearch) Place(req place.Request) (place.Decision, error) {
	b := NewBoard(place.NewTrial(req, g.Model, g.Pessimism))
	var start Chooser = &greedyChooser{Board: b}
	if g.Start != nil {
		start = g.Start(req, b)
	}
	seq := NewSequence(req, b.trial.Placement, start, false)
	seq.Place()
	greedy := slices.Clone(seq.at)
	s := &search{exchanges: newExchanges(b), evals: g.Evals, limit: g.Evals, colocations: g.Colocations, req: req}
	s.improve(g.Kicks)
	// What was held may fit now that others sit elsewhere, and then again.
	renew := func() {
		if r, ok := start.(Renewer); ok {
			r.Renew()
		}
	}
	for renew(); seq.Place(); renew() {
		s.improve(0)
	}
	s.assign(seq.at)
	if g.Explain {
		first := "greedy"
		if g.Start != nil {
			first = "one pass"
		}
		s.explain(seq, greedy, first)
	}
	seq.explain = g.Explain
	return seq.Decision(), nil
}

// tiny is the least gain that counts; below it is rounding.
const tiny = 1e-12

type search struct {
	*exchanges
	req                place.Request
	evals, colocations int
	limit              int // of spent, for the step at hand

	dirty   []int32
	queued  []bool // by state: in dirty
	journal []entryOf
}

// entryOf is what a node was before a change.
type entryOf struct {
	node  int
	state int32
}

func (s *search) over() bool {
	return s.spent >= s.limit || s.trial.Values.Len() >= s.colocations || s.req.Stopped()
}

// improve searches from the placement as it is. Splits, which are dear, get a
// quarter of the budget before the kicks and what is left after them.
func (s *search) improve(kicks int) {
	for {
		again := s.focus() || s.trial.Racked()
		value := s.trial.Value()
		s.limit = s.evals
		s.descend(swaps)
		s.limit = s.spent + (s.evals-s.spent)/4
		s.descend(splits)
		s.limit = s.evals
		if !again || s.over() || s.trial.Value() <= value+tiny {
			break
		}
	}
	if s.req.Rand != nil && kicks > 0 {
		s.limit = s.evals - (s.evals-s.spent)/4
		s.perturb(kicks)
		s.limit = s.evals
		s.descend(splits)
	}
}

// descend improves pairs until none gains within reach.
func (s *search) descend(r reach) float64 {
	s.clean()
	for _, state := range s.live {
		s.queue(state)
	}
	return s.settle(r)
}

// clean forgets which states are still to be looked at.
func (s *search) clean() {
	s.dirty = s.dirty[:0]
	s.queued = s.queued[:0]
}

func (s *search) queue(state int32) {
	for len(s.queued) < len(s.states) {
		s.queued = append(s.queued, false)
	}
	if !s.queued[state] {
		s.queued[state] = true
		s.dirty = append(s.dirty, state)
	}
}

// settle looks at the pairs of which one state is dirty, and at those that
// come about, until none gains. It returns by how much the score rose.
func (s *search) settle(r reach) float64 {
	gained := 0.0
	for len(s.dirty) > 0 && !s.over() {
		state := s.dirty[len(s.dirty)-1]
		s.dirty = s.dirty[:len(s.dirty)-1]
		s.queued[state] = false
		for len(s.nodes[state]) > 0 && !s.over() {
			gain := s.once(state, r)
			if gain == 0 {
				break
			}
			gained += gain
		}
	}
	return gained
}

// once applies the best exchange of a node in the state with any other node.
func (s *search) once(state int32, r reach) float64 {
	best, with := exchange{gain: tiny}, int32(-1)
	var gains []partner
	for _, u := range s.live {
		if u == state && len(s.nodes[u]) < 2 {
			continue
		}
		e := s.best(state, u, r)
		if e.gain > best.gain {
			best, with = e, u
		}
		if s.coupled && e.gain > tiny {
			gains = append(gains, partner{u, e})
		}
	}
	if with < 0 {
		return 0
	}
	if !s.coupled {
		s.exchange(state, with, best)
		return best.gain
	}
	slices.SortStableFunc(gains, func(a, b partner) int {
		switch {
		case a.gain > b.gain:
			return -1
		case a.gain < b.gain:
			return 1
		}
		return int(a.state - b.state)
	})
	for _, p := range gains {
		if s.exchange(state, p.state, p.exchange) {
			return p.gain
		}
	}
	// The best of each pair are forbidden: their seconds.
	const partners, tries = 8, 16
	for _, p := range gains[:min(partners, len(gains))] {
		for _, e := range s.alternatives(state, p.state, r, tries) {
			if s.exchange(state, p.state, e) {
				return e.gain
			}
		}
	}
	return 0
}

type partner struct {
	state int32
	exchange
}

// exchange applies e to the first nodes of two states.
func (s *search) exchange(a, b int32, e exchange) bool {
	n := int(s.nodes[a][0])
	m := int(s.nodes[b][0])
	if a == b {
		m = int(s.nodes[b][1])
	}
	if !s.apply(n, m, e) {
		return false
	}
	s.journal = append(s.journal, entryOf{n, a}, entryOf{m, b})
	s.queue(e.a)
	s.queue(e.b)
	return true
}

// perturb kicks a few nodes, searches from there, and takes the whole back
// where it ends worse.
func (s *search) perturb(kicks int) {
	var movable []int
	for n, state := range s.at {
		if len(s.states[state].items) > 0 || s.anyFits(n) {
			movable = append(movable, n)
		}
	}
	if len(movable) < 2 {
		return
	}
	s.clean()
	for range kicks {
		if s.over() {
			return
		}
		value := s.trial.Value()
		s.journal = s.journal[:0]
		gained := s.kick(movable, s.req.Rand) + s.settle(swaps)
		worse := gained < -tiny
		if s.blend.weight > 0 || s.trial.Racked() {
			worse = s.trial.Value() < value-tiny || s.trial.Value() < value+tiny && worse
		}
		if worse {
			s.undo()
		}
	}
}

func (s *search) anyFits(node int) bool {
	for k := range s.trial.Kinds() {
		if s.trial.Check(k, node) == cluster.Fits {
			return true
		}
	}
	return false
}

func (s *search) undo() {
	for i := len(s.journal) - 1; i >= 0; i-- {
		s.set(s.journal[i].node, s.journal[i].state)
	}
	s.journal = s.journal[:0]
}

// kick empties two to four nodes and deals their tasks back in random order,
// mostly where the score gains most. It returns by how much the score rose.
func (s *search) kick(movable []int, random *rand.Rand) float64 {
	picked := make([]int, 0, 4)
	for range 2 + random.IntN(3) {
		if n := movable[random.IntN(len(movable))]; !slices.Contains(picked, n) {
			picked = append(picked, n)
		}
	}
	skew := s.skews() // of before: emptied nodes may be further off than a rule allows
	before := 0.0
	var kinds []int
	for _, n := range picked {
		state := s.at[n]
		before += s.score(state)
		s.journal = append(s.journal, entryOf{n, state})
		for _, it := range s.states[state].items {
			for range it.count {
				kinds = append(kinds, int(it.kind))
				s.Take(int(it.kind), n)
			}
		}
	}
	random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for _, k := range kinds {
		if n := s.deal(k, picked, random); n >= 0 {
			s.Put(k, n)
		} else {
			s.undo()
			return 0
		}
	}
	if s.coupled && s.skewRose(skew) {
		s.undo()
		return 0
	}
	after := 0.0
	for _, n := range picked {
		after += s.score(s.at[n])
		s.queue(s.at[n])
	}
	return after - before
}

// deal picks one of the nodes for a task: one in five times any that takes it.
func (s *search) deal(kind int, picked []int, random *rand.Rand) int {
	whatever := random.IntN(5) == 0
	best, gain, seen := -1, 0.0, 0
	for _, n := range picked {
		if s.trial.Check(kind, n) != cluster.Fits {
			continue
		}
		seen++
		g := s.score(s.more(s.at[n], int32(kind))) - s.score(s.at[n])
		if best < 0 || whatever && random.IntN(seen) == 0 || !whatever && g > gain {
			best, gain = n, g
		}
	}
	return best
}

// assign gives the tasks that were placed the nodes where their kinds are now.
func (s *search) assign(at []int) {
	left := map[int32][]int{} // by kind, ascending
	for n, state := range s.at {
		for _, it := range s.states[state].items {
			for range it.count {
				left[it.kind] = append(left[it.kind], n)
			}
		}
	}
	for i := range at {
		if at[i] >= 0 {
			k := int32(s.trial.Kind(i))
			at[i], left[k] = left[k][0], left[k][1:]
		}
	}
}

// explain gives the reasons; first names what placed the tasks at first.
func (s *search) explain(seq *Sequence, greedy []int, first string) {
	nodes := s.trial.Snapshot().Nodes()
	for i, n := range seq.at {
		if n < 0 {
			continue
		}
		state := s.at[n]
		kind := int32(s.trial.Kind(i))
		without := s.less(state, kind)
		share := s.score(state) - s.score(without) - s.rise(s.rack(state), state, without)
		r := place.Reason{
			Words: fmt.Sprintf("%s, where %s run together: it adds %+.4g to %s", nodes[n].Name,
				s.trial.Values.Colocation(s.states[state].config).Key(), share, s.trial.Values.Objective()),
			Scores: map[string]float64{"gain": share},
		}
		if g := greedy[i]; g >= 0 && g != n {
			r.Words += fmt.Sprintf("; %s alone would have taken %s, and exchanges between nodes raised the whole", first, nodes[g].Name)
		}
		seq.why[i] = r
	}
}
