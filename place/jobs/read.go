package jobs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// Reset makes the board that of a request: running tasks in place, pending
// ones put nowhere.
func (b *Board) Reset(req place.Request) {
	if len(b.log) > 0 {
		b.Undo(0)
	}
	b.speeds.forget()
	old := b.req
	b.req = req
	nodes := req.View.Nodes()
	keep := old.View != nil && b.epoch == b.speeds.epoch && len(nodes) == len(b.nodes) &&
		(len(nodes) == 0 || &nodes[0] == &b.nodes[0]) && b.rules == nil && !constrained(req.View)
	if !keep || !b.follow(old.View.Running(), req.View.Running()) {
		b.begin()
	}
	b.readPending(old.Pending)
	b.rules = nil
	if constrained(req.View) {
		b.rules = newRules(b)
	}
	b.countSlots()
}

// constrained reports whether cluster.Placement must be asked what fits.
func constrained(s *cluster.Snapshot) bool {
	c := s.Constraints()
	if len(c.AntiAffinity)+len(c.MaxPerNode)+len(c.Spread)+len(c.NodeSelector)+len(c.Tolerations) > 0 {
		return true
	}
	nodes := s.Nodes()
	for i := range nodes {
		if len(nodes[i].Taints) > 0 {
			return true
		}
	}
	return false
}

// begin reads everything anew.
func (b *Board) begin() {
	b.dirty = b.dirty[:0]
	b.epoch = b.speeds.epoch
	b.tasks, b.freeTasks = b.tasks[:0], b.freeTasks[:0]
	b.gangs, b.freeGangs = b.gangs[:0], b.freeGangs[:0]
	clear(b.byName)
	b.running, b.pending = b.running[:0], b.pending[:0]
	b.layout(b.req.View.Nodes())
	b.state = slices.Grow(b.state, len(b.nodes))[:len(b.nodes)]
	flat := make([]int64, len(b.nodes)*len(b.dims))
	for i := range b.nodes {
		n := &b.nodes[i]
		free := flat[i*len(b.dims) : (i+1)*len(b.dims) : (i+1)*len(b.dims)]
		for d, name := range b.dims {
			free[d] = n.Capacity[name]
		}
		slots := int32(n.Slots)
		if n.Slots == 0 {
			slots = -1
		}
		b.state[i] = nodeState{closed: n.Unschedulable, slots: slots, free: free}
	}
	running := b.req.View.Running()
	for i := range running {
		b.enter(i, &running[i])
	}
	b.settle()
}

// follow turns the board of one list of running tasks into that of the next,
// where that is the old one less some tasks plus new ones at the end. It
// reports false where it is not: the board is then spoilt.
func (b *Board) follow(old, now []cluster.Running) bool {
	kept, at := 0, 0
	for i := range old {
		if at < len(now) && sameRunning(&old[i], &now[at]) {
			t := b.running[i]
			b.running[kept] = t
			b.tasks[t].run = int32(at)
			kept++
			at++
			continue
		}
		b.leave(b.running[i])
	}
	b.running = b.running[:kept]
	for i := at; i < len(now); i++ {
		b.enter(i, &now[i])
	}
	b.settle()
	return true
}

// sameRunning compares all that the board reads.
func sameRunning(a, b *cluster.Running) bool {
	return a.ID == b.ID && a.Node == b.Node && a.Workload == b.Workload && a.Group == b.Group &&
		a.Started == b.Started && a.Movable == b.Movable && a.Devices == b.Devices && a.Role == b.Role &&
		slices.Equal(a.On, b.On) && (a.Requests == nil) == (b.Requests == nil) && maps.Equal(a.Requests, b.Requests)
}

