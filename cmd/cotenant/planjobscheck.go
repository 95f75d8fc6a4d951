package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// carryOut makes the cluster after a decision, and refuses one that cannot be:
// tasks that do not wait or run, gangs in part, devices, slots and resources
// that are not there.
func carryOut(req place.Request, d place.Decision) (*cluster.Snapshot, error) {
	sizes := map[string]int{}
	for _, z := range d.Resize {
		if _, twice := sizes[z.Group]; twice {
			return nil, fmt.Errorf("resizes job %q twice", z.Group)
		}
		sizes[z.Group] = z.Workers
	}
	tasks := map[cluster.TaskID]cluster.Running{}
	for _, g := range req.Pending {
		for _, t := range g.Tasks {
			tasks[t.ID] = cluster.Running{Task: t, Group: g.Name, Started: req.Now}
		}
	}
	wants, err := resized(req, sizes, tasks)
	if err != nil {
		return nil, err
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
		want, scaled := wants[g.Name]
		if !scaled {
			want = len(g.Tasks)
		}
		if n := bound[g.Name]; g.Gang && (n > 0 || scaled) && n != want {
			return nil, fmt.Errorf("%d of %d tasks of job %q are placed; jobs are placed whole", n, want, g.Name)
		}
		delete(wants, g.Name)
	}
	running := slices.DeleteFunc(slices.Clone(req.View.Running()), func(r cluster.Running) bool { return ends(r, sizes) })
	for _, name := range slices.Sorted(maps.Keys(wants)) {
		if bound[name] != wants[name] {
			return nil, fmt.Errorf("%d of %d new workers of job %q are placed", bound[name], wants[name], name)
		}
	}
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

// resized makes the workers that jobs are to get known as tasks that wait, and
// counts by job how many tasks must then be bound: of a job that waits all, of
// one that runs those that are new.
func resized(req place.Request, sizes map[string]int, tasks map[cluster.TaskID]cluster.Running) (wants map[string]int, err error) {
	wants = map[string]int{}
	met := map[string]bool{}
	begin := func(name string, z *cluster.Sizes) (int, error) {
		n := sizes[name]
		met[name] = true
		if z == nil || n < z.MinWorkers || n > z.MaxWorkers {
			return 0, fmt.Errorf("resizes job %q to %d workers, which its bounds do not allow", name, n)
		}
		return n, nil
	}
	join := func(name string, z *cluster.Sizes, i int, like cluster.Task) {
		like.ID = z.WorkerID(name, i)
		tasks[like.ID] = cluster.Running{Task: like, Group: name, Started: req.Now, Sizes: z}
	}
	for _, g := range req.Pending {
		if _, ok := sizes[g.Name]; !ok {
			continue
		}
		z := g.Sizes()
		n, err := begin(g.Name, z)
		if err != nil {
			return nil, err
		}
		var like cluster.Task
		for _, t := range g.Tasks {
			if t.Role == cluster.Worker {
				like = t
				delete(tasks, t.ID)
			}
		}
		wants[g.Name] = n + len(g.Tasks) - len(z.Workers)
		for i := range n {
			join(g.Name, z, i, like)
		}
	}
	workers := map[string]int{}
	for _, r := range req.View.Running() {
		if _, ok := sizes[r.Group]; ok && r.Role == cluster.Worker {
			workers[r.Group]++
		}
	}
	for _, r := range req.View.Running() {
		if workers[r.Group] == 0 || met[r.Group] || r.Role != cluster.Worker {
			continue
		}
		n, err := begin(r.Group, r.Sizes)
		if err != nil {
			return nil, err
		}
		wants[r.Group] = max(0, n-workers[r.Group])
		for i := workers[r.Group]; i < n; i++ {
			join(r.Group, r.Sizes, i, r.Task)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if !met[name] {
			return nil, fmt.Errorf("resizes job %q, which neither waits nor runs", name)
		}
	}
	return wants, nil
}

// ends reports whether a worker that runs is one of those that its job loses.
func ends(r cluster.Running, sizes map[string]int) bool {
	n, ok := sizes[r.Group]
	if !ok || r.Role != cluster.Worker || r.Sizes == nil {
		return false
	}
	for i := range n {
		if r.Sizes.WorkerID(r.Group, i) == r.ID {
			return false
		}
	}
	return true
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
