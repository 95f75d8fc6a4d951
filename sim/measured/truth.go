package measured

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/sim"
)

// Truth gives the rates of tasks: sim.Truth. It remembers the snapshot that it
// saw last, so that a successor costs a walk over the running tasks and what
// changed. It is not safe for concurrent use; Fork makes another one.
type Truth struct {
	*world
	of      *cluster.Snapshot
	seen    []seen // in the order of Running
	before  []cluster.Running
	byID    map[cluster.TaskID]*task
	gangs   map[string]*gang
	first   []int32 // by node: its first device in devices
	devices []device
	alones  map[size]aloneProgress
	// Those that left, for those that enter.
	oldTasks []*task
	oldGangs []*gang
	rates    map[cluster.TaskID]float64
	calls    int
	err      error
}

// task is a running task as it was when it was met.
type task struct {
	cluster.Running
	gang     *gang
	node     int
	workload int32 // -1 where the world does not know it
	devices  []int32
}

type gang struct {
	name    string
	tasks   []*task
	stale   bool // size and span are to be counted again
	workers int
	apart   bool
}

type device struct {
	class int32 // -1 where the world does not know it
	tasks []*task
}

// size is what a job's progress alone depends on.
type size struct {
	class, workload int32
	workers         int
	apart           bool
}

type aloneProgress struct {
	progress float64 // NaN where unknown
	scaled   bool
}

func (w *world) truth() *Truth {
	return &Truth{
		world: w, byID: map[cluster.TaskID]*task{}, gangs: map[string]*gang{},
		alones: map[size]aloneProgress{}, rates: map[cluster.TaskID]float64{},
	}
}

// Fork is another truth of the same world, with counters of its own, for a run
// at the same time.
func (t *Truth) Fork() *Truth { return t.world.truth() }

// Calls is how often Rates was called.
func (t *Truth) Calls() int { return t.calls }

// Scaled is how many sizes of jobs (class, workload, workers, span) were met
// that the table lacks, and scaled.
func (t *Truth) Scaled() int {
	n := 0
	for _, a := range t.alones {
		if a.scaled {
			n++
		}
	}
	return n
}

// Err says why Rates first gave NaN: three tasks or more on a device, a pair
// that does not fit or was not measured, a workload or class without a rate.
// None of them is in this world, so that a placement which makes one is an
// error of the policy.
func (t *Truth) Err() error { return t.err }

// Reference is a job's rate alone on its fastest class, on one node: the work
// in seconds of a job is its steps / Reference. It is 0 where no class has a
// rate of the workload.
func (t *Truth) Reference(workload string, workers int) float64 {
	return t.reference(workload, workers)
}

// Scale is a job's rate alone with that many workers / its rate alone with its
// own, each on its fastest class: sim.Scaler. It is 1 where no rate is known.
func (t *Truth) Scale(workload string, own, workers int) float64 {
	if r := t.reference(workload, own); r > 0 {
		return t.reference(workload, workers) / r
	}
	return 1
}

// Rates is the progress of the touched tasks, as the package comment defines
// it. Tasks of one Group are one job; a task without a group is a job of its
// own. Parameter servers go at 1 and take nothing from anybody. A task that
// cannot run where it is has NaN, for which Err gives the reason and package
// sim ends the run. The map is reused by the next call.
func (t *Truth) Rates(s *cluster.Snapshot, touched []cluster.TaskID) map[cluster.TaskID]float64 {
	t.calls++
	t.follow(s)
	clear(t.rates)
	for _, id := range touched {
		if at, ok := t.byID[id]; ok {
			t.rates[id] = t.rate(at)
		}
	}
	return t.rates
}

