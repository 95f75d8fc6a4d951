package services

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// task is a replica.
type task struct {
	cluster.Task
	group  int32 // position in Arrivals
	kind   int32
	node   int32         // -1 while it waits, and before it comes
	nth    int32         // where it stands in on[node]
	since  time.Duration // since when it waits, or since when it sits where it does
	began  time.Duration // when it last began to run
	held   bool          // it was not placed at once
	moving bool          // it has no performance now
	listed bool          // it stands in order
	ended  bool          // likewise, but not for the next snapshot
	pos    int32         // where it stands in order
	mark   uint32        // the decision that named it last
	goal   int32         // the node which that decision names
}

// wait is a group of which some tasks wait, in arrival order.
type wait struct {
	group int32
	tasks []*task
}

// end is when something ends for a task.
type end struct {
	at   time.Duration
	task *task
}

// run is a run going on. The board is what is true: it is kept up to date with
// every change; snapshots are made of the changes when a policy is asked.
type run struct {
	Config
	tasks    []task
	first    []int32 // by position in Arrivals: where its tasks begin
	arrivals []int32 // positions in Arrivals, by time
	ends     []end   // of being wanted, by time
	outages  []outage
	moments  []time.Duration // of samples
	arrived  int
	ended    int
	failed   int
	sampled  int
	byID     map[cluster.TaskID]*task
	rand     *rand.Rand

	now   time.Duration
	board *board
	on    [][]*task // by node
	down  []bool
	still []end // moves that are still paid for, by time

	waiting []*wait
	kept    int // tasks that wait
	demand  demand
	// changed says that something ended, failed or came back since the policy
	// was last asked.
	changed bool

	nodes    []cluster.Node
	chain    *cluster.Chain
	view     *cluster.Snapshot
	order    []*task // in the order of view.Running()
	entering []*task
	gone     []int // positions in order of those that ended
	added    []cluster.Running

	decision uint32
	puts     []*task
	lifts    []*task
	skewOf   []int

	tally tally
	out   Result
}

// Run plays the arrivals. Errors are a Config that makes no sense, a truth that
// is silent about a co-location, and a policy that fails or decides what must
// not be.
func Run(c Config) (Result, error) {
	r, err := newRun(c)
	if err != nil {
		return Result{}, err
	}
	for r.now < c.Horizon {
		if c.Stop != nil && c.Stop() {
			return Result{}, fmt.Errorf("services: stopped at %s of %s", r.now, c.Horizon)
		}
		next := r.next()
		r.pass(next)
		if next >= c.Horizon {
			break
		}
		if err := r.step(); err != nil {
			return Result{}, fmt.Errorf("services: policy %s at %s: %w", r.name(), r.now, err)
		}
	}
	return r.result(), nil
}

func (r *run) name() string {
	if r.Name != "" {
		return r.Name
	}
	return fmt.Sprintf("%T", r.Policy)
}

// The streams of randomness of a seed.
const (
	streamPolicy = 1 + iota
	streamNodes
)

func newRun(c Config) (*run, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	r := &run{Config: c, rand: rand.New(rand.NewPCG(c.Seed, streamPolicy)), nodes: c.Cluster.Nodes}
	spec := c.Cluster
	spec.Workloads = declare(&c)
	s, err := cluster.NewSnapshot(spec)
	if err != nil {
		return nil, err
	}
	r.view, r.chain = s, cluster.NewBriefChain(s)
	r.board = newBoard(s, c.Truth, c.Memory)
	r.on = make([][]*task, len(r.nodes))
	r.down = make([]bool, len(r.nodes))
	r.skewOf = make([]int, len(s.Workloads()))
	r.demand = newDemand(s.Workloads(), c.Lifetime)
	r.outages = drawOutages(&c)
	for i := range c.Samples {
		part := (float64(i) + 0.5) / float64(c.Samples)
		r.moments = append(r.moments, c.Warmup+time.Duration(part*float64(c.Horizon-c.Warmup)))
	}
	return r, r.addTasks()
}

// declare lists the workloads of the cluster, then those of the arrivals by
// name, so that no snapshot of the run meets a new one.
func declare(c *Config) []cluster.Workload {
	known := map[string]bool{}
	for _, w := range c.Cluster.Workloads {
		known[w.Name] = true
	}
	var fresh []string
	for i := range c.Arrivals {
		for k := range c.Arrivals[i].Tasks {
			if w := c.Arrivals[i].Tasks[k].Workload; !known[w] {
				known[w] = true
				fresh = append(fresh, w)
			}
		}
	}
	slices.Sort(fresh)
	out := slices.Clone(c.Cluster.Workloads)
	for _, w := range fresh {
		out = append(out, cluster.Workload{Name: w})
	}
	return out
}

