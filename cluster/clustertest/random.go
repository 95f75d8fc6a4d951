// Package clustertest makes small random clusters for property tests, with
// everything that a placement must respect: unlike nodes, resources, slots,
// labels, taints, running tasks, gangs and every kind of constraint.
//
//	rapid.Check(t, func(t *rapid.T) {
//		spec, groups := clustertest.Random(source{t})
//		...
//
// It uses the standard library only.
package clustertest

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
)

// Source gives numbers from 0 to n-1. *rand.Rand is one; one that draws from a
// property testing library lets that shrink what fails.
type Source interface{ IntN(n int) int }

// Workloads are the names that Random uses.
var Workloads = []string{"a", "b", "c", "d"}

const diskKey = "disk"

type maker struct{ Source }

func (m maker) oneIn(n int) bool { return m.IntN(n) == n-1 }

func (m maker) workload() string { return Workloads[m.IntN(len(Workloads))] }

// Random makes a valid Spec of at most 6 nodes and groups of at most 12
// pending tasks. Small numbers from the source give plain clusters.
func Random(s Source) (cluster.Spec, []cluster.Group) {
	m := maker{s}
	var spec cluster.Spec
	for i := range m.IntN(7) {
		spec.Nodes = append(spec.Nodes, m.node(i))
	}
	for _, name := range Workloads[:m.IntN(len(Workloads)+1)] {
		spec.Workloads = append(spec.Workloads, cluster.Workload{Name: name, Requests: m.requests()})
	}
	if len(spec.Nodes) > 0 {
		for i := range m.IntN(5) {
			spec.Running = append(spec.Running, cluster.Running{
				Task: m.task(fmt.Sprintf("running/%d", i)),
				Node: spec.Nodes[m.IntN(len(spec.Nodes))].Name,
			})
		}
	}
	spec.Constraints = m.constraints()
	var groups []cluster.Group
	for i := range m.IntN(5) {
		g := cluster.Group{Name: fmt.Sprintf("group-%d", i), Gang: m.oneIn(3)}
		for j := range m.IntN(4) {
			g.Tasks = append(g.Tasks, m.task(fmt.Sprintf("%s/%d", g.Name, j)))
		}
		groups = append(groups, g)
	}
	return spec, groups
}

func (m maker) node(i int) cluster.Node {
	n := cluster.Node{Name: fmt.Sprintf("node-%d", i), Slots: m.IntN(5)}
	if m.oneIn(3) {
		n.Class = "fast"
	}
	if m.oneIn(3) {
		n.Capacity = cluster.Resources{cluster.CPU: int64(m.IntN(5)) * 1000}
		if m.oneIn(2) {
			n.Capacity[cluster.Memory] = int64(m.IntN(5)) << 30
		}
	}
	n.Labels = map[string]string{}
	if !m.oneIn(4) {
		n.Labels[cluster.ZoneKey] = fmt.Sprintf("zone-%d", m.IntN(3))
	}
	if m.oneIn(3) {
		n.Labels[diskKey] = []string{"ssd", "hdd"}[m.IntN(2)]
	}
	if m.oneIn(5) {
		effects := []string{cluster.NoSchedule, cluster.NoExecute, cluster.PreferNoSchedule}
		n.Taints = []cluster.Taint{{Key: "reserved", Value: "yes", Effect: effects[m.IntN(3)]}}
	}
	for d := range m.IntN(3) {
		n.Devices = append(n.Devices, cluster.Device{Name: fmt.Sprint(d), Slots: m.IntN(3)})
	}
	n.Unschedulable = m.oneIn(8)
	return n
}

func (m maker) requests() cluster.Resources {
	switch m.IntN(4) {
	case 2:
		return cluster.Resources{cluster.CPU: int64(m.IntN(3)) * 500}
	case 3:
		return cluster.Resources{cluster.CPU: 1000, cluster.Memory: int64(m.IntN(3)) << 29}
	}
	return nil
}

func (m maker) task(id string) cluster.Task {
	t := cluster.Task{ID: cluster.TaskID(id), Workload: m.workload()}
	if m.oneIn(6) {
		t.Requests = m.requests()
	}
	if m.oneIn(6) {
		t.Devices = 1
	}
	return t
}

func (m maker) constraints() cluster.Constraints {
	var c cluster.Constraints
	for range m.IntN(3) {
		c.AntiAffinity = append(c.AntiAffinity, cluster.AntiAffinity{
			A: m.workload(), B: m.workload(), Key: []string{"", cluster.ZoneKey, cluster.HostKey}[m.IntN(3)],
		})
	}
	if m.oneIn(3) {
		c.MaxPerNode = map[string]int{m.workload(): m.IntN(3)}
	}
	if m.oneIn(2) {
		c.Spread = append(c.Spread, cluster.Spread{
			Workload: m.workload(), Key: []string{cluster.ZoneKey, cluster.HostKey}[m.IntN(2)], MaxSkew: m.IntN(3),
		})
	}
	if m.oneIn(4) {
		c.NodeSelector = map[string]map[string]string{m.workload(): {diskKey: "ssd"}}
	}
	if m.oneIn(3) {
		t := []cluster.Toleration{{Key: "reserved", Value: "yes"}, {Key: "reserved", Value: "no"}, {Exists: true}, {Key: "reserved", Exists: true, Effect: cluster.NoSchedule}}
		c.Tolerations = map[string][]cluster.Toleration{m.workload(): {t[m.IntN(4)]}}
	}
	return c
}
