package contention

import (
	"cmp"
	"slices"

	"github.com/cotenant/cotenant/cluster"
)

// Truth gives the true rates of tasks. It remembers the snapshot that it saw
// last, so that a successor costs what changed and no more. It is not safe for
// concurrent use.
type Truth struct {
	*model
	seen  []seen
	gangs map[string]*gang
	nodes [][]*part // by node index, in the order of the gangs' names
	racks []string  // by node index
	of    *cluster.Snapshot
	rates map[cluster.TaskID]float64
	// Scratch.
	dirty []*gang
	asked []*gang
	stamp int
}

// gang is the tasks of one job as the cluster shows them.
type gang struct {
	job
	name  string
	tasks []placed
	stamp int  // of the call that last asked for it
	dirty bool // its tasks changed since it was placed
}

// placed is a task of a gang and where it is.
type placed struct {
	id   cluster.TaskID
	node int
	role role
	part *part
}

// seen is a running task as it was in the last snapshot.
type seen struct {
	id    cluster.TaskID
	node  string
	group string
	gang  *gang
}

// New makes the world that Config describes.
func New(c Config) (*Truth, error) {
	m, err := newModel(c)
	if err != nil {
		return nil, err
	}
	return &Truth{model: m, gangs: map[string]*gang{}, rates: map[cluster.TaskID]float64{}}, nil
}

// Rates is the progress of the tasks of every job that has a touched task:
// the time of an iteration of the job on idle servers, placed as well as it
// can be, over the time of an iteration here. It is more than 0 and, but for
// rounding, at most 1 for jobs of up to 6 workers and 6 parameter servers; of
// larger ones not all placements are searched for the best. A worker's iteration waits for the slowest parameter
// server and node of the job, but not for the other workers; a parameter
// server's waits for the slowest worker.
//
// Tasks of one Group are one job, of one workload: the one that its first task
// names. A task without a group is a job of its own. Tasks of workloads that
// the world does not know, and parameter servers without workers, go at
// progress 1 and take nothing from anybody. Where a job's placement changed in
// part since the last call, the jobs beside it are among the answers too. The
// map is reused by the next call.
func (t *Truth) Rates(s *cluster.Snapshot, touched []cluster.TaskID) map[cluster.TaskID]float64 {
	t.stamp++
	t.asked = t.asked[:0]
	t.follow(s)
	clear(t.rates)
	t.find(touched)
	for _, g := range t.asked {
		t.answer(g)
	}
	return t.rates
}

// follow brings gangs and nodes up to a snapshot. Running keeps its order from
// one snapshot to the next but for the tasks that ended, and new ones come
// last: one walk over both finds the difference.
func (t *Truth) follow(s *cluster.Snapshot) {
	if t.of == s {
		return
	}
	if t.of == nil || !sameNodes(t.of, s) {
		t.start(s)
	}
	t.of = s
	running := s.Running()
	at := 0
	for i := range t.seen {
		old := &t.seen[i]
		if at < len(running) && old.is(&running[at]) {
			if at != i {
				t.seen[at] = *old
			}
			at++
		} else {
			t.leave(old)
		}
	}
	clear(t.seen[at:])
	t.seen = t.seen[:at]
	for ; at < len(running); at++ {
		t.enter(s, &running[at])
	}
	for _, g := range t.dirty {
		t.settle(g)
	}
	t.dirty = t.dirty[:0]
}

// is says whether a running task is the seen one, where it was.
func (o *seen) is(r *cluster.Running) bool {
	return r.ID == o.id && r.Node == o.node && r.Group == o.group
}

// sameNodes says whether two snapshots share their nodes, as successors do.
func sameNodes(a, b *cluster.Snapshot) bool {
	x, y := a.Nodes(), b.Nodes()
	return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
}

func (t *Truth) start(s *cluster.Snapshot) {
	nodes := s.Nodes()
	t.seen, t.gangs = t.seen[:0], map[string]*gang{}
	t.nodes, t.racks = make([][]*part, len(nodes)), make([]string, len(nodes))
	for i := range nodes {
		t.racks[i], _ = nodes[i].Domain(cluster.RackKey)
	}
}

