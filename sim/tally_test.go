package sim_test

import (
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/sim"
)

// tally counts what is free in a view, plainly; for tests that check the
// simulator's own count.
type tally struct {
	view    *cluster.Snapshot
	slots   []int
	memory  []int64
	devices [][]int
}

func newTally(view *cluster.Snapshot) *tally {
	y := &tally{view: view}
	for _, n := range view.Nodes() {
		slots := n.Slots
		if slots == 0 {
			slots = 1 << 30
		}
		y.slots, y.memory = append(y.slots, slots), append(y.memory, n.Capacity[cluster.Memory])
		devices := make([]int, len(n.Devices))
		for d := range devices {
			devices[d] = max(1, n.Devices[d].Slots)
		}
		y.devices = append(y.devices, devices)
	}
	for _, r := range view.Running() {
		n, _ := view.NodeIndex(r.Node)
		y.count(r.Task, n, r.On, 1)
	}
	return y
}

func (y *tally) count(t cluster.Task, n int, on []int, by int) {
	y.slots[n] -= by
	y.memory[n] -= int64(by) * t.Requests[cluster.Memory]
	for _, d := range on {
		y.devices[n][d] -= by
	}
}

// overfull reports whether anything is used beyond what there is.
func (y *tally) overfull() bool {
	for n := range y.slots {
		if y.slots[n] < 0 || y.memory[n] < 0 || slices.ContainsFunc(y.devices[n], func(free int) bool { return free < 0 }) {
			return true
		}
	}
	return false
}

// fit finds devices for a task on a node; ok is false where it does not fit.
func (y *tally) fit(t cluster.Task, n int) (on []int, ok bool) {
	if y.view.Nodes()[n].Unschedulable || y.slots[n] < 1 || y.memory[n] < t.Requests[cluster.Memory] {
		return nil, false
	}
	for d, free := range y.devices[n] {
		if free > 0 && len(on) < t.Devices {
			on = append(on, d)
		}
	}
	return on, len(on) == t.Devices
}

// chaos does whatever the rules allow, at random: binds, holds, moves, grows
// and shrinks. With zeal it never holds what fits.
type chaos struct {
	jobs            map[string]sim.Job
	zeal            bool
	migrate, resize bool
}

func (c chaos) Place(req place.Request) (place.Decision, error) {
	var d place.Decision
	y := newTally(req.View)
	workers, waits := map[string]int{}, map[string]bool{}
	for _, g := range req.Pending {
		waits[g.Name] = true
	}
	for _, r := range req.View.Running() {
		if r.Role == cluster.Worker {
			workers[r.Group]++
		}
	}
	for _, r := range req.View.Running() {
		if waits[r.Group] || !c.migrate || req.Rand.IntN(4) > 0 {
			continue
		}
		from, _ := req.View.NodeIndex(r.Node)
		to := req.Rand.IntN(len(y.slots))
		if on, ok := y.fit(r.Task, to); ok {
			y.count(r.Task, from, r.On, -1)
			y.count(r.Task, to, on, 1)
			d.Move = append(d.Move, place.Move{Task: r.ID, To: req.View.Nodes()[to].Name, Devices: on})
		}
	}
	moved := func(id cluster.TaskID) bool {
		return slices.ContainsFunc(d.Move, func(m place.Move) bool { return m.Task == id })
	}
	for _, r := range req.View.Running() {
		j := c.jobs[r.Group]
		if waits[r.Group] || !c.resize || j.MaxWorkers == 0 || r.ID != sim.WorkerID(j.Job, 0) || req.Rand.IntN(3) > 0 {
			continue
		}
		now := workers[r.Group]
		last := sim.WorkerID(j.Job, now-1)
		if req.Rand.IntN(2) == 0 && now > j.MinWorkers && !moved(last) {
			d.Resize = append(d.Resize, place.Resize{Group: r.Group, Workers: now - 1})
		} else if now < j.MaxWorkers {
			t := r.Task
			t.ID = sim.WorkerID(j.Job, now)
			for _, own := range j.Tasks {
				if own.ID == t.ID {
					t = own
				}
			}
			if b, ok := c.bind(req, y, t); ok {
				d.Bind = append(d.Bind, b)
				d.Resize = append(d.Resize, place.Resize{Group: r.Group, Workers: now + 1})
			}
		}
	}
	for _, g := range req.Pending {
		if !c.zeal && req.Rand.IntN(3) == 0 {
			continue
		}
		var bound []place.Binding
		before := y.copy()
		for _, t := range g.Tasks {
			b, ok := c.bind(req, y, t)
			if !ok {
				break
			}
			bound = append(bound, b)
		}
		if len(bound) == len(g.Tasks) {
			d.Bind = append(d.Bind, bound...)
			continue
		}
		y = before
		for _, t := range g.Tasks {
			d.Hold = append(d.Hold, place.Hold{Task: t.ID, Why: "it does not fit"})
		}
	}
	return d, nil
}

func (c chaos) bind(req place.Request, y *tally, t cluster.Task) (place.Binding, bool) {
	first := req.Rand.IntN(len(y.slots))
	for i := range y.slots {
		n := (first + i) % len(y.slots)
		if on, ok := y.fit(t, n); ok {
			y.count(t, n, on, 1)
			return place.Binding{Task: t.ID, Node: req.View.Nodes()[n].Name, Devices: on}, true
		}
	}
	return place.Binding{}, false
}

func (y *tally) copy() *tally {
	c := &tally{view: y.view, slots: slices.Clone(y.slots), memory: slices.Clone(y.memory)}
	for _, d := range y.devices {
		c.devices = append(c.devices, slices.Clone(d))
	}
	return c
}

// crowd is a truth in which every task on a node slows all others there, and
// which scales jobs by the square root of their workers.
type crowd struct{}

func (crowd) Rates(s *cluster.Snapshot, touched []cluster.TaskID) map[cluster.TaskID]float64 {
	on := map[string]int{}
	at := map[cluster.TaskID]string{}
	for _, r := range s.Running() {
		on[r.Node]++
		at[r.ID] = r.Node
	}
	rates := map[cluster.TaskID]float64{}
	for _, id := range touched {
		rates[id] = 3 / (2 + float64(on[at[id]]))
	}
	return rates
}
