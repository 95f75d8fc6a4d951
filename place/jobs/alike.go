package jobs

import (
	"encoding/binary"
	"slices"
)

// alikeSites keeps the sites of a board in groups that are alike to a task:
// same co-location, same room. So a board of thousands of sites, few of which
// differ, is looked at in microseconds. It follows the board lazily: what
// changed is sorted in again when it is next asked.
type alikeSites struct {
	// gangs tells apart what differs only to a task of a gang of several: how full
	// the node is.
	gangs  bool
	of     []int32 // group by site
	groups []alikeGroup
	number map[alikeKey]int32
	rooms  map[string]int32 // numbers what is free on a node
	key    []byte
	stale  []int32 // nodes
	marked []bool  // by node: it is in stale
	order  []Candidate
	home   []int32 // nodes of the gang asked about
	filled int     // groups that have any
}

type alikeKey struct {
	config      Config
	used, slots int32 // of the device; of the node: slots free, and devices with one
	room        int32
	alone       int32 // 1 + the site, where it is like no other
	host        bool  // the site is a node
	tasks, left int32 // for gangs: the tasks and the free device slots of the node
}

// alikeGroup is a group with its sites in a heap, the first at the top. What
// left the group stays in the heap until it comes to the top.
type alikeGroup struct {
	count int32
	home  int32 // of them, those on a node of the gang asked about
	heap  []int32
}

// Index makes the board keep alike sites together: Candidates and Groups then
// cost as much as there are kinds of sites, not sites. It pays from some hundred
// sites.
func (b *Board) Index() {
	if b.index == nil {
		b.index = &alikeSites{}
		b.index.anew(b)
	}
}

// manyAlike is from how many sites on gangs of several tasks are looked up by an
// index of their own: on fewer it costs more to keep than to look.
const manyAlike = 256

// indexOf is the index to look up a task's candidates in; nil where there is
// none, or where so many sites are like no other that looking at all is as good.
func (b *Board) indexOf(t int) *alikeSites {
	switch {
	case b.index == nil || b.rules != nil || b.onlyNode >= 0:
		return nil
	case len(b.gangs[b.tasks[t].gang].tasks) == 1:
		return b.index
	case len(b.sites) < b.manyAlike:
		return nil
	}
	if b.gangIndex == nil {
		b.gangIndex = &alikeSites{gangs: true}
		b.gangIndex.anew(b)
	}
	b.gangIndex.sync(b)
	if b.manyAlike > 0 && 2*b.gangIndex.filled > len(b.sites) {
		return nil
	}
	return b.gangIndex
}

// touch notes that something changed on a node.
func (b *Board) touch(node int32) {
	if b.index != nil {
		b.index.touch(node)
	}
	if b.gangIndex != nil {
		b.gangIndex.touch(node)
	}
}

func (x *alikeSites) touch(node int32) {
	if int(node) < len(x.marked) && !x.marked[node] {
		x.marked[node] = true
		x.stale = append(x.stale, node)
	}
}

// touchGang notes that it changed whether a gang has several tasks: sites with
// tasks of such gangs are like no other.
func (b *Board) touchGang(g int32) {
	if b.index == nil {
		return
	}
	for _, t := range b.gangs[g].tasks {
		if s := b.tasks[t].site; s >= 0 {
			b.touch(b.sites[s].node)
		}
	}
}

// anew forgets all: the sites are others.
func (x *alikeSites) anew(b *Board) {
	x.of = slices.Repeat([]int32{-1}, len(b.sites))
	x.groups, x.number, x.rooms = x.groups[:0], map[alikeKey]int32{}, map[string]int32{}
	x.filled = 0
	x.marked = slices.Repeat([]bool{true}, len(b.nodes))
	x.stale = x.stale[:0]
	for n := range b.nodes {
		x.stale = append(x.stale, int32(n))
	}
}

// sync sorts in what changed.
func (x *alikeSites) sync(b *Board) {
	if len(x.groups) > 4*len(b.sites)+1024 {
		x.anew(b) // most are empty
	}
	for _, n := range x.stale {
		x.marked[n] = false
		node := alikeKey{room: x.roomOf(b, n)}
		if x.gangs {
			node.tasks, node.left = b.state[n].tasks, b.room(n)
		}
		if b.atDevices() {
			for s := b.firstDevice[n]; s < b.firstDevice[n+1]; s++ {
				d, key := b.devices[s], node
				key.config, key.used, key.slots = b.sites[s].config, d.used, d.slots
				x.sort(b, s, key)
			}
		}
		open := int32(0)
		for _, d := range b.devices[b.firstDevice[n]:b.firstDevice[n+1]] {
			if d.used < d.slots {
				open++
			}
		}
		s := int32(b.host) + n
		node.config, node.used, node.slots, node.host = b.sites[s].config, b.room(n), open, true
		x.sort(b, s, node)
	}
	x.stale = x.stale[:0]
}

