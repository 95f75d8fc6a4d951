package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// decideAll lets the policy decide at this instant: once, or gang by gang.
func (r *run) decideAll() error {
	runs, waited := r.runs, len(r.queue.jobs) > 0
	if r.Backfill || len(r.queue.jobs) == 0 {
		if err := r.decide(r.queue.groups); err != nil {
			return err
		}
	} else {
		for len(r.queue.jobs) > 0 {
			first := r.queue.jobs[0]
			if err := r.decide(r.queue.groups[:1:1]); err != nil {
				return err
			}
			if first.queued {
				break
			}
		}
	}
	// Only now does the policy know that nobody waits, and may let jobs grow.
	if r.Scale.On && r.Stale == 0 && waited && len(r.queue.jobs) == 0 {
		if err := r.decide(nil); err != nil {
			return err
		}
	}
	switch {
	case r.runs > runs:
		r.idle = 0
	case len(r.due.order) == r.nodes.due && r.arrived == len(r.arrivals):
		r.idle++
	}
	return nil
}

// decide asks the policy once, checks what it decided and does it.
func (r *run) decide(pending []cluster.Group) error {
	req := place.Request{View: r.visible(), Pending: pending, Now: r.now, Objective: r.Objective, Rand: r.rand, Stop: r.Stop}
	r.out.Decisions++
	d, err := r.Policy.Place(req)
	if err != nil {
		return fmt.Errorf("policy %s at %s: %w", r.name, r.now, err)
	}
	if r.Decided != nil {
		r.Decided(req, d)
	}
	r.decision++
	r.named, r.puts, r.lifts = r.named[:0], r.puts[:0], r.lifts[:0]
	if err := r.read(&d); err != nil {
		return fmt.Errorf("policy %s at %s: %w", r.name, r.now, err)
	}
	for _, j := range r.named {
		if err := r.checkWhole(j); err != nil {
			if r.Stale > 0 && j.running {
				j.outdated = r.decision
				continue
			}
			return fmt.Errorf("policy %s at %s: job %q: %w", r.name, r.now, j.spec.Name, err)
		}
	}
	if r.Stale > 0 {
		err = r.actStale(req.View)
	} else {
		err = r.act()
	}
	if err != nil {
		return fmt.Errorf("policy %s at %s: %w", r.name, r.now, err)
	}
	return r.settle()
}

// mention begins to count what the decision says of a job.
func (r *run) mention(j *job) {
	if j.named != r.decision {
		j.named = r.decision
		j.bound, j.moved, j.size = 0, 0, 0
		r.named = append(r.named, j)
	}
}

// offered reports whether the policy was asked to place the job.
func (r *run) offered(j *job) bool {
	return j.queued && (r.Backfill || j == r.queue.jobs[0])
}

// read notes what the decision wants of each task and job.
func (r *run) read(d *place.Decision) error {
	for _, z := range d.Resize {
		if err := r.readResize(z); err != nil {
			return err
		}
	}
	for i := range d.Bind {
		b := &d.Bind[i]
		t, err := r.claim(b.Task, "binds")
		if err != nil {
			return err
		}
		r.mention(t.job)
		grows := t.job.running && t.job.size > 0
		if r.Stale > 0 && t.node >= 0 && grows {
			t.job.outdated = r.decision
		}
		switch {
		case t.job.outdated == r.decision:
			continue
		case t.node >= 0:
			return fmt.Errorf("binds task %q of job %q, which runs already", b.Task, t.job.spec.Name)
		case !grows && !r.offered(t.job):
			return fmt.Errorf("binds task %q of job %q, which is not pending", b.Task, t.job.spec.Name)
		}
		if err := r.want(t, b.Node, b.Devices); err != nil {
			return err
		}
		t.job.bound++
	}
	for i := range d.Move {
		if err := r.readMove(&d.Move[i]); err != nil {
			return err
		}
	}
	for i := range d.Hold {
		t, err := r.claim(d.Hold[i].Task, "holds")
		if err != nil {
			return err
		}
		if !r.offered(t.job) {
			return fmt.Errorf("holds task %q of job %q, which is not pending", t.ID, t.job.spec.Name)
		}
	}
	return nil
}

// claim finds a task and sees to it that the decision names it once.
func (r *run) claim(id cluster.TaskID, verb string) (*task, error) {
	t, ok := r.byID[id]
	if !ok {
		return nil, fmt.Errorf("%s task %q, which no job has", verb, id)
	}
	if t.named == r.decision {
		return nil, fmt.Errorf("%s task %q of job %q, which it names twice", verb, id, t.job.spec.Name)
	}
	t.named = r.decision
	return t, nil
}