func (r *run) addTasks() error {
	total := 0
	for i := range r.Arrivals {
		total += len(r.Arrivals[i].Tasks)
	}
	r.tasks = make([]task, 0, total)
	r.first = make([]int32, len(r.Arrivals))
	r.byID = make(map[cluster.TaskID]*task, total)
	r.arrivals = make([]int32, len(r.Arrivals))
	for i := range r.Arrivals {
		r.arrivals[i], r.first[i] = int32(i), int32(len(r.tasks))
		for k, t := range r.Arrivals[i].Tasks {
			if _, twice := r.byID[t.ID]; twice {
				return fmt.Errorf("services: task %q comes twice; IDs are unique in a cluster", t.ID)
			}
			n := len(r.tasks)
			r.tasks = append(r.tasks, task{Task: t, group: int32(i), kind: r.board.kind[t.Workload], node: -1, goal: -1})
			r.byID[t.ID] = &r.tasks[n]
			if at := r.Arrivals[i].Until[k]; at < r.Horizon {
				r.ends = append(r.ends, end{at, &r.tasks[n]})
			}
		}
	}
	slices.SortStableFunc(r.arrivals, func(a, b int32) int {
		return cmp.Compare(r.Arrivals[a].Arrival, r.Arrivals[b].Arrival)
	})
	slices.SortStableFunc(r.ends, func(a, b end) int { return cmp.Compare(a.at, b.at) })
	return nil
}

// next is when something happens, at most the horizon.
func (r *run) next() time.Duration {
	next := r.Horizon
	if r.now < r.Warmup {
		next = r.Warmup
	}
	if r.arrived < len(r.arrivals) {
		next = min(next, r.Arrivals[r.arrivals[r.arrived]].Arrival)
	}
	if r.ended < len(r.ends) {
		next = min(next, r.ends[r.ended].at)
	}
	if r.failed < len(r.outages) {
		next = min(next, r.outages[r.failed].at)
	}
	if len(r.still) > 0 {
		next = min(next, r.still[0].at)
	}
	if r.sampled < len(r.moments) {
		next = min(next, r.moments[r.sampled])
	}
	return next
}

// pass lets time go by until an instant.
func (r *run) pass(to time.Duration) {
	if to > r.now {
		s := Stretch{From: r.now, To: to, Sum: r.board.sum, Running: r.board.running, Waiting: r.kept}
		if r.now >= r.Warmup {
			r.tally.flow(&s, r.board.skewed > 0)
		}
		if r.Watch != nil {
			r.Watch(s)
		}
	}
	r.now = to
}

// step does all that happens at the instant now: moves end, tasks leave, nodes
// fail or come back, the policy is asked where that changed anything for it,
// and then groups arrive, one decision each.
func (r *run) step() error {
	for len(r.still) > 0 && r.still[0].at <= r.now {
		t := r.still[0].task
		r.still = r.still[1:]
		if t.moving && t.since+r.Migrate.Cost <= r.now {
			r.settled(t)
		}
	}
	r.leaveAll()
	for r.failed < len(r.outages) && r.outages[r.failed].at <= r.now {
		if err := r.outage(r.outages[r.failed]); err != nil {
			return err
		}
		r.failed++
	}
	if r.changed && (len(r.waiting) > 0 || r.Migrate.On) {
		if err := r.decideAll(); err != nil {
			return err
		}
	}
	for r.arrived < len(r.arrivals) && r.Arrivals[r.arrivals[r.arrived]].Arrival <= r.now {
		r.enter(r.arrivals[r.arrived])
		r.arrived++
		if err := r.decideAll(); err != nil {
			return err
		}
	}
	if err := r.board.err(); err != nil {
		return err
	}
	if r.sampled < len(r.moments) && r.moments[r.sampled] <= r.now {
		r.sampled++
		r.sample()
	}
	return nil
}

// leaveAll ends the tasks that are no longer wanted. Those of one group are one
// event.
func (r *run) leaveAll() {
	last := int32(-1)
	for r.ended < len(r.ends) && r.ends[r.ended].at <= r.now {
		t := r.ends[r.ended].task
		r.ended++
		if t.group != last {
			last = t.group
			r.out.Events++
		}
		r.changed = true
		if t.node >= 0 {
			r.lift(t)
		} else {
			r.forget(t)
		}
	}
}

// enter puts a group in the queue.
func (r *run) enter(group int32) {
	r.out.Events++
	n := len(r.Arrivals[group].Tasks)
	tasks := r.tasks[r.first[group]:][:n]
	for i := range tasks {
		r.queue(&tasks[i])
		r.demand.add(int(tasks[i].kind), r.now, 1)
	}
	if r.now >= r.Warmup {
		r.tally.arrived += n
	}
}

