package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// Allowed is a set of nodes, shared by the pods that it is the same for.
type Allowed struct {
	// Name tells sets apart.
	Name string
	// Node is by index in Spec.Nodes.
	Node []bool
	// Why is what the scheduler said of the nodes that are not in the set.
	Why []string
	// Else is the larger set that holds where there is no place in this one: soft
	// rules. nil is none.
	Else *Allowed
}

// part is groups that one call of a policy places: no two pods of a workload
// differ in the rules that they are under, since rules are by workload.
type part struct {
	jobs   bool
	groups []Group
	under  map[string]Pod // by workload: a pod whose rules hold for all
}

func (p part) policy(by Policies) place.Policy {
	if p.jobs {
		return by.Jobs
	}
	return by.Services
}

// split deals groups into parts, each into the first that it agrees with.
// Gangs go first: they need the most room at once.
func split(by Policies, groups []Group) []part {
	var parts []part
	for _, jobs := range []bool{true, false} {
		first := len(parts)
	next:
		for _, g := range groups {
			if (g.Gang && by.Jobs != nil) != jobs || len(g.Pods) == 0 {
				continue
			}
			for i := first; i < len(parts); i++ {
				if agrees(parts[i].under, g) {
					parts[i].add(g)
					continue next
				}
			}
			p := part{jobs: jobs, under: map[string]Pod{}}
			p.add(g)
			parts = append(parts, p)
		}
	}
	return parts
}

func (p *part) add(g Group) {
	p.groups = append(p.groups, g)
	for _, pod := range g.Pods {
		if _, ok := p.under[pod.Task.Workload]; !ok {
			p.under[pod.Task.Workload] = pod
		}
	}
}

func agrees(under map[string]Pod, g Group) bool {
	for _, pod := range g.Pods {
		if other, ok := under[pod.Task.Workload]; ok && !sameRules(pod, other) {
			return false
		}
	}
	return true
}

func sameRules(a, b Pod) bool {
	name := func(x *Allowed) string {
		if x == nil {
			return ""
		}
		return x.Name
	}
	return name(a.Allowed) == name(b.Allowed) && a.OnePerNode == b.OnePerNode && maps.Equal(a.Spread, b.Spread)
}

// widen leaves the pods that found no place in a part, under the next larger sets
// of nodes; false where there are none.
func (p *part) widen(held map[cluster.TaskID]string) bool {
	var groups []Group
	wider := map[string]bool{}
	for _, g := range p.groups {
		var left []Pod
		for _, pod := range g.Pods {
			if _, ok := held[pod.Task.ID]; ok {
				left = append(left, pod)
				wider[pod.Task.Workload] = true
			}
		}
		if len(left) == 0 {
			continue
		}
		if len(left) < len(g.Pods) {
			g.Name += Rest
		}
		g.Pods = left
		groups = append(groups, g)
	}
	maps.DeleteFunc(wider, func(w string, _ bool) bool {
		return p.under[w].Allowed == nil || p.under[w].Allowed.Else == nil
	})
	for w := range wider {
		pod := p.under[w]
		pod.Allowed = pod.Allowed.Else
		p.under[w] = pod
	}
	p.groups = groups
	return len(wider) > 0
}

// Rest ends the name of what is left of a group of which some tasks run: for
// policies, what waits is a group of its own.
const Rest = " (the rest)"

// plainly puts what the scheduler said of a node in place of the label that the
// node lacks for it, of which nobody but a policy need know.
func (p part) plainly(words string, spec cluster.Spec) string {
	for w, labels := range spec.Constraints.NodeSelector {
		for label, value := range labels {
			lacks := fmt.Sprintf(" lacks labels that %s selects: %s=%s", w, label, value)
			for before, after, found := strings.Cut(words, lacks); found; before, after, found = strings.Cut(words, lacks) {
				name, why := before[strings.LastIndexByte(before, ' ')+1:], "the scheduler's filters refuse it"
				at := slices.IndexFunc(spec.Nodes, func(n cluster.Node) bool { return n.Name == name })
				if said := p.under[w].Allowed.Why; at >= 0 && at < len(said) && said[at] != "" {
					why = said[at]
				}
				words = before + ": " + why + after
			}
		}
	}
	return words
}

// rules writes what the pods are under as labels of nodes and constraints.
func (p part) rules(nodes []cluster.Node) ([]cluster.Node, cluster.Constraints) {
	c := cluster.Constraints{MaxPerNode: map[string]int{}, NodeSelector: map[string]map[string]string{}}
	cloned := false
	label := map[*Allowed]string{}
	for _, w := range slices.Sorted(maps.Keys(p.under)) {
		pod := p.under[w]
		if pod.OnePerNode {
			c.MaxPerNode[w] = 1
		}
		for _, key := range slices.Sorted(maps.Keys(pod.Spread)) {
			c.Spread = append(c.Spread, cluster.Spread{Workload: w, Key: key, MaxSkew: pod.Spread[key]})
		}
		if pod.Allowed == nil {
			continue
		}
		if !cloned {
			nodes, cloned = slices.Clone(nodes), true
			for i := range nodes {
				nodes[i].Labels = maps.Clone(nodes[i].Labels)
				if nodes[i].Labels == nil {
					nodes[i].Labels = map[string]string{}
				}
			}
		}
		if label[pod.Allowed] == "" {
			label[pod.Allowed] = fmt.Sprintf("cotenant.dev/scheduler-filters-admit-%d", len(label))
			for i := range nodes {
				if pod.Allowed.Node[i] {
					nodes[i].Labels[label[pod.Allowed]] = "true"
				}
			}
		}
		c.NodeSelector[w] = map[string]string{label[pod.Allowed]: "true"}
	}
	return nodes, c
}
