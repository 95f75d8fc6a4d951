package baseline

import (
	"encoding/binary"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// alike holds the nodes that no ranker can tell apart together: the same shape
// and the same tasks put. A ranker then looks at one node of each set, and a
// large cluster costs little more than a small one.
type alike struct {
	placement *cluster.Placement
	shape     []int32 // by node
	at        []int32 // by node: its set
	heapAt    []int32 // by node: its position in the set

	sets  []nodeSet
	index map[string]int32
	steps map[uint64]int32 // by set, kind and direction: the set one task away
	live  []int32          // sets that have nodes
	key   []byte           // scratch
}

// nodeSet is a heap of nodes, the lowest index first.
type nodeSet struct {
	nodes []int32
	live  int // position in live, -1 outside
}

func newAlike(req place.Request, p *cluster.Placement) *alike {
	nodes := req.View.Nodes()
	running := make([][]string, len(nodes))
	for _, r := range req.View.Running() {
		if n, ok := req.View.NodeIndex(r.Node); ok {
			running[n] = append(running[n], string(amounts(word(nil, r.Workload), r.Requests)))
		}
	}
	a := &alike{
		placement: p, index: map[string]int32{}, steps: map[uint64]int32{},
		at: make([]int32, len(nodes)), heapAt: make([]int32, len(nodes)),
	}
	a.shape = shapesOf(p, func(key []byte, n int) []byte {
		key = number(key, nodes[n].Slots, len(nodes[n].Devices), len(nodes[n].Taints))
		for _, t := range nodes[n].Taints {
			key = word(word(word(key, t.Key), t.Value), t.Effect)
		}
		key = amounts(key, nodes[n].Capacity)
		slices.Sort(running[n])
		for _, r := range running[n] {
			key = word(key, r)
		}
		return key
	}, cluster.ZoneKey).of
	for n := range nodes {
		a.at[n] = -1
		a.file(int32(n), a.number(n))
	}
	return a
}

// number is the set that a node belongs in by what is put there now.
func (a *alike) number(node int) int32 {
	a.key = binary.LittleEndian.AppendUint32(a.key[:0], uint32(a.shape[node]))
	for k := range a.placement.Kinds() {
		a.key = binary.AppendUvarint(a.key, uint64(a.placement.PutOn(k, node)))
	}
	s, ok := a.index[string(a.key)]
	if !ok {
		s = int32(len(a.sets))
		a.index[string(a.key)] = s
		a.sets = append(a.sets, nodeSet{live: -1})
	}
	return s
}

// moved tells that the node has one task of the kind more (by = 1) or less
// (-1) than before.
func (a *alike) moved(kind, node, by int) {
	step := uint64(a.at[node])<<32 | uint64(kind)<<1
	if by < 0 {
		step |= 1
	}
	to, ok := a.steps[step]
	if !ok {
		to = a.number(node)
		a.steps[step] = to
	}
	a.file(int32(node), to)
}

// file moves a node to another set.
func (a *alike) file(node, to int32) {
	if from := a.at[node]; from >= 0 {
		h := a.sets[from].nodes
		i, last := a.heapAt[node], int32(len(h)-1)
		a.swap(h, i, last)
		h = h[:last]
		a.sets[from].nodes = h
		if i < last {
			a.up(h, i)
			a.down(h, i)
		}
		if last == 0 {
			end := a.live[len(a.live)-1]
			at := a.sets[from].live
			a.live[at], a.sets[end].live = end, at
			a.live = a.live[:len(a.live)-1]
			a.sets[from].live = -1
		}
	}
	s := &a.sets[to]
	if len(s.nodes) == 0 {
		s.live = len(a.live)
		a.live = append(a.live, to)
	}
	a.at[node], a.heapAt[node] = to, int32(len(s.nodes))
	s.nodes = append(s.nodes, node)
	a.up(s.nodes, a.heapAt[node])
}

func (a *alike) swap(h []int32, i, j int32) {
	h[i], h[j] = h[j], h[i]
	a.heapAt[h[i]], a.heapAt[h[j]] = i, j
}

func (a *alike) up(h []int32, i int32) {
	for i > 0 && h[i] < h[(i-1)/2] {
		a.swap(h, i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (a *alike) down(h []int32, i int32) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && int(child) < len(h); child++ {
			if h[child] < h[least] {
				least = child
			}
		}
		if least == i {
			return
		}
		a.swap(h, i, least)
		i = least
	}
}
