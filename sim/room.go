package sim

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
)

// room counts what is free on each node and device.
type room struct {
	nodes   []cluster.Node
	dims    []string
	free    []int64   // [node*len(dims)+dim]
	slots   []int     // by node
	devices [][]int32 // by node and device: tasks that it still takes
	closed  []bool    // by node: takes no new tasks
}

// dimensions names the resources that some node has or some task asks for.
func dimensions(nodes []cluster.Node, jobs []*job) []string {
	names := map[string]bool{}
	for i := range nodes {
		for _, r := range nodes[i].Capacity.Names() {
			names[r] = true
		}
	}
	for _, j := range jobs {
		for _, t := range j.tasks {
			for r, amount := range t.requests {
				if amount != 0 {
					names[r] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func newRoom(nodes []cluster.Node, dims []string) *room {
	m := &room{
		dims: dims, free: make([]int64, len(nodes)*len(dims)), slots: make([]int, len(nodes)),
		devices: make([][]int32, len(nodes)), closed: make([]bool, len(nodes)),
	}
	for i := range nodes {
		m.devices[i] = make([]int32, len(nodes[i].Devices))
	}
	m.reset(nodes)
	return m
}

// reset empties the nodes; they are those of newRoom, but for what is closed.
func (m *room) reset(nodes []cluster.Node) {
	m.nodes = nodes
	for i := range nodes {
		n := &nodes[i]
		for d, name := range m.dims {
			m.free[i*len(m.dims)+d] = n.Capacity[name]
		}
		m.slots[i] = n.Slots
		if n.Slots == 0 {
			m.slots[i] = math.MaxInt
		}
		for d := range n.Devices {
			m.devices[i][d] = int32(max(1, n.Devices[d].Slots))
		}
		m.close(i)
	}
}

// close settles whether a node takes new tasks.
func (m *room) close(node int) {
	n := &m.nodes[node]
	m.closed[node] = n.Unschedulable || slices.ContainsFunc(n.Taints, func(t cluster.Taint) bool {
		return t.Effect != cluster.PreferNoSchedule
	})
}

// refusal is why a task does not fit.
type refusal int

const (
	fits refusal = iota
	isClosed
	wrongDevices
	noSuchDevice
	sameDevice
	deviceFull
	noSlot
	noResource
)

func (m *room) check(t *task, node int, on []int) refusal {
	if m.closed[node] {
		return isClosed
	}
	if len(on) != t.Devices {
		return wrongDevices
	}
	for i, d := range on {
		switch {
		case d < 0 || d >= len(m.devices[node]):
			return noSuchDevice
		case slices.Contains(on[:i], d):
			return sameDevice
		case m.devices[node][d] < 1:
			return deviceFull
		}
	}
	if m.slots[node] < 1 {
		return noSlot
	}
	for d, n := range t.need {
		if n > m.free[node*len(m.dims)+d] {
			return noResource
		}
	}
	return fits
}

func (m *room) explain(t *task, node int, on []int) string {
	n := &m.nodes[node]
	switch m.check(t, node, on) {
	case isClosed:
		return fmt.Sprintf("node %q takes no new tasks", n.Name)
	case wrongDevices:
		return fmt.Sprintf("node %q: devices %v, but the task asks for %d", n.Name, on, t.Devices)
	case noSuchDevice:
		return fmt.Sprintf("node %q: devices %v, but it has %d, counted from 0", n.Name, on, len(n.Devices))
	case sameDevice:
		return fmt.Sprintf("node %q: devices %v name one twice", n.Name, on)
	case deviceFull:
		for _, d := range on {
			if m.devices[node][d] < 1 {
				return fmt.Sprintf("node %q: device %d has no free slot (all %d are taken)", n.Name, d, max(1, n.Devices[d].Slots))
			}
		}
	case noSlot:
		return fmt.Sprintf("node %q has no free slot (all %d are taken)", n.Name, n.Slots)
	case noResource:
		for d, need := range t.need {
			if free := m.free[node*len(m.dims)+d]; need > free {
				return fmt.Sprintf("node %q has %d of %s free, the task asks for %d", n.Name, free, m.dims[d], need)
			}
		}
	}
	return ""
}

func (m *room) take(t *task, node int, on []int) { m.count(t, node, on, 1) }

func (m *room) give(t *task, node int, on []int) { m.count(t, node, on, -1) }

func (m *room) count(t *task, node int, on []int, by int) {
	if m.slots[node] != math.MaxInt {
		m.slots[node] -= by
	}
	for _, d := range on {
		m.devices[node][d] -= int32(by)
	}
	for d, n := range t.need {
		m.free[node*len(m.dims)+d] -= n * int64(by)
	}
}

// impossible says why a gang cannot fit even the empty cluster; "" where it may.
// It refuses only what no placement can do: a kind of task of which the nodes,
// each for itself, take fewer than there are, or more in all than there is.
func (m *room) impossible(tasks []*task) string {
	if len(tasks) == 1 && m.takes(tasks[0]) {
		return ""
	}
	total := make([]int64, len(m.dims)+1)
	done := make([]bool, len(tasks))
	for i, t := range tasks {
		for d, n := range t.need {
			total[d] += n
		}
		total[len(m.dims)] += int64(t.Devices)
		if done[i] {
			continue
		}
		alike := 0
		for k := i; k < len(tasks); k++ {
			if o := tasks[k]; o.Devices == t.Devices && slices.Equal(o.need, t.need) {
				done[k] = true
				alike++
			}
		}
		fit := 0
		for n := range m.nodes {
			fit += m.most(t, n, alike)
			if fit >= alike {
				break
			}
		}
		if fit < alike {
			return fmt.Sprintf("the empty cluster takes %d of its %d tasks like %q", fit, alike, t.ID)
		}
	}
	has := make([]int64, len(total))
	for n := range m.nodes {
		if m.closed[n] {
			continue
		}
		for d := range m.dims {
			has[d] += m.free[n*len(m.dims)+d]
		}
		for _, slots := range m.devices[n] {
			has[len(m.dims)] += int64(slots)
		}
	}
	for d, n := range total {
		if n > has[d] {
			name := "device slots"
			if d < len(m.dims) {
				name = m.dims[d]
			}
			return fmt.Sprintf("it asks for %d %s, the empty cluster has %d", n, name, has[d])
		}
	}
	return ""
}

// takes reports whether some node takes the task.
func (m *room) takes(t *task) bool {
	for n := range m.nodes {
		if m.most(t, n, 1) == 1 {
			return true
		}
	}
	return false
}

// most is how many tasks like t the node takes, at most limit.
func (m *room) most(t *task, node, limit int) int {
	if m.closed[node] {
		return 0
	}
	fit := min(limit, m.slots[node])
	if t.Devices > 0 {
		// k tasks fit where every device is used at most k times and the slots are
		// enough: fill them in turn.
		k := 0
		for k < fit {
			slots := 0
			for _, s := range m.devices[node] {
				slots += min(int(s), k+1)
			}
			if slots < (k+1)*t.Devices {
				break
			}
			k++
		}
		fit = k
	}
	for d, need := range t.need {
		if need > 0 {
			fit = min(fit, int(m.free[node*len(m.dims)+d]/need))
		}
	}
	return fit
}
