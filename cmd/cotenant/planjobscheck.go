package main

import (
	"fmt"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// carryOut makes the cluster after a decision, and refuses one that cannot be:
// tasks that do not wait or run, gangs in part, devices, slots and resources
// that are not there.
func carryOut(req place.Request, d place.Decision) (*cluster.Snapshot, error) {
	if len(d.Resize) > 0 {
		return nil, fmt.Errorf("resizes job %q; a plan does not scale jobs", d.Resize[0].Group)
	}
	tasks := map[cluster.TaskID]cluster.Running{}
	for _, g := range req.Pending {
		for _, t := range g.Tasks {
			tasks[t.ID] = cluster.Running{Task: t, Group: g.Name, Started: req.Now}
		}
	}
	decided := map[cluster.TaskID]bool{}
	once := func(id cluster.TaskID) error {
		switch {
		case tasks[id].ID == "":
			return fmt.Errorf("task %q does not wait", id)
		case decided[id]:
			return fmt.Errorf("task %q is decided twice", id)
		}
		decided[id] = true
		return nil
	}
	var added []cluster.Running
	bound := map[string]int{}
	for _, b := range d.Bind {
		if err := once(b.Task); err != nil {
			return nil, err
		}
		r := tasks[b.Task]
		r.Node, r.On = b.Node, b.Devices
		bound[r.Group]++
		added = append(added, r)
	}
	for _, h := range d.Hold {
		if err := once(h.Task); err != nil {
			return nil, err
		}
	}
	for _, g := range req.Pending {
		if n := bound[g.Name]; g.Gang && n > 0 && n < len(g.Tasks) {
			return nil, fmt.Errorf("%d of %d tasks of job %q are placed; jobs are placed whole", n, len(g.Tasks), g.Name)
		}
	}
	running := slices.Clone(req.View.Running())
	for _, m := range d.Move {
		i := slices.IndexFunc(running, func(r cluster.Running) bool { return r.ID == m.Task })
		if i < 0 {
			return nil, fmt.Errorf("moves task %q, which does not run", m.Task)
		}
		running[i].Node, running[i].On = m.To, m.Devices
	}
	after, err := cluster.NewSnapshot(cluster.Spec{
		Nodes: req.View.Nodes(), Running: append(running, added...), Workloads: req.View.Workloads(), Constraints: req.View.Constraints(),
	})
	if err != nil {
		return nil, err
	}
	changed := map[string]bool{}
	for _, b := range d.Bind {
		changed[b.Node] = true
	}
	for _, m := range d.Move {
		changed[m.To] = true
	}
	return after, checkRoomOf(after, changed)
}

// checkRoomOf holds what runs on some nodes against what they have.
func checkRoomOf(s *cluster.Snapshot, nodes map[string]bool) error {
	for _, n := range s.Nodes() {
		if !nodes[n.Name] {
			continue
		}
		used, on, tasks := cluster.Resources{}, make([]int, len(n.Devices)), 0
		for _, r := range s.Running() {
			if r.Node != n.Name {
				continue
			}
			tasks++
			requests := r.Requests
			if w, ok := s.Workload(r.Workload); requests == nil && ok {
				requests = w.Requests
			}
			for name, amount := range requests {
				used[name] += amount
			}
			if len(r.On) != r.Devices {
				return fmt.Errorf("task %q needs %d devices and is on %d of node %q", r.ID, r.Devices, len(r.On), n.Name)
			}
			for i, d := range r.On {
				if d < 0 || d >= len(n.Devices) || slices.Contains(r.On[:i], d) {
					return fmt.Errorf("task %q is on device %d of node %q, which has %d", r.ID, d, n.Name, len(n.Devices))
				}
				on[d]++
			}
		}
		if n.Slots > 0 && tasks > n.Slots {
			return fmt.Errorf("%d tasks are on node %q of %d slots", tasks, n.Name, n.Slots)
		}
		for d, k := range on {
			if most := max(1, n.Devices[d].Slots); k > most {
				return fmt.Errorf("%d tasks share device %d of node %q, which takes %d", k, d, n.Name, most)
			}
		}
		for _, name := range used.Names() {
			if used[name] > n.Capacity[name] && used[name] > 0 {
				return fmt.Errorf("tasks on node %q request %d of %s; it has %d", n.Name, used[name], name, n.Capacity[name])
			}
		}
	}
	return nil
}
