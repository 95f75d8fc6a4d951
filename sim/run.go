package sim

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

const (
	never = time.Duration(math.MaxInt64)
	// horizon is the latest time that a run reaches: half of what a Duration
	// holds, 146 years, so that sums of two times do not overflow.
	horizon = never / 2
	// idleDecisions is how many decisions in a row, while nothing runs and nobody
	// arrives, a policy may hold all: some hold at random, to explore.
	idleDecisions = 1000
)

// The streams of a run's randomness.
const (
	streamPolicy = iota + 1
	streamNodes
	streamJobs
)

type task struct {
	cluster.Task
	job      *job
	requests cluster.Resources
	need     []int64
	node     int // -1 where it does not run
	on       []int
	rate     float64
	nth      int // among the workers of a job that scales; -1 for others
	leaving  bool
	named    uint32 // the decision that named it last

	wanted uint32 // the decision that wants it somewhere last
	to     int
	toOn   []int
}

type job struct {
	spec    *Job
	index   int32
	rank    int32
	tasks   []*task        // those it has now
	own     []*task        // those it came with
	all     []*task        // its workers and those that scaling may add, in order; nil where it does not scale
	sizes   *cluster.Sizes // likewise
	pace    []*task        // those whose progress counts
	workers int            // own
	running bool
	queued  bool

	remaining float64 // seconds of work at last
	failAt    float64 // what remains when this run fails; -1 where it finishes
	rate      float64
	scale     float64
	last      time.Duration // up to when remaining is settled
	still     time.Duration // until when it stands still
	began     time.Duration // when this run began
	replan    bool          // plan its end though its rate may be the same
	marked    uint32

	named    uint32 // the decision that named it last
	outdated uint32 // the decision that wanted of it what has become impossible
	bound    int
	moved    int
	size     int // workers wanted; 0 where not resized

	result JobResult
}

type run struct {
	Config
	name     string
	scaler   Scaler
	observer place.Observer
	jobs     []*job
	arrivals []*job // by arrival
	arrived  int
	byID     map[cluster.TaskID]*task
	byName   map[string]*job
	rand     *rand.Rand

	now      time.Duration
	due      *heap // ends of jobs, then failures and repairs of nodes
	queue    queue
	room     *room
	on       [][]*task // tasks by node
	order    []*task   // tasks in the order of the snapshot's Running
	runs     int       // jobs that run
	current  *cluster.Snapshot
	chain    *cluster.Chain // of which current is the last
	leaving  int
	entering []*task
	dirty    []int
	isDirty  []bool
	ints     []int

	seen     *room // of the old view
	past     []view
	decision uint32
	named    []*job
	puts     []*task
	lifts    []*task
	idle     int
	nodes    nodes
	finished []string
	outcome  place.Outcome
	stretch  Stretch

	stamp   uint32
	touched []cluster.TaskID
	marked  []*job
	gone    []int
	added   []cluster.Running
	out     Result
}

// Run replays the jobs. Errors are a Config that makes no sense, a Truth that
// gives no rate, and a policy that fails or decides what cannot be.
func Run(c Config) (Result, error) {
	r, err := newRun(c)
	if err != nil {
		return Result{}, err
	}
	for r.out.Why == "" && (r.arrived < len(r.arrivals) || len(r.queue.jobs) > 0 || r.runs > 0) {
		next := r.next()
		if next > horizon {
			break
		}
		if c.Stop != nil && c.Stop() {
			r.out.Why = "it was stopped"
			break
		}
		r.pass(next)
		if err := r.step(); err != nil {
			return Result{}, err
		}
	}
	if r.out.Why == "" {
		r.out.Why = r.whyEnded()
	}
	r.tell()
	return r.result(), nil
}