// enter puts a running task where it runs.
func (b *Board) enter(i int, r *cluster.Running) {
	name := r.Group
	if name == "" {
		name = string(r.ID)
	}
	g, ok := b.byName[name]
	if !ok {
		g = b.newGang(name)
		b.byName[name] = g
		b.gangs[g].started = r.Started
	}
	t := b.newTask(&r.Task, g)
	b.tasks[t].run, b.tasks[t].movable = int32(i), r.Movable
	node, _ := b.req.View.NodeIndex(r.Node)
	s := b.host + node
	b.tasks[t].wants, b.tasks[t].on = int32(len(r.On)), r.On
	if len(r.On) > 0 && b.atDevices() {
		s = int(b.firstDevice[node]) + r.On[0]
	}
	b.running = append(b.running, t)
	b.occupy(t, int32(s))
	b.spoil(int32(s))
}

// leave takes away a running task that ended.
func (b *Board) leave(t int32) {
	s := b.tasks[t].site
	b.vacate(t)
	b.spoil(s)
	g := b.tasks[t].gang
	k := &b.gangs[g]
	at := slices.Index(k.tasks, t)
	k.tasks = slices.Delete(k.tasks, at, at+1)
	b.dirty = append(b.dirty, g)
	b.freeTasks = append(b.freeTasks, t)
	if len(k.tasks) == 0 {
		delete(b.byName, k.name)
		b.freeGangs = append(b.freeGangs, g)
	}
}

// spoil marks the gangs on a site to be valued anew.
func (b *Board) spoil(s int32) {
	for _, t := range b.sites[s].tenants {
		b.dirty = append(b.dirty, b.tasks[t].gang)
	}
}

// settle values the gangs that were marked.
func (b *Board) settle() {
	for _, g := range b.dirty {
		k := &b.gangs[g]
		if len(k.tasks) == 0 {
			continue
		}
		if n := b.countWorkers(k); k.alone == nil || k.workers != n {
			k.workers = n
			k.alone = b.aloneOf(k)
		}
		v := b.value(g)
		b.delta += v - k.progress
		k.progress = v
	}
	b.dirty = b.dirty[:0]
}

func (b *Board) countWorkers(k *gang) int32 {
	n := int32(0)
	for _, t := range k.tasks {
		if !b.tasks[t].ps {
			n++
		}
	}
	return n
}

func (b *Board) newGang(name string) int32 {
	if n := len(b.freeGangs); n > 0 {
		g := b.freeGangs[n-1]
		b.freeGangs = b.freeGangs[:n-1]
		b.gangs[g] = gang{name: name, tasks: b.gangs[g].tasks[:0], pending: -1, kind: -1}
		return g
	}
	b.gangs = append(b.gangs, gang{name: name, pending: -1, kind: -1})
	return int32(len(b.gangs) - 1)
}

func (b *Board) newTask(from *cluster.Task, g int32) int32 {
	t := task{
		id: from.ID, workload: b.speeds.Number(from.Workload), gang: g, site: -1,
		wants: int32(from.Devices), run: -1, ps: from.Role == cluster.ParameterServer,
	}
	requests := from.Requests
	if requests == nil {
		if w, ok := b.req.View.Workload(from.Workload); ok {
			requests = w.Requests
		}
	}
	if len(requests) > 0 {
		t.need = make([]int64, len(b.dims))
		for name, amount := range requests {
			if d, ok := slices.BinarySearch(b.dims, name); ok {
				t.need[d] = amount
			} else if amount != 0 && (t.lacks == "" || name < t.lacks) {
				t.lacks = name
			}
		}
	}
	var at int32
	if n := len(b.freeTasks); n > 0 {
		at = b.freeTasks[n-1]
		b.freeTasks = b.freeTasks[:n-1]
		b.tasks[at] = t
	} else {
		at = int32(len(b.tasks))
		b.tasks = append(b.tasks, t)
	}
	b.gangs[g].tasks = append(b.gangs[g].tasks, at)
	return at
}

