package baseline

import (
	"encoding/binary"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// Board sorts the nodes of a trial into states, so that a search looks at each
// distinct situation once instead of at every node. Nodes share a state when
// no policy could tell them apart: the same shape (class, room, labels that
// rules read, rack where traffic counts, running tasks) and the same tasks put. One node of a state then
// answers for all in every question about values and constraints.
type Board struct {
	trial *place.Trial
	bare  *cluster.Placement // the running tasks alone: what fits on a node by itself
	shape []int32            // by node
	first []int32            // by shape: a node of it
	base  []place.Config     // by shape: its config with no task put
	// coupled says that what fits on a node depends on other nodes, too.
	coupled bool

	states []state
	index  map[string]int32
	steps  map[uint64]int32 // by state, kind and direction: the state one task away
	at     []int32          // by node: its state
	nodes  [][]int32        // by state: its nodes, ascending
	live   []int32          // states that have nodes
	where  []int32          // by state: position in live, -1 outside

	key []byte // scratch
}

type state struct {
	shape  int32
	items  []item // sorted by kind, counts positive
	config place.Config
	fits   fit
}

type item struct{ kind, count int32 }

type fit uint8

const (
	unasked fit = iota
	fitsAlone
	fitsNot
)

// NewBoard sorts the nodes of a trial with nothing put yet.
func NewBoard(t *place.Trial) *Board {
	nodes := t.Snapshot().Nodes()
	b := &Board{
		trial: t, bare: t.Placement.Clone(), index: map[string]int32{}, steps: map[uint64]int32{},
		at: make([]int32, len(nodes)),
	}
	var keys []string
	if t.Racked() {
		keys = []string{cluster.RackKey}
	}
	s := shapesOf(b.bare, nil, keys...)
	b.shape, b.first, b.coupled = s.of, s.first, s.coupled
	for _, n := range b.first {
		b.base = append(b.base, t.Config(int(n)))
	}
	for n := range nodes {
		b.at[n] = -1
		b.become(n, b.number(b.shape[n], nil, b.base[b.shape[n]]))
	}
	return b
}

// number is the state of a shape with the items and the config that results;
// it keeps the items if the state is new.
func (b *Board) number(shape int32, items []item, c place.Config) int32 {
	b.key = binary.LittleEndian.AppendUint32(b.key[:0], uint32(shape))
	for _, it := range items {
		b.key = binary.LittleEndian.AppendUint32(b.key, uint32(it.kind))
		b.key = binary.LittleEndian.AppendUint32(b.key, uint32(it.count))
	}
	if s, ok := b.index[string(b.key)]; ok {
		return s
	}
	s := int32(len(b.states))
	b.index[string(b.key)] = s
	b.states = append(b.states, state{shape: shape, items: items, config: c})
	b.nodes = append(b.nodes, nil)
	b.where = append(b.where, -1)
	return s
}

// more is the state with one more task of a kind, fitting or not.
func (b *Board) more(s, kind int32) int32 {
	key := uint64(s)<<32 | uint64(kind)<<1
	if to, ok := b.steps[key]; ok {
		return to
	}
	from := b.states[s]
	items := slices.Clone(from.items)
	if i, found := from.find(kind); found {
		items[i].count++
	} else {
		items = slices.Insert(items, i, item{kind, 1})
	}
	to := b.number(from.shape, items, b.trial.Values.Next(from.config, b.trial.Workload(int(kind))))
	b.steps[key] = to
	return to
}

// less is the state with one task of a kind less; it must hold one.
func (b *Board) less(s, kind int32) int32 {
	key := uint64(s)<<32 | uint64(kind)<<1 | 1
	if to, ok := b.steps[key]; ok {
		return to
	}
	from := b.states[s]
	items := slices.Clone(from.items)
	i, _ := from.find(kind)
	if items[i].count > 1 {
		items[i].count--
	} else {
		items = slices.Delete(items, i, i+1)
	}
	to := b.number(from.shape, items, b.trial.Values.Prev(from.config, b.trial.Workload(int(kind))))
	b.steps[key] = to
	return to
}

func (s *state) find(kind int32) (int, bool) {
	return slices.BinarySearchFunc(s.items, kind, func(it item, k int32) int { return int(it.kind - k) })
}

// fits reports whether a node of the state could run what the state says, were
// all other nodes without the tasks that were put. Where the board is coupled,
// that is needed but not enough.
func (b *Board) fits(s int32) bool {
	st := &b.states[s]
	if st.fits == unasked {
		st.fits = fitsAlone
		n := int(b.first[st.shape])
		for i := 0; i < len(st.items) && st.fits == fitsAlone; i++ {
			for range st.items[i].count {
				if r := b.bare.Check(int(st.items[i].kind), n); r != cluster.Fits && r != cluster.Skewed {
					st.fits = fitsNot
					break
				}
				b.bare.Put(int(st.items[i].kind), n)
			}
		}
		for _, it := range st.items {
			for b.bare.PutOn(int(it.kind), n) > 0 {
				b.bare.Take(int(it.kind), n)
			}
		}
	}
	return st.fits == fitsAlone
}

// become files a node under another state.
func (b *Board) become(node int, s int32) {
	n := int32(node)
	if old := b.at[node]; old >= 0 {
		i, _ := slices.BinarySearch(b.nodes[old], n)
		b.nodes[old] = slices.Delete(b.nodes[old], i, i+1)
		if len(b.nodes[old]) == 0 {
			last := b.live[len(b.live)-1]
			b.live[b.where[old]] = last
			b.where[last] = b.where[old]
			b.live = b.live[:len(b.live)-1]
			b.where[old] = -1
		}
	}
	b.at[node] = s
	if len(b.nodes[s]) == 0 {
		b.where[s] = int32(len(b.live))
		b.live = append(b.live, s)
	}
	i, _ := slices.BinarySearch(b.nodes[s], n)
	b.nodes[s] = slices.Insert(b.nodes[s], i, n)
}

// Put puts a task of a kind on a node, unchecked.
func (b *Board) Put(kind, node int) {
	b.trial.Put(kind, node)
	b.become(node, b.more(b.at[node], int32(kind)))
}

// Take undoes a Put.
func (b *Board) Take(kind, node int) {
	b.trial.Take(kind, node)
	b.become(node, b.less(b.at[node], int32(kind)))
}

// set makes a node's put tasks those of a state of its shape, unchecked.
func (b *Board) set(node int, s int32) {
	b.drop(node, s)
	b.fill(node, s)
	b.become(node, s)
}

// drop takes the tasks that the state s has no place for from the node.
func (b *Board) drop(node int, s int32) {
	for _, it := range b.states[b.at[node]].items {
		for range it.count - b.states[s].count(it.kind) {
			b.trial.Take(int(it.kind), node)
		}
	}
}

// fill puts the tasks that the node lacks to be in state s, unchecked.
func (b *Board) fill(node int, s int32) {
	for _, it := range b.states[s].items {
		for range it.count - b.states[b.at[node]].count(it.kind) {
			b.trial.Put(int(it.kind), node)
		}
	}
}

func (s *state) count(kind int32) int32 {
	for _, it := range s.items {
		if it.kind == kind {
			return it.count
		}
	}
	return 0
}

// rack is that of the nodes of a state; -1 where it does not count.
func (b *Board) rack(s int32) int { return b.trial.Rack(int(b.first[b.states[s].shape])) }

// Trial is what the board sorts.
func (b *Board) Trial() *place.Trial { return b.trial }

// States is the number of states met so far; they are numbered from 0.
func (b *Board) States() int { return len(b.states) }

// Live lists the states that have nodes, in no order that means anything. It
// is shared: do not change it.
func (b *Board) Live() []int32 { return b.live }

// Nodes lists the nodes of a state, ascending. It is shared: do not change it.
func (b *Board) Nodes(state int32) []int32 { return b.nodes[state] }

// State is the state that a node is in.
func (b *Board) State(node int) int32 { return b.at[node] }

// Config is the co-location on the nodes of a state.
func (b *Board) Config(state int32) place.Config { return b.states[state].config }

// Coupled says that what fits on a node depends on other nodes, too.
func (b *Board) Coupled() bool { return b.coupled }
