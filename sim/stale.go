package sim

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
)

// actStale does what was decided on an old view as far as it still fits: the
// moves and resizes all or none, then gang by gang. What did not fit the view
// either is the policy's error.
func (r *run) actStale(view *cluster.Snapshot) error {
	if err := r.checkView(view); err != nil {
		return err
	}
	current := func(t *task) bool { return t.job.outdated != r.decision }
	lifts, puts := keep(r.lifts, current), keep(r.puts, current)
	var running, queued []*job
	for _, j := range r.named {
		switch {
		case j.outdated == r.decision:
			r.out.Stale++
		case j.running:
			running = append(running, j)
		case j.bound > 0:
			queued = append(queued, j)
		}
	}
	changes := keep(puts, func(t *task) bool { return t.job.running })
	if r.fit(lifts, changes) {
		r.lifts, r.puts, r.named = lifts, changes, running
		if err := r.act(); err != nil {
			return err
		}
	} else {
		r.out.Stale += len(running)
	}
	r.lifts = nil
	for _, j := range queued {
		r.puts, r.named = keep(puts, func(t *task) bool { return t.job == j }), []*job{j}
		if !r.fit(nil, r.puts) {
			r.out.Stale++
			continue
		}
		if err := r.act(); err != nil {
			return err
		}
	}
	return nil
}

func keep(tasks []*task, wanted func(*task) bool) []*task {
	var out []*task
	for _, t := range tasks {
		if wanted(t) {
			out = append(out, t)
		}
	}
	return out
}

// checkView sees to it that the decision fitted the view it was made on.
func (r *run) checkView(view *cluster.Snapshot) error {
	r.seen.reset(view.Nodes())
	for i := range view.Running() {
		there := &view.Running()[i]
		t := r.byID[there.ID]
		ends := t.job.named == r.decision && t.job.size > 0 && t.nth >= t.job.size
		if moved := t.named == r.decision; !moved && !ends {
			n, _ := view.NodeIndex(there.Node)
			r.seen.take(t, n, there.On)
		}
	}
	for _, t := range r.puts {
		if r.seen.check(t, t.to, t.toOn) != fits {
			return fmt.Errorf("job %q: task %q does not fit the view that the policy was given: %s",
				t.job.spec.Name, t.ID, r.seen.explain(t, t.to, t.toOn))
		}
		r.seen.take(t, t.to, t.toOn)
	}
	return nil
}

// fit tries whether the tasks fit now, once others have left.
func (r *run) fit(lifts, puts []*task) bool {
	for _, t := range lifts {
		r.room.give(t, t.node, t.on)
	}
	ok, taken := true, 0
	for _, t := range puts {
		if r.room.check(t, t.to, t.toOn) != fits {
			ok = false
			break
		}
		r.room.take(t, t.to, t.toOn)
		taken++
	}
	for _, t := range puts[:taken] {
		r.room.give(t, t.to, t.toOn)
	}
	for _, t := range lifts {
		r.room.take(t, t.node, t.on)
	}
	return ok
}