func newRun(c Config) (*run, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	r := &run{Config: c, name: c.Name}
	if r.name == "" {
		r.name = fmt.Sprintf("%T", c.Policy)
	}
	r.scaler, _ = c.Truth.(Scaler)
	if o, ok := c.Policy.(place.Observer); ok && c.Observe {
		r.observer = o
	}
	if r.MaxRestarts == 0 {
		r.MaxRestarts = 1000
	}
	r.rand = rand.New(rand.NewPCG(c.Seed, streamPolicy))
	if err := r.addJobs(); err != nil {
		return nil, err
	}
	spec := cluster.Spec{Nodes: c.Nodes, Workloads: r.workloads()}
	s, err := cluster.NewSnapshot(spec)
	if err != nil {
		return nil, err
	}
	r.current, r.chain = s, cluster.NewChain(s)
	r.past = []view{{-1, s}} // what was before the first instant
	dims := dimensions(c.Nodes, r.jobs)
	r.room = newRoom(c.Nodes, dims)
	if c.Stale > 0 {
		r.seen = newRoom(c.Nodes, dims)
	}
	r.on = make([][]*task, len(c.Nodes))
	r.isDirty = make([]bool, len(c.Nodes))
	r.due = newHeap(len(c.Jobs) + len(c.Nodes))
	r.setNeeds(dims)
	r.refuse()
	r.startNodes()
	return r, nil
}

func (r *run) addJobs() error {
	declared := make(map[string]cluster.Resources, len(r.Workloads))
	for _, w := range r.Workloads {
		declared[w.Name] = w.Requests
	}
	total := 0
	for i := range r.Jobs {
		total += len(r.Jobs[i].Tasks)
	}
	// One piece of memory for all jobs and one for their tasks: a run of a
	// thousand jobs takes a few milliseconds, of which setting up is a part.
	r.jobs, r.byName = make([]*job, 0, len(r.Jobs)), make(map[string]*job, len(r.Jobs))
	r.byID = make(map[cluster.TaskID]*task, total)
	jobs, tasks, pointers := make([]job, len(r.Jobs)), make([]task, total), make([]*task, 0, total)
	for i := range r.Jobs {
		spec := &r.Jobs[i]
		if _, twice := r.byName[spec.Name]; twice {
			return fmt.Errorf("job %q: listed twice", spec.Name)
		}
		j := &jobs[i]
		*j = job{spec: spec, index: int32(i), scale: 1, remaining: spec.Work, failAt: -1}
		r.byName[spec.Name] = j
		r.jobs = append(r.jobs, j)
		from := len(pointers)
		for k := range spec.Tasks {
			t := &tasks[len(pointers)]
			pointers = append(pointers, t)
			if err := r.addTask(t, j, &spec.Tasks[k], declared); err != nil {
				return err
			}
			if t.Role == cluster.Worker {
				j.workers++
			}
		}
		j.own = pointers[from:len(pointers):len(pointers)]
		j.tasks = j.own
		if err := r.addSpares(j, declared); err != nil {
			return err
		}
		j.setPace()
		j.result = JobResult{
			Name: spec.Name, Workload: j.pace[0].Workload, Arrival: spec.Arrival, Work: spec.Work,
			Tasks: len(spec.Tasks), Workers: len(j.pace),
		}
	}
	r.arrivals = slices.Clone(r.jobs)
	byArrival := func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.spec.Arrival, b.spec.Arrival), cmp.Compare(a.index, b.index))
	}
	slices.SortFunc(r.arrivals, byArrival)
	ranked := slices.Clone(r.arrivals)
	if r.Priorities {
		slices.SortStableFunc(ranked, func(a, b *job) int { return cmp.Compare(b.spec.Priority, a.spec.Priority) })
	}
	for i, j := range ranked {
		j.rank = int32(i)
	}
	return nil
}

func (r *run) addTask(t *task, j *job, spec *cluster.Task, declared map[string]cluster.Resources) error {
	if o, twice := r.byID[spec.ID]; twice {
		return fmt.Errorf("job %q: task %q is in job %q too; IDs are unique in a cluster", j.spec.Name, spec.ID, o.job.spec.Name)
	}
	requests := spec.Requests
	if requests == nil {
		requests = declared[spec.Workload]
	}
	*t = task{Task: *spec, job: j, requests: requests, node: -1, nth: -1}
	r.byID[spec.ID] = t
	return nil
}

// workloads are those declared and then those that tasks name, so that no
// snapshot of the run meets a new one.
func (r *run) workloads() []cluster.Workload {
	out := slices.Clone(r.Workloads)
	known := map[string]bool{}
	for _, w := range out {
		known[w.Name] = true
	}
	for _, j := range r.jobs {
		for _, t := range j.tasks {
			if !known[t.Workload] {
				known[t.Workload] = true
				out = append(out, cluster.Workload{Name: t.Workload})
			}
		}
	}
	return out
}