// aloneOf is the gang's progress with nothing beside it by class and span.
func (b *Board) aloneOf(k *gang) []float64 {
	first := k.tasks[0]
	for _, t := range k.tasks {
		if !b.tasks[t].ps {
			first = t
			break
		}
	}
	key := aloneKey{b.speeds.workloads[b.tasks[first].workload], k.workers}
	if a, ok := b.alone[key]; ok && len(a) == 2*len(b.speeds.classes) {
		return a
	}
	a := b.speeds.alone(key, b.usable)
	b.alone[key] = a
	return a
}

// alone asks for the progress of a job on each class. Where nothing is known
// of it on any class it is 1 on all; where on some, it cannot run on the
// others.
func (s *Speeds) alone(key aloneKey, usable []string) []float64 {
	out := make([]float64, 2*len(s.classes))
	known := false
	if s.options.Alone != nil {
		for c, class := range s.classes {
			for apart, span := range []cluster.Span{cluster.SpanNode, cluster.SpanApart} {
				if p, ok := s.options.Alone.Progress(class, key.workload, int(key.workers), span, usable); ok {
					out[2*c+apart] = p
					known = true
				}
			}
		}
	}
	if !known {
		for i := range out {
			out[i] = 1
		}
	}
	return out
}

// readPending numbers the pending gangs; those that waited before keep what
// was read of them.
func (b *Board) readPending(old []cluster.Group) {
	waiting := b.pending
	b.pending = make([]int32, 0, len(b.req.Pending))
	at := 0
	for i := range b.req.Pending {
		p := &b.req.Pending[i]
		for at < len(waiting) && !samePending(&old[at], p) {
			b.dropPending(waiting[at])
			at++
		}
		if at < len(waiting) {
			g := waiting[at]
			b.gangs[g].pending, b.gangs[g].why, b.gangs[g].words = int32(i), Fits, ""
			b.pending = append(b.pending, g)
			at++
			continue
		}
		b.pending = append(b.pending, b.newPending(int32(i), p))
	}
	for ; at < len(waiting); at++ {
		b.dropPending(waiting[at])
	}
}

func samePending(a, b *cluster.Group) bool {
	return a.Name == b.Name && len(a.Tasks) == len(b.Tasks) && a.Arrival == b.Arrival && a.Priority == b.Priority &&
		a.Gang == b.Gang && (len(a.Tasks) == 0 || &a.Tasks[0] == &b.Tasks[0])
}

func (b *Board) dropPending(g int32) {
	b.freeTasks = append(b.freeTasks, b.gangs[g].tasks...)
	b.freeGangs = append(b.freeGangs, g)
}

func (b *Board) newPending(i int32, p *cluster.Group) int32 {
	g := b.newGang(p.Name)
	k := &b.gangs[g]
	k.pending, k.arrival, k.priority = i, p.Arrival, p.Priority
	for j := range p.Tasks {
		b.newTask(&p.Tasks[j], g)
	}
	k = &b.gangs[g]
	for _, t := range k.tasks {
		k.wants += b.tasks[t].wants
	}
	k.workers = b.countWorkers(k)
	if len(k.tasks) > 0 {
		k.alone = b.aloneOf(k)
	}
	k.kind = b.kindOf(k, p)
	return g
}

// kindOf numbers what a gang is made of.
func (b *Board) kindOf(k *gang, p *cluster.Group) int32 {
	var text strings.Builder
	for _, t := range k.tasks {
		x := &b.tasks[t]
		fmt.Fprint(&text, x.workload, x.wants, x.ps, x.need, x.lacks, ";")
	}
	fmt.Fprint(&text, p.Gang)
	n, ok := b.kinds[text.String()]
	if !ok {
		n = b.kindCount
		b.kindCount++
		b.kinds[text.String()] = n
	}
	return n
}

func (b *Board) countSlots() {
	b.slotsFree = 0
	for i := range b.devices {
		b.slotsFree += int(b.devices[i].slots - b.devices[i].used)
	}
}