func (t *Truth) leave(old *seen) {
	g := old.gang
	g.tasks = slices.DeleteFunc(g.tasks, func(p placed) bool { return p.id == old.id })
	t.soil(g)
}

func (t *Truth) enter(s *cluster.Snapshot, r *cluster.Running) {
	name := cmp.Or(r.Group, string(r.ID))
	g, ok := t.gangs[name]
	if !ok {
		g = &gang{name: name}
		t.gangs[name] = g
	}
	node, _ := s.NodeIndex(r.Node)
	g.tasks = append(g.tasks, placed{id: r.ID, node: node, role: t.byName[r.Workload]})
	t.seen = append(t.seen, seen{r.ID, r.Node, r.Group, g})
	t.soil(g)
}

func (t *Truth) soil(g *gang) {
	if !g.dirty {
		g.dirty = true
		t.dirty = append(t.dirty, g)
	}
}

// settle places a gang anew.
func (t *Truth) settle(g *gang) {
	g.dirty = false
	moved := len(g.parts) > 0 && len(g.tasks) > 0
	for _, p := range g.parts {
		t.nodes[p.node] = slices.DeleteFunc(t.nodes[p.node], func(o *part) bool { return o == p })
		if moved {
			t.askNode(p.node)
		}
	}
	g.job = job{}
	if len(g.tasks) == 0 {
		delete(t.gangs, g.name)
		return
	}
	for i := range g.tasks {
		task := &g.tasks[i]
		task.part = nil
		if task.role.workload == nil || g.workload != nil && g.workload != task.role.workload {
			continue
		}
		g.workload = task.role.workload
		task.part = g.partOn(task.node, t.racks[task.node])
		if task.role.ps {
			task.part.ps++
			g.ps++
		} else {
			task.part.workers++
			g.workers++
		}
	}
	if g.workload == nil {
		return
	}
	slices.SortFunc(g.parts, func(a, b *part) int { return cmp.Compare(a.node, b.node) })
	t.place(&g.job)
	g.best = t.best(g.workload, g.workers, g.ps)
	for _, p := range g.parts {
		at, _ := slices.BinarySearchFunc(t.nodes[p.node], g.name, func(o *part, name string) int { return cmp.Compare(o.gang.name, name) })
		t.nodes[p.node] = slices.Insert(t.nodes[p.node], at, p)
		if moved {
			t.askNode(p.node)
		}
	}
}

func (g *gang) partOn(node int, rack string) *part {
	for _, p := range g.parts {
		if p.node == node {
			return p
		}
	}
	p := &part{job: &g.job, gang: g, node: node, rack: rack}
	g.parts = append(g.parts, p)
	return p
}

func (t *Truth) askNode(node int) {
	for _, p := range t.nodes[node] {
		t.ask(p.gang)
	}
}

func (t *Truth) ask(g *gang) {
	if g.stamp != t.stamp {
		g.stamp = t.stamp
		t.asked = append(t.asked, g)
	}
}

// find asks for the gangs of the touched tasks. Few are touched, most of them
// with the rest of their gang, so it looks for what is left at each gang found.
func (t *Truth) find(touched []cluster.TaskID) {
	for _, id := range touched {
		t.rates[id] = -1
	}
	left := len(t.rates)
	for i := 0; i < len(t.seen) && left > 0; i++ {
		if _, ok := t.rates[t.seen[i].id]; ok {
			left--
			t.ask(t.seen[i].gang)
		}
	}
	for _, id := range touched {
		delete(t.rates, id)
	}
}

// answer writes the progress of a gang's tasks.
func (t *Truth) answer(g *gang) {
	var worst [3]float64
	for _, p := range g.parts {
		p.now = t.beside(p, t.nodes[p.node])
		for i := range worst {
			worst[i] = max(worst[i], p.now[i])
		}
	}
	for _, task := range g.tasks {
		progress := 1.0
		switch p := task.part; {
		case p == nil || g.workers == 0:
		case task.role.ps:
			progress = g.best / (worst[0] + worst[1] + p.now[2])
		default:
			progress = g.best / (p.now[0] + worst[1] + worst[2])
		}
		t.rates[task.id] = progress
	}
}
