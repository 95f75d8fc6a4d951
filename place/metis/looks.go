package metis

import (
	"math"
	"slices"

	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/encode"
)

// look is what nodes that run the same and have the same room look like to
// the networks, by workload number of the task to place.
type look struct {
	encode.State
	slots    float64 // tasks that an empty node takes
	features []float32
	scores   []float32
	known    []bool // of this epoch
	rough    []bool // known, but not by the networks: the score is far below all others
}

func (l *look) row(w int) []float32 {
	return l.features[w*encode.ServiceFeatures : (w+1)*encode.ServiceFeatures]
}

type lookKey struct {
	config place.Config
	room   int32
	fill   float32
}

// looks are all that occur.
type looks struct {
	c     *chooser
	index map[lookKey]int32
	all   []*look
	at    []int32 // by node
	need  []float64
	asked []bool // by workload number: since renew
	dirty []int32
	cuts  []cut // by workload number, where asked
	ranks []float64

	lowest, second float64 // see encode.Services.Guard
}

func newLooks(c *chooser) looks {
	l := looks{c: c, index: map[lookKey]int32{}, asked: make([]bool, len(c.demand)), cuts: make([]cut, len(c.demand))}
	t := c.trial
	// How much room a node has is counted in tasks as they are in the mean.
	l.need = make([]float64, len(t.Dimensions()))
	for i := range t.Tasks() {
		for d, n := range t.Need(t.Kind(i)) {
			l.need[d] += float64(n) / float64(len(t.Tasks()))
		}
	}
	nodes := t.Snapshot().Nodes()
	l.at = make([]int32, len(nodes))
	for n := range nodes {
		l.enter(n)
	}
	return l
}

func (l *looks) of(node int) *look { return l.all[l.at[node]] }

// room is how many tasks fit on a node, now and when it is empty.
func (l *looks) room(node int) (free, total float64) {
	t := l.c.trial
	n := &t.Snapshot().Nodes()[node]
	free, total = math.Inf(1), math.Inf(1)
	if n.Slots > 0 {
		s, _ := t.FreeSlots(node)
		free, total = float64(s), float64(n.Slots)
	}
	for d, have := range t.Free(node) {
		if l.need[d] > 0 {
			free = min(free, math.Floor(float64(have)/l.need[d]+1e-9))
			total = min(total, float64(t.Capacity(node, d))/l.need[d])
		}
	}
	if n.Unschedulable {
		free = 0
	}
	const plenty = 64 // where nothing limits a node
	return max(0, min(free, plenty)), max(1, min(total, plenty))
}

func (l *looks) enter(node int) {
	free, total := l.room(node)
	k := lookKey{l.c.trial.Config(node), int32(free), float32(max(0, 1-free/total))}
	i, ok := l.index[k]
	if !ok {
		i = int32(len(l.all))
		l.index[k] = i
		n := len(l.c.demand)
		l.all = append(l.all, &look{
			State: encode.State{Config: k.config, Room: int(free), Fill: float64(k.fill)}, slots: total,
			features: make([]float32, n*encode.ServiceFeatures), scores: make([]float32, n),
			known: make([]bool, n), rough: make([]bool, n),
		})
	}
	l.at[node] = i
	l.all[i].Nodes++
}

func (l *looks) leave(node int) { l.all[l.at[node]].Nodes-- }

// renew looks at the whole cluster: what scores were known are so no more.
func (l *looks) renew() {
	states := make([]encode.State, 0, len(l.all))
	for _, k := range l.all {
		clear(k.known)
		clear(k.rough)
		if k.Nodes > 0 {
			states = append(states, k.State)
		}
	}
	clear(l.asked)
	l.guard()
	l.c.enc.Begin(l.c.demand, l.c.expected, states, len(l.at), l.c.tasks, l.c.value)
	l.c.tree.forget()
}

// guard finds the worst performances, where they count.
func (l *looks) guard() {
	if l.c.trial.Values.Objective().Worst == 0 {
		return
	}
	l.lowest, l.second = math.Inf(1), math.Inf(1)
	for _, k := range l.all {
		for range min(k.Nodes, 2) {
			w := l.c.trial.Values.Value(k.Config).Worst
			if math.IsInf(w, -1) {
				continue // nobody knows
			}
			if w < l.lowest {
				l.lowest, l.second = w, l.lowest
			} else {
				l.second = min(l.second, w)
			}
		}
	}
	l.c.enc.Guard(l.lowest, l.second)
}

