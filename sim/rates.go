package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/cotenant/cotenant/cluster"
)

// put makes a task run on a node; settle shows it.
func (r *run) put(t *task, node int, on []int) {
	if len(on) > cap(r.ints)-len(r.ints) {
		r.ints = make([]int, 0, max(1024, len(on)))
	}
	from := len(r.ints)
	r.ints = append(r.ints, on...)
	t.node, t.on = node, r.ints[from:len(r.ints):len(r.ints)]
	r.room.take(t, node, t.on)
	r.on[node] = append(r.on[node], t)
	r.entering = append(r.entering, t)
	r.touch(node)
}

// lift takes a task off its node; settle shows it.
func (r *run) lift(t *task) {
	r.room.give(t, t.node, t.on)
	there := r.on[t.node]
	for i, o := range there {
		if o == t {
			r.on[t.node] = append(there[:i], there[i+1:]...)
			break
		}
	}
	r.touch(t.node)
	t.leaving = true
	r.leaving++
	t.node, t.on, t.rate = -1, nil, 0
}

// touch marks a node as one whose tasks need new rates.
func (r *run) touch(node int) {
	if !r.isDirty[node] {
		r.isDirty[node] = true
		r.dirty = append(r.dirty, node)
	}
}

// settle makes the snapshot after what was lifted and put.
func (r *run) settle() error {
	if r.leaving == 0 && len(r.entering) == 0 {
		return nil
	}
	r.gone, r.added = r.gone[:0], r.added[:0]
	if r.leaving > 0 {
		stay := r.order[:0]
		for i, t := range r.order {
			if t.leaving {
				t.leaving = false
				r.gone = append(r.gone, i)
			} else {
				stay = append(stay, t)
			}
		}
		r.order = stay
	}
	for _, t := range r.entering {
		r.added = append(r.added, cluster.Running{
			Task: t.Task, Node: r.room.nodes[t.node].Name, On: t.on, Movable: r.Migrate.On, Group: t.job.spec.Name, Started: t.job.began, Sizes: t.job.sizes,
		})
	}
	r.order = append(r.order, r.entering...)
	r.leaving, r.entering = 0, r.entering[:0]
	next, err := r.chain.Next(r.gone, r.added)
	if err != nil {
		return err
	}
	r.show(next)
	return nil
}

// show makes a snapshot the current one, and keeps it while a stale view may
// need it.
func (r *run) show(s *cluster.Snapshot) {
	r.current = s
	if r.Stale == 0 {
		return
	}
	if last := &r.past[len(r.past)-1]; last.from == r.now {
		last.view = s
	} else {
		r.past = append(r.past, view{r.now, s})
	}
}

// view is a snapshot and since when it is the current one.
type view struct {
	from time.Duration
	view *cluster.Snapshot
}

// visible is the view that the policy has now: the last that is as old as
// Stale, or the first of all.
func (r *run) visible() *cluster.Snapshot {
	if r.Stale == 0 {
		return r.current
	}
	for len(r.past) > 1 && r.past[1].from <= r.now-r.Stale {
		r.past = r.past[1:]
	}
	return r.past[0].view
}

// viewChanges is when the policy's view will change with no event; never where
// it shows the present.
func (r *run) viewChanges() time.Duration {
	for i := range r.past {
		if at := r.past[i].from + r.Stale; i > 0 && at > r.now {
			return at
		}
	}
	return never
}

// viewChanged reports whether the policy's view changes just now.
func (r *run) viewChanged() bool {
	if r.Stale == 0 {
		return false
	}
	for i := range r.past {
		if i > 0 && r.past[i].from+r.Stale == r.now {
			return true
		}
	}
	return false
}

// setRates asks the truth about what was touched, and gives jobs whose pace
// changed a new time to end.
func (r *run) setRates() error {
	if len(r.dirty) == 0 {
		return nil
	}
	r.stamp++
	r.touched, r.marked = r.touched[:0], r.marked[:0]
	for _, node := range r.dirty {
		r.isDirty[node] = false
		for _, t := range r.on[node] {
			if t.job.marked != r.stamp {
				t.job.marked = r.stamp
				r.marked = append(r.marked, t.job)
				for _, o := range t.job.tasks {
					r.touched = append(r.touched, o.ID)
				}
			}
		}
	}
	r.dirty = r.dirty[:0]
	if len(r.order) == 0 {
		return nil
	}
	rates := r.Truth.Rates(r.current, r.touched)
	for _, j := range r.marked {
		for _, t := range j.tasks {
			rate, ok := rates[t.ID]
			if !ok {
				return fmt.Errorf("truth (%T) gives no progress of task %q of job %q on node %q, which it was asked for",
					r.Truth, t.ID, j.spec.Name, r.room.nodes[t.node].Name)
			}
			if err := r.setRate(t, rate); err != nil {
				return err
			}
		}
	}
	if len(rates) > len(r.touched) {
		for _, t := range r.order {
			rate, ok := rates[t.ID]
			if !ok || t.job.marked == r.stamp && rate == t.rate {
				continue
			}
			if err := r.setRate(t, rate); err != nil {
				return err
			}
			if t.job.marked != r.stamp {
				t.job.marked = r.stamp
				r.marked = append(r.marked, t.job)
			}
		}
	}
	for _, j := range r.marked {
		r.setPace(j)
	}
	return nil
}

func (r *run) setRate(t *task, rate float64) error {
	if !(rate >= 0) || math.IsInf(rate, 1) {
		err := fmt.Errorf("truth (%T) gives task %q of job %q the progress %g; it must be finite and at least 0",
			r.Truth, t.ID, t.job.spec.Name, rate)
		if truth, ok := r.Truth.(interface{ Err() error }); ok && truth.Err() != nil {
			err = fmt.Errorf("%w: %w", err, truth.Err())
		}
		return err
	}
	t.rate = rate
	return nil
}

// setPace settles what a job did at its old pace and plans its end at the new.
func (r *run) setPace(j *job) {
	rate := j.slowest() * j.scale
	if rate == j.rate && !j.replan {
		return
	}
	r.settleWork(j)
	j.rate, j.replan = rate, false
	r.plan(j)
}

// settleWork counts what a job did since it was last settled.
func (r *run) settleWork(j *job) {
	if from := max(j.last, j.still); r.now > from {
		j.remaining -= j.rate * (r.now - from).Seconds()
	}
	j.last = r.now
}

// plan sets when a job's run ends. Rounding up keeps it from ending before its
// work is done.
func (r *run) plan(j *job) {
	left := max(0, j.remaining-max(0, j.failAt))
	seconds := left / j.rate
	if j.rate == 0 || seconds > horizon.Seconds() {
		r.due.drop(j.index)
		return
	}
	r.due.set(j.index, max(r.now, j.still)+time.Duration(math.Ceil(seconds*1e9)))
}

// slowest is the least progress over the tasks that set the job's pace.
func (j *job) slowest() float64 {
	least := j.pace[0].rate
	for _, t := range j.pace[1:] {
		least = min(least, t.rate)
	}
	return least
}

// setPace finds the tasks that set the job's pace: its workers, or all tasks
// where none has that role.
func (j *job) setPace() {
	workers := j.workersNow()
	if workers == 0 || workers == len(j.tasks) {
		j.pace = j.tasks
		return
	}
	j.pace = make([]*task, 0, workers)
	for _, t := range j.tasks {
		if t.Role == cluster.Worker {
			j.pace = append(j.pace, t)
		}
	}
}
