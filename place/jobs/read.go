package jobs

import (
	"encoding/binary"
	"maps"
	"reflect"
	"slices"

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
	nodes := req.View.Nodes()
	keep := b.req.View != nil && b.epoch == b.speeds.epoch && len(nodes) == len(b.nodes) &&
		(len(nodes) == 0 || &nodes[0] == &b.nodes[0]) && sameWorkloads(b.req.View.Workloads(), req.View.Workloads())
	b.req = req
	b.rules = nil
	if !keep {
		b.begin()
	}
	b.follow(req.View.Running())
	b.readPending()
	if b.tainted || constrained(req.View.Constraints()) {
		b.rules = newRules(b)
	}
	b.gained = 0
}

// sameWorkloads looks at whether two snapshots share what workloads request.
func sameWorkloads(a, b []cluster.Workload) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// constrained reports whether cluster.Placement must be asked what fits.
func constrained(c cluster.Constraints) bool {
	return len(c.AntiAffinity)+len(c.MaxPerNode)+len(c.Spread)+len(c.NodeSelector) > 0
}

// begin reads the nodes anew and forgets all tasks.
func (b *Board) begin() {
	b.epoch = b.speeds.epoch
	b.dirty = b.dirty[:0]
	b.tasks, b.freeTasks = b.tasks[:0], b.freeTasks[:0]
	b.gangs, b.freeGangs, b.placed = b.gangs[:0], b.freeGangs[:0], b.placed[:0]
	clear(b.byName)
	b.met, b.running, b.waiting = b.met[:0], b.running[:0], b.waiting[:0]
	if n := len(b.req.View.Running()); n > cap(b.tasks) {
		b.tasks, b.gangs = make([]task, 0, n), make([]gang, 0, n)
		b.byName = make(map[string]int32, n)
	}
	b.last = nil
	b.layout(b.req.View.Nodes())
	b.state = make([]nodeState, len(b.nodes))
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
		b.state[i].share = b.share(int32(i))
	}
	if b.index != nil {
		b.index.anew(b)
	}
	if b.gangIndex != nil {
		b.gangIndex.anew(b)
	}
}

// follow turns the board of one list of running tasks into that of the next.
// Mostly that is the old one less some tasks plus new ones at the end. Where
// it is not, all tasks are read again: who came first on a site must not
// depend on what the board saw before.
func (b *Board) follow(now []cluster.Running) {
	last := b.last
	b.last = now
	kept := 0
	if len(last) > 0 && len(last) <= len(now) && &last[0] == &now[0] {
		kept = len(last) // the same memory: snapshots do not change
	}
	for i := kept; i < len(b.met); i++ {
		if kept < len(now) && b.met[i].is(&now[kept]) {
			if kept < i {
				b.met[kept], b.running[kept] = b.met[i], b.running[i]
				b.tasks[b.running[kept]].run = int32(kept)
			}
			kept++
			continue
		}
		b.leave(b.running[i])
	}
	b.met, b.running = b.met[:kept], b.running[:kept]
	for i := kept; i < len(now); i++ {
		b.enter(i, &now[i])
	}
	b.settle()
}

// is reports whether a running task is the one that was met, where it was.
func (m *met) is(r *cluster.Running) bool {
	return m.id == r.ID && m.node == r.Node && m.workload == r.Workload && m.group == r.Group &&
		m.started == r.Started && m.movable == r.Movable && m.devices == r.Devices &&
		m.sizes == r.Sizes && m.ps == (r.Role == cluster.ParameterServer) && sameDevices(m.on, r.On) && sameRequests(m.requests, r.Requests)
}

// sameRequests mostly need not look: a task keeps its map.
func sameRequests(a, b cluster.Resources) bool {
	if len(a) != len(b) || (a == nil) != (b == nil) {
		return false
	}
	return len(a) == 0 || reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() || maps.Equal(a, b)
}