func (r *run) setNeeds(dims []string) {
	if len(dims) == 0 {
		return
	}
	for _, j := range r.jobs {
		for _, t := range slices.Concat(j.tasks, j.all) {
			t.need = make([]int64, len(dims))
			for d, name := range dims {
				t.need[d] = t.requests[name]
			}
		}
	}
}

// refuse takes out the jobs that can never run.
func (r *run) refuse() {
	r.arrivals = slices.DeleteFunc(r.arrivals, func(j *job) bool {
		tasks := j.tasks
		if r.Scale.On && j.all != nil {
			tasks = j.sized(j.spec.MinWorkers)
		}
		j.result.Why = r.room.impossible(tasks)
		if j.result.Why != "" {
			j.result.State = Refused
		}
		return j.result.State == Refused
	})
}

// next is when something happens, or never.
func (r *run) next() time.Duration {
	if r.stuck() {
		return never
	}
	next := r.due.first()
	if r.arrived < len(r.arrivals) {
		next = min(next, r.arrivals[r.arrived].spec.Arrival)
	}
	if !r.decides() {
		return next
	}
	if r.Interval > 0 {
		return min(next, (r.now/r.Interval+1)*r.Interval)
	}
	return min(next, r.viewChanges())
}

// decides reports whether there is anything to decide on.
func (r *run) decides() bool {
	return len(r.queue.jobs) > 0 || (r.Migrate.On || r.Scale.On) && r.runs > 0
}

// stuck reports that no job will ever end and none will begin.
func (r *run) stuck() bool {
	if len(r.due.order) > r.nodes.due || r.arrived < len(r.arrivals) {
		return false
	}
	if r.idle > idleDecisions {
		return true
	}
	return r.Interval == 0 && r.nodes.down == 0 && r.viewChanges() == never
}

func (r *run) whyEnded() string {
	switch {
	case r.arrived == len(r.arrivals) && len(r.queue.jobs) == 0 && r.runs == 0:
		return "the unfinished jobs failed too often"
	case r.now > 0 && r.due.first() > horizon && r.due.first() != never:
		return fmt.Sprintf("the next event lies beyond %s", horizon)
	case r.runs > 0:
		return "what runs makes no progress, nobody arrives, and the policy holds all that waits"
	}
	return "nothing runs, nobody arrives, and the policy holds all that waits"
}

// pass lets time go by until an instant.
func (r *run) pass(to time.Duration) {
	if to > r.now {
		if r.Watch != nil {
			r.showStretch(to)
		}
		if r.observer != nil {
			r.outcome = r.measure(to)
		}
	}
	r.now = to
}

// step does all that happens at the instant now.
func (r *run) step() error {
	changed := false
	for r.due.first() <= r.now {
		changed = true
		r.out.Events++
		if n := r.due.pop(); int(n) < len(r.jobs) {
			r.end(r.jobs[n])
		} else if err := r.nodeEvent(int(n) - len(r.jobs)); err != nil {
			return err
		}
	}
	for r.arrived < len(r.arrivals) && r.arrivals[r.arrived].spec.Arrival <= r.now {
		changed = true
		r.out.Events++
		r.enqueue(r.arrivals[r.arrived])
		r.arrived++
	}
	if err := r.settle(); err != nil {
		return err
	}
	r.tell()
	due := changed || r.viewChanged()
	if r.Interval > 0 {
		due = r.now%r.Interval == 0
	}
	if due && r.decides() {
		if err := r.decideAll(); err != nil {
			return err
		}
	}
	if err := r.setRates(); err != nil {
		return fmt.Errorf("with policy %s at %s: %w", r.name, r.now, err)
	}
	return nil
}

func (r *run) enqueue(j *job) {
	j.queued = true
	r.queue.add(j)
}

// end is the end of a job's run: it has finished, or failed.
func (r *run) end(j *job) {
	r.settleWork(j)
	if j.failAt >= 0 {
		j.remaining = j.failAt
		r.fail(j)
		return
	}
	j.remaining = 0
	j.result.State, j.result.Finish = Finished, r.now
	if r.observer != nil {
		r.finished = append(r.finished, j.spec.Name)
	}
	r.leave(j)
}

// leave takes a job off its nodes.
func (r *run) leave(j *job) {
	r.due.drop(j.index)
	for _, t := range j.tasks {
		r.lift(t)
	}
	j.running = false
	j.rate = 0
	r.runs--
}