func (t *Truth) rate(a *task) float64 {
	if a.Role == cluster.ParameterServer {
		return 1
	}
	if len(a.devices) == 0 {
		return t.fail("task %q of workload %q runs on no device", a.ID, a.Workload)
	}
	rate := math.Inf(1)
	for _, at := range a.devices {
		d := &t.devices[at]
		alone := t.aloneProgress(a, d.class)
		if math.IsNaN(alone) {
			return t.fail("workload %q of task %q has no rate alone on class %q", a.Workload, a.ID, t.className(a, at))
		}
		rate = min(rate, alone*t.beside(a, d, at))
	}
	return rate
}

// beside is a task's performance next to what is on a device.
func (t *Truth) beside(a *task, d *device, at int32) float64 {
	switch len(d.tasks) {
	case 1:
		return 1
	case 2:
		other := d.tasks[0]
		if other == a {
			other = d.tasks[1]
		}
		if other.workload >= 0 {
			if p := t.performance[t.at(d.class, a.workload, other.workload)]; !math.IsNaN(p) {
				return p
			}
		}
		c := cluster.Colocation{a.Workload: 1}
		c[other.Workload]++
		class := t.className(a, at)
		if t.misfits.Has(class, c.Key()) {
			return t.fail("tasks %q and %q do not fit on one %s together: %s", a.ID, other.ID, class, c.Key())
		}
		return t.fail("the performance of %q in %s on class %q is unknown", a.Workload, c.Key(), class)
	}
	return t.fail("device %d of node %q holds %d tasks; at most two share one", at-t.first[a.node], a.Node, len(d.tasks))
}

func (t *Truth) fail(format string, args ...any) float64 {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
	return math.NaN()
}

func (t *Truth) className(a *task, at int32) string {
	n := &t.of.Nodes()[a.node]
	return cmp.Or(n.Devices[at-t.first[a.node]].Class, n.Class)
}

// aloneProgress is the progress of a task's job with nothing beside it.
func (t *Truth) aloneProgress(a *task, class int32) float64 {
	g := a.gang
	if g.stale {
		g.measure()
	}
	if class < 0 || a.workload < 0 {
		return math.NaN()
	}
	key := size{class, a.workload, g.workers, g.apart}
	if known, ok := t.alones[key]; ok {
		return known.progress
	}
	span := cluster.SpanNode
	if g.apart {
		span = cluster.SpanApart
	}
	name := t.alone.Classes()[class]
	out := aloneProgress{progress: math.NaN()}
	if p, ok := t.alone.Progress(name, a.Workload, g.workers, span, t.classes); ok {
		out.progress = p
		_, out.scaled, _ = t.alone.Rate(name, a.Workload, g.workers, span)
	}
	t.alones[key] = out
	return out.progress
}

// measure counts the gang's workers and whether they sit on several nodes. A
// gang in which none has the role has a worker in each task.
func (g *gang) measure() {
	g.stale, g.workers, g.apart = false, 0, false
	for _, all := range []bool{false, true} {
		node := -1
		for _, a := range g.tasks {
			if all || a.Role == cluster.Worker {
				g.workers++
				g.apart = g.apart || node >= 0 && a.node != node
				node = a.node
			}
		}
		if g.workers > 0 {
			return
		}
	}
}

// follow brings tasks, gangs and devices up to a snapshot. Running keeps its
// order from one snapshot to the next but for the tasks that ended, and new
// ones come last: one walk over both finds the difference. Any other snapshot
// is followed too, only slower.
func (t *Truth) follow(s *cluster.Snapshot) {
	if t.of == s {
		return
	}
	if t.of == nil || !sameNodes(t.of, s) {
		t.start(s)
	}
	running, before := s.Running(), t.before
	t.of, t.before = s, running
	// A successor in which tasks only began shares what it begins with.
	at := 0
	if len(before) > 0 && len(running) > 0 && &before[0] == &running[0] {
		at = min(len(before), len(running))
	}
	stay := at
	for i := at; i < len(t.seen); i++ {
		old := &t.seen[i]
		if at < len(running) && old.is(&running[at]) {
			if stay < i {
				t.seen[stay] = *old
			}
			stay++
			at++
		} else {
			t.leave(old.task)
		}
	}
	clear(t.seen[stay:])
	t.seen = t.seen[:stay]
	for ; at < len(running); at++ {
		t.enter(s, &running[at])
	}
}