// queue lets a task wait with those of its group, which keeps its place where
// some wait already.
func (r *run) queue(t *task) {
	t.since, t.held = r.now, false
	r.kept++
	i := len(r.waiting) - 1
	for i >= 0 && r.waiting[i].group != t.group {
		i--
	}
	if i < 0 {
		i = len(r.waiting)
		r.waiting = append(r.waiting, &wait{group: t.group})
	}
	r.waiting[i].tasks = append(r.waiting[i].tasks, t)
}

// forget takes a task that waits out of the queue.
func (r *run) forget(t *task) {
	at := slices.IndexFunc(r.waiting, func(w *wait) bool { return w.group == t.group })
	w := r.waiting[at]
	w.tasks = slices.DeleteFunc(w.tasks, func(o *task) bool { return o == t })
	if len(w.tasks) == 0 {
		r.waiting = slices.Delete(r.waiting, at, at+1)
	}
	r.kept--
	r.tally.gaveUp(r.now-t.since, t.since >= r.Warmup)
}

// lift takes a running task off its node.
func (r *run) lift(t *task) {
	n := t.node
	if t.moving {
		r.settled(t)
	}
	r.board.take(int(t.kind), int(n))
	on := r.on[n]
	last := on[len(on)-1]
	on[t.nth], last.nth = last, t.nth
	r.on[n] = on[:len(on)-1]
	t.node = -1
	if t.listed && !t.ended {
		t.ended = true
		r.gone = append(r.gone, int(t.pos))
		return
	}
	at := slices.Index(r.entering, t)
	r.entering = slices.Delete(r.entering, at, at+1)
}

// put lets a task run on a node.
func (r *run) put(t *task, n int32) {
	r.board.put(int(t.kind), int(n))
	t.node, t.nth = n, int32(len(r.on[n]))
	r.on[n] = append(r.on[n], t)
	r.entering = append(r.entering, t)
	t.since = r.now
}

// settled ends what a move costs.
func (r *run) settled(t *task) {
	t.moving = false
	r.board.still(int(t.kind), int(t.node), -1)
}

// settle makes the snapshot of now. A task that left and came back since the
// last one stands at the end.
func (r *run) settle() error {
	if len(r.gone) == 0 && len(r.entering) == 0 {
		return nil
	}
	slices.Sort(r.gone)
	// The same exchange as the chain's: the last takes the place.
	for i := len(r.gone) - 1; i >= 0; i-- {
		at, last := r.gone[i], len(r.order)-1
		r.order[at].listed, r.order[at].ended = false, false
		r.order[at] = r.order[last]
		r.order[at].pos = int32(at)
		r.order = r.order[:last]
	}
	r.added = r.added[:0]
	for _, t := range r.entering {
		t.listed, t.pos = true, int32(len(r.order)+len(r.added))
		r.added = append(r.added, cluster.Running{
			Task: t.Task, Node: r.nodes[t.node].Name, Movable: r.Migrate.On, Group: r.Arrivals[t.group].Name, Started: t.began,
		})
	}
	r.order = append(r.order, r.entering...)
	r.entering = r.entering[:0]
	next, err := r.chain.Next(r.gone, r.added)
	r.view, r.gone = next, r.gone[:0]
	return err
}

func (r *run) sample() {
	r.board.add()
	s := Sample{At: r.now, Tasks: map[string]int{}, Sum: r.board.sum, Running: r.board.running, Waiting: r.kept, Worst: math.Inf(1)}
	for n := range r.on {
		for _, t := range r.on[n] {
			s.Tasks[t.Workload]++
		}
		s.Worst = min(s.Worst, r.board.worst(n))
		if r.down[n] {
			s.Down = append(s.Down, n)
		}
	}
	if r.Objective.Traffic != 0 {
		s.Near = place.NearShare(r.board.Placement)
	}
	r.out.Samples = append(r.out.Samples, s)
}

// request is what the policy is asked about the given groups.
func (r *run) request(groups []*wait) place.Request {
	pending := make([]cluster.Group, len(groups))
	for i, w := range groups {
		a := &r.Arrivals[w.group]
		pending[i] = a.Group
		if len(w.tasks) < len(a.Tasks) {
			tasks := make([]cluster.Task, len(w.tasks))
			for k, t := range w.tasks {
				tasks[k] = t.Task
			}
			pending[i].Tasks = tasks
		}
	}
	return place.Request{
		View: r.view, Pending: pending, Now: r.now, Objective: r.Objective,
		Expected: r.demand.expected(r.now), Rand: r.rand, Stop: r.Stop,
	}
}
