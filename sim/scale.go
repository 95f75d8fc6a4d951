package sim

import (
	"fmt"
	"math"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// addSpares makes the workers that a job may get by scaling.
func (r *run) addSpares(j *job, declared map[string]cluster.Resources) error {
	if !r.Scale.On || j.spec.MaxWorkers == 0 {
		return nil
	}
	for _, t := range j.own {
		if t.Role == cluster.Worker {
			j.all = append(j.all, t)
		}
	}
	for i := len(j.all); i < j.spec.MaxWorkers; i++ {
		t := j.all[0].Task
		t.ID = WorkerID(j.spec.Job, i)
		spare := &task{}
		if err := r.addTask(spare, j, &t, declared); err != nil {
			return err
		}
		j.all = append(j.all, spare)
	}
	for i, t := range j.all {
		t.nth = i
	}
	j.sizes = j.spec.Group().Sizes()
	return nil
}

// sized lists the job's tasks when it has the given number of workers.
func (j *job) sized(workers int) []*task {
	var out []*task
	for _, t := range j.own {
		if t.Role != cluster.Worker {
			out = append(out, t)
		}
	}
	return append(out, j.all[:workers]...)
}

func (j *job) workersNow() int {
	n := 0
	for _, t := range j.tasks {
		if t.Role == cluster.Worker {
			n++
		}
	}
	return n
}

func (r *run) readResize(z place.Resize) error {
	if !r.Scale.On {
		return fmt.Errorf("resizes job %q to %d workers, but this run does not allow it; set Config.Scale", z.Group, z.Workers)
	}
	j, ok := r.byName[z.Group]
	switch {
	case !ok:
		return fmt.Errorf("resizes job %q, which does not exist", z.Group)
	case j.all == nil:
		return fmt.Errorf("resizes job %q, which does not scale (max_workers is 0)", z.Group)
	case z.Workers < j.spec.MinWorkers || z.Workers > j.spec.MaxWorkers:
		return fmt.Errorf("resizes job %q to %d workers; it takes %d to %d", z.Group, z.Workers, j.spec.MinWorkers, j.spec.MaxWorkers)
	case j.named == r.decision:
		return fmt.Errorf("resizes job %q twice", z.Group)
	case !j.running && !r.offered(j):
		if r.Stale > 0 {
			r.mention(j)
			j.size, j.outdated = z.Workers, r.decision
			return nil
		}
		return fmt.Errorf("resizes job %q, which neither runs nor is pending", z.Group)
	}
	r.mention(j)
	j.size = z.Workers
	return nil
}

// checkResize sees to it that a running job gets a node for each new worker
// and for nothing else, and notes the workers that leave.
func (r *run) checkResize(j *job) error {
	now := j.workersNow()
	bound := 0
	for i := now; i < j.size; i++ {
		if j.all[i].wanted == r.decision {
			bound++
		}
	}
	if grows := max(0, j.size-now); bound < grows || j.bound > bound {
		return fmt.Errorf("grows from %d to %d workers with %d of %d new ones bound, and %d others; bind each new worker (WorkerID)",
			now, j.size, bound, grows, j.bound-bound)
	}
	for i := j.size; i < now; i++ {
		if j.all[i].wanted == r.decision {
			return fmt.Errorf("moves task %q, which ends as the job shrinks to %d workers", j.all[i].ID, j.size)
		}
		r.lifts = append(r.lifts, j.all[i])
	}
	return nil
}

// resize gives a job the number of workers that was decided, and its speed at
// that size.
func (r *run) resize(j *job) error {
	r.settleWork(j)
	j.tasks = j.sized(j.size)
	j.setPace()
	j.scale = r.scaler.Scale(j.result.Workload, j.workers, j.size)
	if !(j.scale > 0) || math.IsInf(j.scale, 1) {
		return fmt.Errorf("truth (%T) scales workload %s from %d to %d workers by %g; it must be finite and more than 0",
			r.Truth, j.result.Workload, j.workers, j.size, j.scale)
	}
	return nil
}

// unsize gives a job that goes back to the queue its own tasks again.
func (j *job) unsize() {
	if j.all != nil {
		j.tasks, j.scale = j.own, 1
		j.setPace()
	}
}