// want notes where a task is to go.
func (r *run) want(t *task, node string, on []int) error {
	n, ok := r.current.NodeIndex(node)
	if !ok {
		return fmt.Errorf("sends task %q of job %q to node %q, which is not in the cluster", t.ID, t.job.spec.Name, node)
	}
	t.wanted, t.to, t.toOn = r.decision, n, on
	r.puts = append(r.puts, t)
	return nil
}

func (r *run) readMove(m *place.Move) error {
	if !r.Migrate.On {
		return fmt.Errorf("moves task %q to node %q, but this run does not allow moves; set Config.Migrate", m.Task, m.To)
	}
	if t, ok := r.byID[m.Task]; ok && r.Stale > 0 && t.node < 0 && t.named == r.decision {
		// An old view shows it running, the queue waiting again after a failure:
		// what was decided of the queue holds.
		r.out.Stale++
		return nil
	}
	t, err := r.claim(m.Task, "moves")
	if err != nil {
		return err
	}
	if t.node < 0 {
		if r.Stale > 0 {
			r.mention(t.job)
			t.job.outdated = r.decision
			return nil
		}
		return fmt.Errorf("moves task %q of job %q, which does not run", m.Task, t.job.spec.Name)
	}
	r.mention(t.job)
	before := len(r.puts)
	if err := r.want(t, m.To, m.Devices); err != nil {
		return err
	}
	if t.to == t.node && slices.Equal(t.on, t.toOn) {
		r.puts = r.puts[:before]
		return nil
	}
	r.lifts = append(r.lifts, t)
	t.job.moved++
	return nil
}

// checkWhole sees to it that a gang is bound whole, at the size that is wanted.
func (r *run) checkWhole(j *job) error {
	if j.running && j.size > 0 {
		return r.checkResize(j)
	}
	if j.bound == 0 {
		return nil
	}
	tasks := j.tasks
	if j.size > 0 {
		tasks = j.sized(j.size)
	}
	bound := 0
	for _, t := range tasks {
		if t.wanted == r.decision {
			bound++
		}
	}
	if bound < len(tasks) || j.bound > bound {
		return fmt.Errorf("binds %d of %d tasks, and %d that it has not at that size; gangs are placed whole", bound, len(tasks), j.bound-bound)
	}
	return nil
}

// act does what was decided: first all that leaves, then all that comes, so
// that only the outcome must fit.
func (r *run) act() error {
	for _, t := range r.lifts {
		r.settleWork(t.job)
		r.lift(t)
	}
	for _, t := range r.puts {
		if r.room.check(t, t.to, t.toOn) != fits {
			return fmt.Errorf("job %q: task %q does not fit: %s", t.job.spec.Name, t.ID, r.room.explain(t, t.to, t.toOn))
		}
		r.put(t, t.to, t.toOn)
	}
	for _, j := range r.named {
		if err := r.conclude(j); err != nil {
			return err
		}
	}
	return nil
}

// conclude keeps a job's account of what was done to it.
func (r *run) conclude(j *job) error {
	stands := time.Duration(0)
	if j.moved > 0 {
		j.result.Moves++
		r.out.Moves++
		stands = r.Migrate.Cost
	}
	switch {
	case j.queued && j.bound > 0:
		return r.start(j)
	case j.running && j.size > 0 && j.size != j.workersNow():
		if err := r.resize(j); err != nil {
			return err
		}
		j.result.Resizes++
		r.out.Resizes++
		stands += r.Scale.Cost
	case j.moved == 0:
		return nil
	}
	r.settleWork(j)
	j.still = max(j.still, r.now) + stands
	j.replan = true
	for _, t := range j.tasks {
		r.touch(t.node)
	}
	return nil
}

// start begins a run of a job whose tasks were put.
func (r *run) start(j *job) error {
	r.queue.remove(j)
	j.queued, j.running = false, true
	r.runs++
	if j.size > 0 {
		if err := r.resize(j); err != nil {
			return err
		}
	}
	if !j.result.Started {
		j.result.Started, j.result.Start = true, r.now
	}
	j.began, j.last, j.still, j.rate, j.replan = r.now, r.now, r.now, 0, true
	r.drawFailure(j)
	return nil
}