// worsen makes it look at the whole cluster again where the worst performance
// counts and the node is among the two that decide it.
func (l *looks) worsen(node int) {
	if v := l.c.trial.Values; v.Objective().Worst != 0 && v.Value(l.c.trial.Config(node)).Worst <= l.second {
		l.c.since = l.c.every
	}
}

// enough is how many different situations of nodes the networks are asked
// about, for one task of so many workloads to come: the fewer the more there
// are, each of which asks what becomes of each of the others. With few, the
// nodes that training has are in no more.
func enough(workloads int) int {
	return max(12, min(96, 96*few*few/max(1, workloads*workloads)))
}

// score is that of a node as the place of a task of a workload. The first
// question after renew answers for all nodes with room at once, which is
// cheaper. Where they are in more than enough situations, the networks are
// asked about those where the task gains most, or most against what else is to
// come; of the others, then and until the next renew, the score is rough.
func (l *looks) score(node, w int) float32 {
	k := l.of(node)
	if k.known[w] {
		return k.scores[w]
	}
	l.dirty = append(l.dirty[:0], l.at[node])
	if l.asked[w] {
		if !l.cuts[w].passes(l.c.enc, k.Config, w) {
			l.guess(k, w)
			return k.scores[w]
		}
	} else {
		l.asked[w] = true
		l.dirty = l.dirty[:0]
		for i, o := range l.all {
			if o.Nodes > 0 && (o.Room > 0 || o == k) && !o.known[w] {
				l.dirty = append(l.dirty, int32(i))
			}
		}
		l.cut(w, enough(l.c.enc.ToCome()))
	}
	l.ask(w)
	return k.scores[w]
}

// sure is score where it must not be rough.
func (l *looks) sure(node, w int) float32 {
	l.score(node, w)
	k := l.of(node)
	if k.rough[w] {
		l.dirty = append(l.dirty[:0], l.at[node])
		l.ask(w)
	}
	return k.scores[w]
}

// ask asks the networks about the dirty ones. Where nothing was like it in
// training, the gain is the score, and the features stay 0.
func (l *looks) ask(w int) {
	if l.c.strange {
		for _, d := range l.dirty {
			k := l.all[d]
			k.known[w], k.rough[w], k.scores[w] = true, false, float32(l.c.enc.Gain(k.Config, w))
		}
		return
	}
	m := l.c.rows(len(l.dirty), encode.ServiceFeatures)
	for i, d := range l.dirty {
		row := l.all[d].row(w)
		l.c.enc.Encode(row, l.all[d].State, w)
		copy(m.Row(i), row)
		l.all[d].known[w], l.all[d].rough[w] = true, false
	}
	for i, s := range l.c.pass.Score(l.c.p.nets.Node, m, l.c.enc.Context(w)) {
		l.all[l.dirty[i]].scores[w] = s
	}
}

// cut keeps about n of the dirty ones.
func (l *looks) cut(w, n int) {
	l.cuts[w] = cut{math.Inf(-1), math.Inf(-1)}
	if len(l.dirty) <= n {
		return
	}
	least := func(way func(place.Config, int) float64) float64 {
		l.ranks = l.ranks[:0]
		for _, d := range l.dirty {
			l.ranks = append(l.ranks, way(l.all[d].Config, w))
		}
		slices.Sort(l.ranks)
		return l.ranks[len(l.ranks)-n/2]
	}
	l.cuts[w] = cut{least(l.c.enc.Gain), least(l.c.enc.Advantage)}
	kept := l.dirty[:0]
	for _, d := range l.dirty {
		if k := l.all[d]; l.cuts[w].passes(l.c.enc, k.Config, w) {
			kept = append(kept, d)
		} else {
			l.guess(k, w)
		}
	}
	l.dirty = kept
}

// cut is from where on the networks are asked about a node.
type cut struct{ gain, advantage float64 }

func (c cut) passes(e *encode.Services, at place.Config, w int) bool {
	return math.IsInf(c.gain, -1) || e.Gain(at, w) >= c.gain || e.Advantage(at, w) >= c.advantage
}

// farBelow is under every score of the networks.
const farBelow = -1e4

// guess gives a rough score.
func (l *looks) guess(k *look, w int) {
	k.known[w], k.rough[w] = true, true
	k.scores[w] = farBelow + float32(l.c.enc.Gain(k.Config, w))
}
