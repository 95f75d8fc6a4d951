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
	changes, lifts := r.puts[:0:0], r.lifts
	for _, t := range r.puts {
		if t.job.running {
			changes = append(changes, t)
		}
	}
	puts, named := r.puts, r.named
	var running []*job
	for _, j := range named {
		if j.running {
			running = append(running, j)
		}
	}
	if r.fit(lifts, changes) {
		r.puts, r.named = changes, running
		if err := r.act(); err != nil {
			return err
		}
	} else {
		r.out.Stale += len(running)
	}
	r.lifts = nil
	for _, j := range named {
		if !j.queued || j.bound == 0 {
			continue
		}
		r.puts, r.named = r.puts[:0:0], []*job{j}
		for _, t := range puts {
			if t.job == j {
				r.puts = append(r.puts, t)
			}
		}
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

// checkView sees to it that the decision fitted the view it was made on.
func (r *run) checkView(view *cluster.Snapshot) error {
	r.seen.reset(view.Nodes())
	leaves := map[*task]bool{}
	for _, t := range r.lifts {
		leaves[t] = true
	}
	for i := range view.Running() {
		run := &view.Running()[i]
		if t := r.byID[run.ID]; !leaves[t] {
			n, _ := view.NodeIndex(run.Node)
			r.seen.take(t, n, run.On)
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
