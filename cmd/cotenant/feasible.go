package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// checkRoom refuses a batch that cannot be placed whole for a reason that can
// be named: too few slots, or a workload that does not fit even with no other
// pending task around. What only the workloads together make impossible is
// left to the bound and to the policies, which hold tasks.
// most is the most tasks that were measured together, 0 where unknown.
func checkRoom(s *cluster.Snapshot, b *batch, constraintsFile string, most int) error {
	tasks := place.Request{Pending: b.groups("workload", 0)}.Tasks()
	p := cluster.NewPlacement(s, tasks)
	if err := checkSlots(s, p, b, most); err != nil {
		return err
	}
	count := make([]int, p.Kinds())
	for i := range tasks {
		count[p.Kind(i)]++
	}
	for kind, n := range count {
		if n > 0 {
			if err := checkAlone(p.Clone(), kind, n, p.Workloads()[p.Workload(kind)], constraintsFile); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkSlots(s *cluster.Snapshot, p *cluster.Placement, b *batch, most int) error {
	nodes := s.Nodes()
	free, taken, open := 0, 0, 0
	fewer := most == 0 // slots than were measured together
	for i := range nodes {
		if nodes[i].Unschedulable {
			continue
		}
		open++
		fewer = fewer || nodes[i].Slots < most
		n, limited := p.FreeSlots(i)
		if !limited {
			return nil
		}
		free += max(0, n)
		taken += nodes[i].Slots - n
	}
	if b.tasks() <= free {
		return nil
	}
	of := ""
	if taken > 0 {
		of = fmt.Sprintf(" (%d more are taken by running tasks)", taken)
	}
	help := "add nodes, raise --slots or place fewer tasks"
	if !fewer {
		help = fmt.Sprintf("add nodes or place fewer tasks (more than %d on a node were never measured together)", most)
	}
	return fmt.Errorf("%s: %s, but the %s that take tasks have %s%s: %d too few; %s",
		b.name, count(b.tasks(), "task"), count(open, "node"), count(free, "free slot"), of, b.tasks()-free, help)
}

// checkAlone fills the placement with tasks of one kind, as far as they go.
func checkAlone(p *cluster.Placement, kind, n int, workload, constraintsFile string) error {
	c := p.Snapshot().Constraints()
	nodes := len(p.Snapshot().Nodes())
	// Filling in turn is exact for at most one rule that spans nodes; for more,
	// leave the skew out and judge the rest.
	spans := 0
	for _, r := range c.Spread {
		if r.Workload == workload {
			spans++
		}
	}
	for _, r := range c.AntiAffinity {
		if r.A == workload && r.B == workload && r.Key != "" && r.Key != cluster.HostKey {
			spans++
		}
	}
	fits := func(node int) bool {
		r := p.Check(kind, node)
		return r == cluster.Fits || r == cluster.Skewed && spans > 1
	}
	room := 0
	for placed := true; placed && room < n; {
		placed = false
		for i := 0; i < nodes && room < n; i++ {
			for room < n && fits(i) {
				p.Put(kind, i)
				room++
				placed = true
			}
		}
	}
	if room == n {
		return nil
	}
	why := place.WhyNot(p, kind)
	if room == 0 {
		return fmt.Errorf("no node can take a task of %s: %s; %s", workload, why, remedy(p, kind, workload, n, constraintsFile))
	}
	return fmt.Errorf("at most %d of %d tasks of %s can be placed, even with no other task pending: %s; %s",
		room, n, workload, why, remedy(p, kind, workload, n, constraintsFile))
}

// remedy names the rule that most nodes refuse by, and what to do about it.
func remedy(p *cluster.Placement, kind int, workload string, n int, file string) string {
	c := p.Snapshot().Constraints()
	in := "the constraints"
	if file != "" {
		in = "constraints " + file
	}
	var count [cluster.Skewed + 1]int
	total := len(p.Snapshot().Nodes())
	for i := range total {
		count[p.Check(kind, i)]++
	}
	reason := cluster.Reason(slices.Index(count[:], slices.Max(count[:])))
	switch reason {
	case cluster.NodeMax:
		return fmt.Sprintf("%s: max_per_node[%s] = %d allows %d on %d nodes, fewer than the %d tasks; raise it, or add nodes",
			in, workload, c.MaxPerNode[workload], c.MaxPerNode[workload]*count[reason], count[reason], n)
	case cluster.NotSelected:
		return fmt.Sprintf("%s: node_selector[%s] = %s matches %d of %d nodes; label more nodes or change it",
			in, workload, selectorText(c.NodeSelector[workload]), total-count[reason], total)
	case cluster.Repelled:
		for i, r := range c.AntiAffinity {
			if r.A == workload || r.B == workload {
				key := r.Key
				if key == "" {
					key = cluster.HostKey
				}
				return fmt.Sprintf("%s: anti_affinity[%d] (%s, %s over %s, which has %d domains) forbids it; drop the rule, or add domains or place fewer tasks",
					in, i, r.A, r.B, key, domains(p.Snapshot().Nodes(), key))
			}
		}
	case cluster.NoDomain, cluster.Skewed:
		for i, r := range c.Spread {
			if r.Workload == workload {
				return fmt.Sprintf("%s: spread[%d] (%s over %s, max_skew %d, %d domains) forbids it; label nodes (--zones), raise max_skew or add room to the fullest domain",
					in, i, r.Workload, r.Key, max(1, r.MaxSkew), domains(p.Snapshot().Nodes(), r.Key))
			}
		}
	case cluster.Tainted:
		return fmt.Sprintf("%s: give %s tolerations, or untaint nodes", in, workload)
	case cluster.NoResource:
		return fmt.Sprintf("lower the requests of %s, or add capacity", workload)
	case cluster.Cordoned:
		return "uncordon nodes"
	}
	return "add nodes, or place fewer tasks"
}

// checkMeasured refuses a table as judge that lacks a co-location which some
// node can come to run: a simulation would come upon it sooner or later, under
// any policy.
func (s *source) checkMeasured(view *cluster.Snapshot, workloads []string) error {
	judge, on := s.judge()
	if judge.Kind() != interference.KindTable {
		return nil
	}
	name := s.beliefName
	if on == "truth" {
		name = s.truthName
	}
	tasks := make([]cluster.Task, len(workloads))
	for i, w := range workloads {
		tasks[i] = cluster.Task{Workload: w}
	}
	p := cluster.NewPlacement(view, tasks)
	nodes := view.Nodes()
	seen := map[string]bool{}
	first, at := cluster.Colocation(nil), 0
	for i := range nodes {
		n := &nodes[i]
		labels := maps.Clone(n.Labels)
		delete(labels, cluster.HostKey)
		// Nodes that are alike can run the same.
		like := fmt.Sprint(n.Class, n.Slots, n.Capacity, labels, n.Taints, n.Unschedulable)
		if seen[like] {
			continue
		}
		seen[like] = true
		if c := firstUnmeasured(p, i, len(tasks), judge); c != nil && (first == nil || c.Tasks() < first.Tasks()) {
			first, at = c, i
		}
	}
	if first == nil {
		return nil
	}
	class, fewer := "", ""
	if nodes[at].Class != "" {
		class = " of class " + nodes[at].Class
	}
	if n := first.Tasks() - 1; n > 0 {
		fewer = fmt.Sprintf("; or give --slots %d, up to which none is missing", n)
	}
	return fmt.Errorf("%s: silent about the co-location %s, which a node%s of %d slots can come to run; %s%s",
		name, first.Key(), class, nodes[at].Slots, s.unmeasured(), fewer)
}

// firstUnmeasured is the first of the smallest co-locations that an empty node can
// come to run and about which the judge is silent; nil where there is none.
func firstUnmeasured(p *cluster.Placement, node, tasks int, judge interference.Model) (missing cluster.Colocation) {
	n := &p.Snapshot().Nodes()[node]
	class := place.ModelClass(judge, n.Class)
	some := true
	var add func(from, left int)
	add = func(from, left int) {
		if left == 0 {
			some = true
			c := p.Colocation(node)
			for _, e := range judge.Predict(class, history.Rate, []cluster.Colocation{c})[0] {
				if !e.Known {
					missing = c
				}
			}
			return
		}
		for i := from; i < tasks && missing == nil; i++ {
			kind := p.Kind(i)
			// What is on other nodes can undo a skew.
			if r := p.Check(kind, node); r != cluster.Fits && r != cluster.Skewed {
				continue
			}
			p.Put(kind, node)
			add(i, left-1)
			p.Take(kind, node)
		}
	}
	for size := 1; size <= n.Slots && some && missing == nil; size++ {
		some = false
		add(0, size)
	}
	return missing
}

func selectorText(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for k, v := range labels {
		parts = append(parts, k+"="+v)
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

func domains(nodes []cluster.Node, key string) int {
	seen := map[string]bool{}
	for i := range nodes {
		if d, ok := nodes[i].Domain(key); ok {
			seen[d] = true
		}
	}
	return len(seen)
}
