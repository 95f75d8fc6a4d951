package services

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/bound"
)

// decideAll asks the policy about all that waits. A policy that says that all
// of it cannot be placed is asked about one group after the other.
func (r *run) decideAll() error {
	r.changed = false
	groups := slices.Clone(r.waiting)
	err := r.decide(groups)
	if errors.Is(err, bound.ErrInfeasible) {
		err = nil
		for i := 0; i < len(groups) && len(groups) > 1 && err == nil; i++ {
			if err = r.decide(groups[i : i+1]); errors.Is(err, bound.ErrInfeasible) {
				err = nil
			}
		}
	}
	for _, w := range r.waiting {
		for _, t := range w.tasks {
			if !t.held {
				t.held = true
				r.tally.held(r.now >= r.Warmup)
			}
		}
	}
	return err
}

// decide asks the policy about some groups, checks what it says, and does it.
func (r *run) decide(groups []*wait) error {
	if err := r.settle(); err != nil {
		return err
	}
	req := r.request(groups)
	d, err := r.Policy.Place(req)
	if err != nil {
		return err
	}
	r.out.Decisions++
	if err := r.check(req.View, groups, &d); err != nil {
		return err
	}
	r.dequeue()
	if r.Decided != nil {
		r.Decided(req, d)
	}
	return nil
}

// dequeue takes what runs now out of the queue.
func (r *run) dequeue() {
	if len(r.puts) == 0 {
		return
	}
	r.waiting = slices.DeleteFunc(r.waiting, func(w *wait) bool {
		w.tasks = slices.DeleteFunc(w.tasks, func(t *task) bool { return t.node >= 0 })
		return len(w.tasks) == 0
	})
}

// check finds what the decision names, each once, and then puts it all on the
// board: only the outcome counts, not the order.
func (r *run) check(view *cluster.Snapshot, groups []*wait, d *place.Decision) error {
	if len(d.Resize) > 0 {
		return fmt.Errorf("it resizes %q; services are scaled by those who own them", d.Resize[0].Group)
	}
	if len(d.Move) > 0 && !r.Migrate.On {
		return fmt.Errorf("it moves task %q; Config.Migrate does not allow it", d.Move[0].Task)
	}
	asked := r.decision + 1 // marks the tasks that may be named
	r.decision += 2
	named := r.decision
	for _, w := range groups {
		for _, t := range w.tasks {
			t.mark, t.goal = asked, -1
		}
	}
	r.puts, r.lifts = r.puts[:0], r.lifts[:0]
	claim := func(id cluster.TaskID) (*task, error) {
		t := r.byID[id]
		switch {
		case t == nil || t.mark < asked:
			return nil, fmt.Errorf("it names task %q, which is not pending", id)
		case t.mark == named:
			return nil, fmt.Errorf("it names task %q twice", id)
		}
		t.mark = named
		return t, nil
	}
	for i := range d.Bind {
		b := &d.Bind[i]
		t, err := claim(b.Task)
		if err != nil {
			return err
		}
		if t.goal, err = r.find(view, b.Task, b.Node, len(b.Devices)); err != nil {
			return err
		}
		r.puts = append(r.puts, t)
	}
	for i := range d.Hold {
		if _, err := claim(d.Hold[i].Task); err != nil {
			return err
		}
	}
	for _, w := range groups {
		bound := 0
		for _, t := range w.tasks {
			if t.goal >= 0 {
				bound++
			}
		}
		if a := &r.Arrivals[w.group]; a.Gang && bound > 0 && bound < len(w.tasks) {
			return fmt.Errorf("it binds %d of %d tasks of gang %q", bound, len(w.tasks), a.Name)
		}
	}
	for i := range d.Move {
		m := &d.Move[i]
		t := r.byID[m.Task]
		if t == nil || t.node < 0 || t.mark == named {
			return fmt.Errorf("it moves task %q, which does not run, or twice", m.Task)
		}
		t.mark = named
		n, err := r.find(view, m.Task, m.To, len(m.Devices))
		if err != nil {
			return err
		}
		if n != t.node {
			t.goal = n
			r.lifts = append(r.lifts, t)
		}
	}
	return r.putAll()
}

func (r *run) find(view *cluster.Snapshot, id cluster.TaskID, node string, devices int) (int32, error) {
	n, ok := view.NodeIndex(node)
	switch {
	case !ok:
		return 0, fmt.Errorf("it puts task %q on node %q, which is not in the cluster", id, node)
	case devices > 0:
		return 0, fmt.Errorf("it gives task %q devices, of which services have none", id)
	case r.down[n]:
		return 0, fmt.Errorf("it puts task %q on node %q, which has failed", id, node)
	}
	return int32(n), nil
}

// putAll carries out the bindings and moves and checks that every constraint
// holds. A spread that departures made too uneven must not become more so.
func (r *run) putAll() error {
	for _, t := range r.puts {
		r.skewOf[t.kind] = r.board.skew[t.kind]
	}
	for _, t := range r.lifts {
		r.skewOf[t.kind] = r.board.skew[t.kind]
	}
	for _, t := range r.lifts {
		r.lift(t)
	}
	moves := r.lifts
	for i := range len(r.puts) + len(moves) {
		var t *task
		if i < len(moves) {
			t = moves[i]
		} else {
			t = r.puts[i-len(moves)]
		}
		k, n := int(t.kind), int(t.goal)
		if reason := r.board.Check(k, n); reason != cluster.Fits && reason != cluster.Skewed {
			return fmt.Errorf("it breaks a constraint: task %q: %s", t.ID, r.board.Explain(k, n))
		}
		waited, counts := r.now-t.since, t.since >= r.Warmup
		r.put(t, t.goal)
		if i < len(moves) {
			r.out.Moved++
			if r.Migrate.Cost > 0 {
				t.moving = true
				r.board.still(k, n, 1)
				r.still = append(r.still, end{r.now + r.Migrate.Cost, t})
			}
			continue
		}
		r.out.Placed++
		r.kept--
		t.began = r.now
		r.tally.placed(waited, counts)
	}
	for _, t := range r.puts {
		if err := r.skewKept(t); err != nil {
			return err
		}
	}
	for _, t := range moves {
		if err := r.skewKept(t); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) skewKept(t *task) error {
	if s := r.board.skew[t.kind]; s > r.skewOf[t.kind] {
		return fmt.Errorf("it breaks a constraint: the spread of %s exceeds its max_skew by %d", t.Workload, s)
	}
	return nil
}