// roomOf numbers what is free on a node.
func (x *alikeSites) roomOf(b *Board, n int32) int32 {
	st := &b.state[n]
	if len(st.free) == 0 && st.slots < 0 {
		if st.closed {
			return -2
		}
		return -1
	}
	x.key = binary.AppendVarint(x.key[:0], int64(st.slots))
	if st.closed {
		x.key = append(x.key, 'c')
	}
	for _, f := range st.free {
		x.key = binary.AppendVarint(x.key, f)
	}
	id, ok := x.rooms[string(x.key)]
	if !ok {
		id = int32(len(x.rooms))
		x.rooms[string(x.key)] = id
	}
	return id
}

func (x *alikeSites) sort(b *Board, s int32, key alikeKey) {
	if b.shared(&b.sites[s]) {
		key.alone = s + 1
	}
	g, ok := x.number[key]
	if !ok {
		g = int32(len(x.groups))
		x.number[key] = g
		if int(g) < cap(x.groups) {
			x.groups = x.groups[:g+1]
			x.groups[g].count, x.groups[g].heap = 0, x.groups[g].heap[:0]
		} else {
			x.groups = append(x.groups, alikeGroup{})
		}
	}
	old := x.of[s]
	if old == g {
		return
	}
	if old >= 0 {
		if x.groups[old].count--; x.groups[old].count == 0 {
			x.filled--
		}
	}
	x.of[s] = g
	into := &x.groups[g]
	if into.count++; into.count == 1 {
		x.filled++
	}
	into.push(s)
	if len(into.heap) > 2*int(into.count)+64 { // sites that come back are there twice
		slices.Sort(into.heap)
		into.heap = slices.DeleteFunc(slices.Compact(into.heap), func(s int32) bool { return x.of[s] != g })
	}
}

func (g *alikeGroup) push(s int32) {
	g.heap = append(g.heap, s)
	for i := len(g.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if g.heap[up] <= g.heap[i] {
			break
		}
		g.heap[up], g.heap[i] = g.heap[i], g.heap[up]
		i = up
	}
}

func (g *alikeGroup) pop() {
	h := g.heap
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		least := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < last && h[c] < h[least] {
				least = c
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	g.heap = h
}

// first is the first site of a group that has any.
func (x *alikeSites) first(g int32) int32 {
	h := &x.groups[g]
	for x.of[h.heap[0]] != g {
		h.pop()
	}
	return h.heap[0]
}

// list is the first site of each group within a range, in no order that means
// anything. Nodes that have a task of the gang g of several are like no other.
func (x *alikeSites) list(b *Board, lo, hi int, g int32) []Candidate {
	x.sync(b)
	x.order = x.order[:0]
	x.home = x.home[:0]
	if x.gangs {
		for _, t := range b.gangs[g].tasks {
			if s := b.tasks[t].site; s >= 0 && !slices.Contains(x.home, b.sites[s].node) {
				x.home = append(x.home, b.sites[s].node)
			}
		}
	}
	for _, n := range x.home {
		from := len(x.order)
		if b.atDevices() {
			x.among(from, int(b.firstDevice[n]), int(b.firstDevice[n+1]), lo, hi)
		}
		x.among(from, b.host+int(n), b.host+int(n)+1, lo, hi)
	}
	for g := range x.groups {
		k := &x.groups[g]
		if k.count == k.home {
			k.home = 0
			continue
		}
		s := x.first(int32(g))
		if k.home > 0 {
			s = x.elsewhere(b, int32(g))
		}
		if int(s) >= lo && int(s) < hi {
			x.order = append(x.order, Candidate{s, k.count - k.home})
		}
		k.home = 0
	}
	return x.order
}

// among adds to order the sites of one node, from one up to another: those of a
// group once. What was listed of the node begins at from.
func (x *alikeSites) among(from, s, end, lo, hi int) {
	for ; s < end; s++ {
		g := x.of[s]
		x.groups[g].home++
		if s < lo || s >= hi {
			continue
		}
		if i := slices.IndexFunc(x.order[from:], func(c Candidate) bool { return x.of[c.Site] == g }); i >= 0 {
			x.order[from+i].Alike++
		} else {
			x.order = append(x.order, Candidate{int32(s), 1})
		}
	}
}

// elsewhere is the first site of a group that is not on the nodes in home.
func (x *alikeSites) elsewhere(b *Board, g int32) int32 {
	best := int32(-1)
	for _, s := range x.groups[g].heap {
		if x.of[s] == g && (best < 0 || s < best) && !slices.Contains(x.home, b.sites[s].node) {
			best = s
		}
	}
	return best
}

// Groups lists the first of each kind of sites that a task can be put on, and
// how many are alike to a single task: for sums, since their order may differ
// with what the board saw before. The list is good until the next call of it or
// of Candidates. The board must have an Index.
func (b *Board) Groups(t int) []Candidate {
	lo, hi := b.Range(t)
	return b.index.list(b, lo, hi, -1)
}