// sameDevices mostly need not look: successors share what did not change.
func sameDevices(a, b []int) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
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
	}
	t := b.newTask(&r.Task, g)
	b.tasks[t].run, b.tasks[t].movable = int32(i), r.Movable
	node, _ := b.req.View.NodeIndex(r.Node)
	s := b.host + node
	b.tasks[t].wants, b.tasks[t].on, b.tasks[t].homeOn = int32(len(r.On)), r.On, r.On
	if len(r.On) > 0 && b.atDevices() {
		s = int(b.firstDevice[node]) + r.On[0]
	}
	b.running = append(b.running, t)
	b.met = append(b.met, met{
		r.ID, r.Node, r.Workload, r.Group, r.On, r.Started, r.Devices,
		r.Movable, r.Role == cluster.ParameterServer, r.Requests, r.Sizes,
	})
	b.gangs[g].sizes = r.Sizes
	b.tasks[t].home = int32(s)
	b.occupy(t, int32(s))
	if len(b.gangs[g].tasks) == 2 {
		b.touchGang(g)
	}
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
	if len(k.tasks) == 1 {
		b.touchGang(g)
	}
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
	b.settled++
	for _, g := range b.dirty {
		k := &b.gangs[g]
		if len(k.tasks) == 0 {
			continue
		}
		if n := b.countWorkers(k); k.alone == nil || k.workers != n {
			k.workers = n
			k.alone = b.aloneOf(k)
			b.rescale(g)
		}
		if !k.waits {
			k.since = b.met[b.tasks[k.tasks[0]].run].started
		}
		v := b.value(g)
		b.delta += v - k.progress
		b.gained += v - k.progress
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
		b.gangs[g] = gang{name: name, tasks: b.gangs[g].tasks[:0], kind: -1, scale: 1}
		b.placed[g] = 0
		return g
	}
	if len(b.few) == cap(b.few) {
		b.few = make([]int32, 0, 1024)
	}
	n := len(b.few)
	b.few = b.few[:n+1]
	b.gangs = append(b.gangs, gang{name: name, kind: -1, scale: 1, tasks: b.few[n : n : n+1]})
	b.placed = append(b.placed, 0)
	return int32(len(b.gangs) - 1)
}

func (b *Board) newTask(from *cluster.Task, g int32) int32 {
	t := task{
		id: from.ID, workload: b.speeds.Number(from.Workload), gang: g, site: -1, home: -1,
		wants: int32(from.Devices), run: -1, ps: from.Role == cluster.ParameterServer,
	}
	requests := from.Requests
	if requests == nil {
		requests = b.requestsOf(t.workload)
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
	return b.addTask(t)
}

// addTask makes a task one of its gang.
func (b *Board) addTask(t task) int32 {
	var at int32
	if n := len(b.freeTasks); n > 0 {
		at = b.freeTasks[n-1]
		b.freeTasks = b.freeTasks[:n-1]
		b.tasks[at] = t
	} else {
		at = int32(len(b.tasks))
		b.tasks = append(b.tasks, t)
	}
	b.gangs[t.gang].tasks = append(b.gangs[t.gang].tasks, at)
	return at
}

// requestsOf is what a workload requests, looked up once for each layout.
func (b *Board) requestsOf(w int32) cluster.Resources {
	for int(w) >= len(b.requests) {
		d, _ := b.req.View.Workload(b.speeds.workloads[len(b.requests)])
		b.requests = append(b.requests, d.Requests)
	}
	return b.requests[w]
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
	key := aloneKey{b.tasks[first].workload, k.workers}
	if a, ok := b.alone[key]; ok && len(a) == 2*len(b.speeds.classes) {
		return a
	}
	var a []float64
	if k.workers > 0 {
		a = b.speeds.alone(key, b.usable)
	} else {
		a = ones(2 * len(b.speeds.classes)) // parameter servers alone: as fast anywhere
	}
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
				if p, ok := s.options.Alone.Progress(class, s.workloads[key.workload], int(key.workers), span, usable); ok {
					out[2*c+apart] = p
					known = true
				}
			}
		}
	}
	if !known {
		return ones(len(out))
	}
	return out
}

