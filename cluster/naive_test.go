package cluster_test

import (
	"github.com/cotenant/cotenant/cluster"
)

// naive answers as a Placement does, each time from scratch and by the words
// of the documentation.
type naive struct {
	spec   cluster.Spec
	placed []spot // running tasks first
}

type spot struct {
	task cluster.Task
	node int
}

func newNaive(spec cluster.Spec) *naive {
	n := &naive{spec: spec}
	for _, r := range spec.Running {
		for i := range spec.Nodes {
			if spec.Nodes[i].Name == r.Node {
				n.placed = append(n.placed, spot{r.Task, i})
			}
		}
	}
	return n
}

func (v *naive) requests(t cluster.Task) cluster.Resources {
	if t.Requests != nil {
		return t.Requests
	}
	for _, w := range v.spec.Workloads {
		if w.Name == t.Workload {
			return w.Requests
		}
	}
	return nil
}

func (v *naive) on(node int) []cluster.Task {
	var tasks []cluster.Task
	for _, s := range v.placed {
		if s.node == node {
			tasks = append(tasks, s.task)
		}
	}
	return tasks
}

func (v *naive) count(workload string, where func(node int) bool) int {
	n := 0
	for _, s := range v.placed {
		if s.task.Workload == workload && where(s.node) {
			n++
		}
	}
	return n
}

// free is what a node has left of a resource, or of devices.
func (v *naive) free(node int, resource string) int64 {
	n := v.spec.Nodes[node]
	free := n.Capacity[resource]
	if resource == "devices" {
		for _, d := range n.Devices {
			free += int64(max(1, d.Slots))
		}
	}
	for _, t := range v.on(node) {
		free -= v.asks(t, resource)
	}
	return free
}

func (v *naive) asks(t cluster.Task, resource string) int64 {
	if resource == "devices" {
		return int64(t.Devices)
	}
	return v.requests(t)[resource]
}

func (v *naive) selected(workload string, node int) bool {
	for k, want := range v.spec.Constraints.NodeSelector[workload] {
		if v.spec.Nodes[node].Labels[k] != want {
			return false
		}
	}
	return true
}

func (v *naive) tolerated(workload string, taint cluster.Taint) bool {
	if taint.Effect == cluster.PreferNoSchedule {
		return true
	}
	for _, t := range v.spec.Constraints.Tolerations[workload] {
		effect := t.Effect == "" || t.Effect == taint.Effect
		key := t.Key == "" && t.Exists || t.Key == taint.Key && (t.Exists || t.Value == taint.Value)
		if effect && key {
			return true
		}
	}
	return false
}

func (v *naive) domain(node int, key string) string {
	if l := v.spec.Nodes[node].Labels[key]; l != "" {
		return l
	}
	if key == cluster.HostKey {
		return v.spec.Nodes[node].Name
	}
	return ""
}

// spread counts a rule's workload by domain, over the nodes that it may use.
func (v *naive) spread(r cluster.Spread) map[string]int {
	counts := map[string]int{}
	for n := range v.spec.Nodes {
		if d := v.domain(n, r.Key); d != "" && v.selected(r.Workload, n) {
			counts[d] += v.count(r.Workload, func(node int) bool { return node == n })
		}
	}
	return counts
}

func lowest(counts map[string]int) int {
	least := int(^uint(0) >> 1)
	for _, n := range counts {
		least = min(least, n)
	}
	return least
}

// check is the first of all reasons against the task, in the order in which
// Check looks for them.
func (v *naive) check(t cluster.Task, node int) cluster.Reason {
	n, c := v.spec.Nodes[node], v.spec.Constraints
	against := map[cluster.Reason]bool{
		cluster.Cordoned:    n.Unschedulable,
		cluster.NotSelected: !v.selected(t.Workload, node),
		cluster.NoSlot:      n.Slots > 0 && len(v.on(node)) >= n.Slots,
	}
	for _, taint := range n.Taints {
		if !v.tolerated(t.Workload, taint) {
			against[cluster.Tainted] = true
		}
	}
	for _, resource := range []string{cluster.CPU, cluster.Memory, "devices"} {
		if ask := v.asks(t, resource); ask > 0 && ask > v.free(node, resource) {
			against[cluster.NoResource] = true
		}
	}
	here := func(other int) bool { return other == node }
	if limit, ok := c.MaxPerNode[t.Workload]; ok && v.count(t.Workload, here) >= limit {
		against[cluster.NodeMax] = true
	}
	for _, a := range c.AntiAffinity {
		key := a.Key
		if key == "" {
			key = cluster.HostKey
		}
		domain := v.domain(node, key)
		inDomain := func(other int) bool { return domain != "" && v.domain(other, key) == domain }
		if a.A == t.Workload && v.count(a.B, inDomain) > 0 || a.B == t.Workload && v.count(a.A, inDomain) > 0 {
			against[cluster.Repelled] = true
		}
	}
	for _, r := range c.Spread {
		if r.Workload != t.Workload {
			continue
		}
		domain := v.domain(node, r.Key)
		if domain == "" {
			against[cluster.NoDomain] = true
		} else if counts := v.spread(r); counts[domain]+1-lowest(counts) > max(1, r.MaxSkew) {
			against[cluster.Skewed] = true
		}
	}
	for r := cluster.Cordoned; r <= cluster.Skewed; r++ {
		if against[r] {
			return r
		}
	}
	return cluster.Fits
}

func (v *naive) skew(workload string) int {
	worst := 0
	for _, r := range v.spec.Constraints.Spread {
		if r.Workload != workload {
			continue
		}
		counts := v.spread(r)
		most := 0
		for _, n := range counts {
			most = max(most, n)
		}
		if len(counts) > 0 {
			worst = max(worst, most-lowest(counts)-max(1, r.MaxSkew))
		}
	}
	return worst
}
