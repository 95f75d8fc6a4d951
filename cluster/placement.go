package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// deviceDim is the dimension in which Task.Devices and Device.Slots count.
const deviceDim = "devices"

// Placement is a trial assignment over a Snapshot: the running tasks plus
// those put so far. It counts tasks by kind, since tasks of a kind are
// interchangeable; Assign turns the counts into nodes for the single tasks.
// Check costs a few array reads and allocates nothing.
//
// A Placement is not safe for concurrent use.
type Placement struct {
	snap      *Snapshot
	dims      []string
	workloads []string // index: workload number
	kinds     []kind
	pending   []int // kind of each pending task

	free  []int64 // [node*len(dims)+dim]
	slots []int   // free slots by node; noLimit where there is none
	count []int   // [node*len(workloads)+workload], running and put
	put   []int   // [node*len(kinds)+kind], put only

	static  [][]Reason // by workload, then node: what no placement changes
	perNode []int      // by workload: most tasks on a node; noLimit where no rule
	anti    [][]antiRule
	spread  [][]*spreadRule
}

const noLimit = int(^uint(0) >> 1)

type kind struct {
	workload int
	need     []int64
	task     Task // the first of its kind
}

// antiRule, listed under a workload, names what must not be in the domain.
type antiRule struct {
	other  int // workload
	domain []int
	counts []int // [domain*workloads+workload], shared by rules of one key
	key    string
}

type spreadRule struct {
	key     string
	maxSkew int
	domain  []int // by node; -1 where the node does not count
	counts  []int // by domain
	names   []string
}

// NewPlacement begins with the running tasks of s and the pending tasks put
// nowhere.
func NewPlacement(s *Snapshot, pending []Task) *Placement {
	p := &Placement{snap: s}
	index := map[string]int{}
	for _, w := range s.spec.Workloads {
		index[w.Name] = len(p.workloads)
		p.workloads = append(p.workloads, w.Name)
	}
	// Numbers depend on what is pending, not on its order: so does what a policy
	// makes of ties.
	fresh := map[string]bool{}
	for _, t := range pending {
		if _, ok := index[t.Workload]; !ok {
			fresh[t.Workload] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fresh)) {
		index[name] = len(p.workloads)
		p.workloads = append(p.workloads, name)
	}
	p.nameDimensions(pending)
	p.countCapacity()
	p.compileRules(index)

	running := make([]int, len(s.spec.Running))
	p.pending = make([]int, len(pending))
	p.numberKinds(pending, running, index)
	p.put = make([]int, len(s.spec.Nodes)*len(p.kinds))
	for i, k := range running {
		p.move(k, s.nodeIndex[s.spec.Running[i].Node], 1)
	}
	return p
}

// numberKinds finds the kinds, in the order of their workloads and needs, and
// the kind of each task.
func (p *Placement) numberKinds(pending []Task, running []int, index map[string]int) {
	type member struct {
		key string
		at  *int
	}
	byKey := map[string]kind{}
	members := make([]member, 0, len(pending)+len(running))
	plain := make([]string, len(p.workloads)) // keys of tasks that ask for what their workload does
	add := func(t *Task, at *int) {
		w := index[t.Workload]
		asWorkload := t.Requests == nil && t.Devices == 0
		if asWorkload && plain[w] != "" {
			members = append(members, member{plain[w], at})
			return
		}
		k := kind{workload: w, need: p.need(*t), task: *t}
		key := fmt.Sprint(k.workload, k.need)
		if _, ok := byKey[key]; !ok {
			byKey[key] = k
		}
		if asWorkload {
			plain[w] = key
		}
		members = append(members, member{key, at})
	}
	for i := range pending {
		add(&pending[i], &p.pending[i])
	}
	for i := range p.snap.spec.Running {
		add(&p.snap.spec.Running[i].Task, &running[i])
	}
	keys := slices.SortedFunc(maps.Keys(byKey), func(a, b string) int {
		return cmp.Or(cmp.Compare(byKey[a].workload, byKey[b].workload), slices.Compare(byKey[a].need, byKey[b].need))
	})
	number := make(map[string]int, len(keys))
	for i, key := range keys {
		number[key] = i
		p.kinds = append(p.kinds, byKey[key])
	}
	for _, m := range members {
		*m.at = number[m.key]
	}
}

func (p *Placement) nameDimensions(pending []Task) {
	names := map[string]bool{}
	for _, d := range p.snap.dimensions {
		names[d] = true
	}
	devices := false
	for _, t := range pending {
		for _, d := range t.Requests.Names() {
			names[d] = true
		}
		devices = devices || t.Devices > 0
	}
	for _, r := range p.snap.spec.Running {
		devices = devices || r.Task.Devices > 0
	}
	if devices {
		names[deviceDim] = true
	}
	p.dims = slices.Sorted(maps.Keys(names))
}