func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }

// readPending numbers the pending gangs; those that waited before keep what
// was read of them. The list may be the caller's own, changed in place since:
// it is compared with what was kept of it.
func (b *Board) readPending() {
	old := b.waiting
	now := b.req.Pending
	for len(old) > 0 && (len(now) == 0 || !old[0].is(&now[0])) {
		b.dropPending(old[0].gang)
		old = old[1:] // most that are placed stand at the head
	}
	kept := 0
	for at := range old {
		switch {
		case kept == len(now) || !old[at].is(&now[kept]):
			b.dropPending(old[at].gang)
		case kept < at:
			old[kept] = old[at]
			kept++
		default:
			kept++
		}
	}
	b.waiting = old[:kept]
	for i := kept; i < len(now); i++ {
		b.waiting = append(b.waiting, b.newPending(&now[i]))
	}
	b.why = slices.Grow(b.why[:0], len(now))[:len(now)]
	clear(b.why)
	clear(b.words)
	if b.Explain {
		b.words = slices.Grow(b.words[:0], len(now))[:len(now)]
	}
}

func (w *waits) is(g *cluster.Group) bool {
	return int(w.tasks) == len(g.Tasks) && w.tasks > 0 && w.first == &g.Tasks[0] && w.arrival == g.Arrival &&
		w.priority == g.Priority && w.whole == g.Gang && w.least == g.MinWorkers && w.most == g.MaxWorkers && w.name == g.Name
}

func (b *Board) dropPending(g int32) {
	b.freeTasks = append(b.freeTasks, b.gangs[g].tasks...)
	b.gangs[g].tasks = b.gangs[g].tasks[:0]
	b.freeGangs = append(b.freeGangs, g)
}

func (b *Board) newPending(p *cluster.Group) waits {
	g := b.newGang(p.Name)
	b.gangs[g].waits, b.gangs[g].since = true, p.Arrival
	for j := range p.Tasks {
		b.newTask(&p.Tasks[j], g)
	}
	k := &b.gangs[g]
	for _, t := range k.tasks {
		k.wants += b.tasks[t].wants
	}
	k.workers = b.countWorkers(k)
	w := waits{
		name: p.Name, arrival: p.Arrival, priority: p.Priority, tasks: int32(len(p.Tasks)), gang: g, wants: k.wants, whole: p.Gang,
		least: p.MinWorkers, most: p.MaxWorkers,
	}
	if p.MaxWorkers > 0 {
		k.sizes = p.Sizes()
	}
	if len(p.Tasks) > 0 {
		k.alone = b.aloneOf(k)
		w.first, w.id = &p.Tasks[0], p.Tasks[0].ID
	}
	k.kind = b.kindOf(k, p.Gang)
	w.kind = k.kind
	return w
}

// kindOf numbers what a gang is made of.
func (b *Board) kindOf(k *gang, whole bool) int32 {
	key := b.key[:0]
	if whole {
		key = append(key, 'g')
	}
	if z := k.sizes; z != nil {
		key = append(key, 's')
		for _, n := range [3]int{len(z.Workers), z.MinWorkers, z.MaxWorkers} {
			key = binary.AppendVarint(key, int64(n))
		}
	}
	for _, t := range k.tasks {
		x := &b.tasks[t]
		key = binary.AppendVarint(key, int64(x.workload))
		key = binary.AppendVarint(key, int64(x.wants))
		if x.ps {
			key = append(key, 'p')
		}
		for d, amount := range x.need {
			if amount != 0 {
				key = append(key, 'n')
				key = binary.AppendVarint(key, int64(d))
				key = binary.AppendVarint(key, amount)
			}
		}
		key = append(key, x.lacks...)
		key = append(key, ';')
	}
	b.key = key
	n, ok := b.kinds[string(key)]
	if !ok {
		n = b.kindCount
		b.kindCount++
		b.kinds[string(key)] = n
	}
	return n
}