// seen is what tells a running task from another, apart from the task itself
// so that the walk over all of them reads little memory.
type seen struct {
	id       cluster.TaskID
	node     string
	group    string
	workload string
	role     cluster.Role
	on       []int
	task     *task
}

// is says whether a running task is the one that was met, where it was.
func (o *seen) is(r *cluster.Running) bool {
	return o.id == r.ID && o.node == r.Node && sameDevices(o.on, r.On) && o.group == r.Group && o.workload == r.Workload && o.role == r.Role
}

// sameDevices mostly need not look: successors share what did not change.
func sameDevices(a, b []int) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// sameNodes says whether two snapshots share their nodes, as successors do.
func sameNodes(a, b *cluster.Snapshot) bool {
	x, y := a.Nodes(), b.Nodes()
	return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
}

func (t *Truth) start(s *cluster.Snapshot) {
	clear(t.seen)
	t.seen, t.before, t.first, t.devices = t.seen[:0], nil, t.first[:0], t.devices[:0]
	clear(t.byID)
	clear(t.gangs)
	nodes := s.Nodes()
	for i := range nodes {
		t.first = append(t.first, int32(len(t.devices)))
		for _, d := range nodes[i].Devices {
			class, ok := t.class[cmp.Or(d.Class, nodes[i].Class)]
			if !ok {
				class = -1
			}
			t.devices = append(t.devices, device{class: class})
		}
	}
}

func (t *Truth) leave(a *task) {
	delete(t.byID, a.ID)
	g := a.gang
	g.stale = true
	if g.tasks = remove(g.tasks, a); len(g.tasks) == 0 {
		delete(t.gangs, g.name)
		t.oldGangs = append(t.oldGangs, g)
	}
	for _, d := range a.devices {
		t.devices[d].tasks = remove(t.devices[d].tasks, a)
	}
	t.oldTasks = append(t.oldTasks, a)
}

// remove takes a task out of a list, whose order does not matter.
func remove(list []*task, a *task) []*task {
	at := slices.Index(list, a)
	last := len(list) - 1
	list[at] = list[last]
	list[last] = nil
	return list[:last]
}

func (t *Truth) enter(s *cluster.Snapshot, r *cluster.Running) {
	a := reuse(&t.oldTasks)
	*a = task{Running: *r, workload: -1, devices: a.devices[:0]}
	a.node, _ = s.NodeIndex(r.Node) // a snapshot has only tasks on its nodes
	if w, ok := t.workload[r.Workload]; ok {
		a.workload = w
	}
	for _, on := range r.On {
		if on >= 0 && on < len(s.Nodes()[a.node].Devices) {
			at := t.first[a.node] + int32(on)
			a.devices = append(a.devices, at)
			t.devices[at].tasks = append(t.devices[at].tasks, a)
		}
	}
	name := gangName(r)
	g, ok := t.gangs[name]
	if !ok {
		g = reuse(&t.oldGangs)
		g.name = name
		t.gangs[name] = g
	}
	g.tasks, g.stale, a.gang = append(g.tasks, a), true, g
	t.seen = append(t.seen, seen{r.ID, r.Node, r.Group, r.Workload, r.Role, r.On, a})
	t.byID[a.ID] = a
}

// reuse takes one from a list, or makes one.
func reuse[T any](old *[]*T) *T {
	last := len(*old) - 1
	if last < 0 {
		return new(T)
	}
	v := (*old)[last]
	*old = (*old)[:last]
	return v
}

// gangName tells a task without a group from a group of the same name.
func gangName(r *cluster.Running) string {
	if r.Group == "" {
		return "\x00" + string(r.ID)
	}
	return r.Group
}

var (
	_ sim.Truth  = (*Truth)(nil)
	_ sim.Scaler = (*Truth)(nil)
)