func (p *Placement) countCapacity() {
	nodes := p.snap.spec.Nodes
	p.free = make([]int64, len(nodes)*len(p.dims))
	p.slots = make([]int, len(nodes))
	p.count = make([]int, len(nodes)*len(p.workloads))
	for i := range nodes {
		p.slots[i] = nodes[i].Slots
		if nodes[i].Slots == 0 {
			p.slots[i] = noLimit
		}
		for d := range p.dims {
			p.free[i*len(p.dims)+d] = p.Capacity(i, d)
		}
	}
}

// Capacity is what a node has of the d-th of Dimensions when it is empty.
func (p *Placement) Capacity(node, d int) int64 {
	n := &p.snap.spec.Nodes[node]
	capacity := n.Capacity[p.dims[d]]
	if p.dims[d] == deviceDim {
		for _, dev := range n.Devices {
			capacity += int64(max(1, dev.Slots))
		}
	}
	return capacity
}

func (p *Placement) need(t Task) []int64 {
	requests := t.Requests
	if requests == nil {
		if w, ok := p.snap.Workload(t.Workload); ok {
			requests = w.Requests
		}
	}
	need := make([]int64, len(p.dims))
	for d, name := range p.dims {
		need[d] = requests[name]
		if name == deviceDim {
			need[d] += int64(t.Devices)
		}
	}
	return need
}

// Snapshot is what the placement stands on.
func (p *Placement) Snapshot() *Snapshot { return p.snap }

// Workloads lists the workload names by workload number.
func (p *Placement) Workloads() []string { return p.workloads }

// Kinds is the number of kinds; kinds are numbered from 0.
func (p *Placement) Kinds() int { return len(p.kinds) }

// Kind is the kind of the i-th pending task.
func (p *Placement) Kind(i int) int { return p.pending[i] }

// Workload is the workload number of a kind.
func (p *Placement) Workload(kind int) int { return p.kinds[kind].workload }

// Need is what a task of the kind requests, in the order of Dimensions. It is
// shared: do not change it.
func (p *Placement) Need(kind int) []int64 { return p.kinds[kind].need }

// Dimensions lists the resources that are counted.
func (p *Placement) Dimensions() []string { return p.dims }

// Free is what is left on a node, in the order of Dimensions. It is shared:
// do not change it.
func (p *Placement) Free(node int) []int64 {
	return p.free[node*len(p.dims) : (node+1)*len(p.dims)]
}

// FreeSlots is how many more tasks the node may hold; ok is false where it has
// no limit.
func (p *Placement) FreeSlots(node int) (n int, ok bool) {
	return p.slots[node], p.slots[node] != noLimit
}

// Counts is the number of tasks on a node by workload number, running tasks
// included. It is shared: do not change it.
func (p *Placement) Counts(node int) []int {
	return p.count[node*len(p.workloads) : (node+1)*len(p.workloads)]
}

// PutOn is how many tasks of a kind were put on a node, running tasks not
// included.
func (p *Placement) PutOn(kind, node int) int { return p.put[node*len(p.kinds)+kind] }

// Colocation is the multiset of all tasks on a node.
func (p *Placement) Colocation(node int) Colocation {
	c := Colocation{}
	for w, n := range p.Counts(node) {
		if n > 0 {
			c[p.workloads[w]] = n
		}
	}
	return c
}

// Put adds a task of a kind to a node. It does not check: ask Check first.
func (p *Placement) Put(kind, node int) {
	p.put[node*len(p.kinds)+kind]++
	p.move(kind, node, 1)
}

// Take undoes a Put. It panics where there is none to undo.
func (p *Placement) Take(kind, node int) {
	if p.put[node*len(p.kinds)+kind] == 0 {
		panic(fmt.Sprintf("cluster: no task of %s was put on node %d", p.workloads[p.kinds[kind].workload], node))
	}
	p.put[node*len(p.kinds)+kind]--
	p.move(kind, node, -1)
}

func (p *Placement) move(kind, node, by int) {
	k := &p.kinds[kind]
	for d, n := range k.need {
		p.free[node*len(p.dims)+d] -= int64(by) * n
	}
	if p.slots[node] != noLimit {
		p.slots[node] -= by
	}
	p.count[node*len(p.workloads)+k.workload] += by
	p.countInRules(k.workload, node, by)
}

// Clone is an independent copy.
func (p *Placement) Clone() *Placement {
	c := *p
	c.free = slices.Clone(p.free)
	c.slots = slices.Clone(p.slots)
	c.count = slices.Clone(p.count)
	c.put = slices.Clone(p.put)
	c.cloneRules()
	return &c
}

// Assign gives every pending task a node index, or -1 where fewer were put
// than are pending. Tasks of a kind take the nodes in ascending order, in the
// order in which they are pending.
func (p *Placement) Assign() []int {
	left := slices.Clone(p.put)
	next := make([]int, len(p.kinds))
	at := make([]int, len(p.pending))
	for i, k := range p.pending {
		n := next[k]
		for n < len(p.slots) && left[n*len(p.kinds)+k] == 0 {
			n++
		}
		next[k] = n
		at[i] = -1
		if n < len(p.slots) {
			left[n*len(p.kinds)+k]--
			at[i] = n
		}
	}
	return at
}
