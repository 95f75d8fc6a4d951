package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reason says why a task does not fit on a node.
type Reason uint8

// The reasons, in the order in which Check looks for them.
const (
	Fits        Reason = iota
	Cordoned           // the node takes no new tasks
	NotSelected        // the node lacks a label that the workload asks for
	Tainted            // the node has a taint that the workload does not tolerate
	NoDomain           // the node lacks the label over which the workload is spread
	NoSlot             // no slot is free
	NoResource         // too little of a resource is free
	NodeMax            // max_per_node is reached
	Repelled           // anti-affinity
	Skewed             // the spread would become too uneven
)

func (p *Placement) compileRules(index map[string]int) {
	c, nodes := p.snap.spec.Constraints, p.snap.spec.Nodes
	n := len(p.workloads)
	p.static = make([][]Reason, n)
	p.perNode = slices.Repeat([]int{noLimit}, n)
	p.anti = make([][]antiRule, n)
	p.spread = make([][]*spreadRule, n)
	for w, name := range p.workloads {
		p.static[w] = make([]Reason, len(nodes))
		for i := range nodes {
			p.static[w][i] = c.admits(name, &nodes[i])
		}
		if limit, ok := c.MaxPerNode[name]; ok {
			p.perNode[w] = limit
		}
	}
	type domains struct {
		of     []int
		counts []int
	}
	byKey := map[string]domains{}
	for _, a := range c.AntiAffinity {
		key := a.Key
		if key == "" {
			key = HostKey
		}
		d, ok := byKey[key]
		if !ok {
			of, names := p.domains(key, "")
			d = domains{of, make([]int, len(names)*n)}
			byKey[key] = d
		}
		i, j := index[a.A], index[a.B]
		p.anti[i] = append(p.anti[i], antiRule{j, d.of, d.counts, key})
		if i != j {
			p.anti[j] = append(p.anti[j], antiRule{i, d.of, d.counts, key})
		}
	}
	for _, s := range c.Spread {
		w := index[s.Workload]
		of, names := p.domains(s.Key, s.Workload)
		for i, d := range of {
			if d < 0 && p.static[w][i] == Fits {
				p.static[w][i] = NoDomain
			}
		}
		p.spread[w] = append(p.spread[w], &spreadRule{s.Key, max(1, s.MaxSkew), of, make([]int, len(names)), names})
	}
}

// domains numbers the domains of a key in the order of their names. Where a
// workload is given, the nodes that its selector excludes belong to none.
func (p *Placement) domains(key, workload string) (of []int, names []string) {
	nodes := p.snap.spec.Nodes
	domain := func(i int) (string, bool) {
		d, ok := nodes[i].Domain(key)
		return d, ok && p.snap.spec.Constraints.selects(workload, &nodes[i])
	}
	set := map[string]int{}
	for i := range nodes {
		if d, ok := domain(i); ok {
			set[d] = 0
		}
	}
	names = slices.Sorted(maps.Keys(set))
	for i, d := range names {
		set[d] = i
	}
	of = make([]int, len(nodes))
	for i := range nodes {
		of[i] = -1
		if d, ok := domain(i); ok {
			of[i] = set[d]
		}
	}
	return of, names
}

// admits tells what keeps every task of a workload off a node, however empty.
func (c Constraints) admits(workload string, n *Node) Reason {
	if n.Unschedulable {
		return Cordoned
	}
	if !c.selects(workload, n) {
		return NotSelected
	}
	for _, t := range n.Taints {
		if t.Effect != PreferNoSchedule && !c.tolerates(workload, t) {
			return Tainted
		}
	}
	return Fits
}

// selects reports whether a node carries the labels that a workload asks for.
func (c Constraints) selects(workload string, n *Node) bool {
	for key, value := range c.NodeSelector[workload] {
		if d, ok := n.Domain(key); !ok || d != value {
			return false
		}
	}
	return true
}

func (c Constraints) tolerates(workload string, t Taint) bool {
	return slices.ContainsFunc(c.Tolerations[workload], func(l Toleration) bool { return l.Tolerates(t) })
}

// countInRules keeps the counts of the rules that workload w takes part in.
func (p *Placement) countInRules(w, node, by int) {
	n := len(p.workloads)
	for i := range p.anti[w] {
		r := &p.anti[w][i]
		// Rules of one key share their counts: count once for each key.
		if d := r.domain[node]; d >= 0 && !slices.ContainsFunc(p.anti[w][:i], func(o antiRule) bool { return o.key == r.key }) {
			r.counts[d*n+w] += by
		}
	}
	for _, r := range p.spread[w] {
		if d := r.domain[node]; d >= 0 {
			r.counts[d] += by
		}
	}
}

func (p *Placement) cloneRules() {
	copies := map[*int][]int{}
	anti := make([][]antiRule, len(p.anti))
	for w := range p.anti {
		anti[w] = slices.Clone(p.anti[w])
		for i := range anti[w] {
			r := &anti[w][i]
			if len(r.counts) == 0 {
				continue
			}
			c, ok := copies[&r.counts[0]]
			if !ok {
				c = slices.Clone(r.counts)
				copies[&r.counts[0]] = c
			}
			r.counts = c
		}
	}
	p.anti = anti
	spread := make([][]*spreadRule, len(p.spread))
	for w := range p.spread {
		for _, r := range p.spread[w] {
			c := *r
			c.counts = slices.Clone(r.counts)
			spread[w] = append(spread[w], &c)
		}
	}
	p.spread = spread
}

// Check tells whether one more task of a kind fits on a node, or the first
// reason why not.
func (p *Placement) Check(kind, node int) Reason {
	k := &p.kinds[kind]
	w := k.workload
	if r := p.static[w][node]; r != Fits {
		return r
	}
	if p.slots[node] < 1 {
		return NoSlot
	}
	free := p.free[node*len(p.dims):]
	for d, n := range k.need {
		if n > 0 && n > free[d] {
			return NoResource
		}
	}
	if p.count[node*len(p.workloads)+w] >= p.perNode[w] {
		return NodeMax
	}
	for i := range p.anti[w] {
		r := &p.anti[w][i]
		if d := r.domain[node]; d >= 0 && r.counts[d*len(p.workloads)+r.other] > 0 {
			return Repelled
		}
	}
	for _, r := range p.spread[w] {
		if r.counts[r.domain[node]]+1-slices.Min(r.counts) > r.maxSkew {
			return Skewed
		}
	}
	return Fits
}

// Skew is by how much the spread of a workload number exceeds what its rules
// allow, 0 where they hold. A move must not raise it: Check guards only the
// domain that gains a task, not the one that loses it.
func (p *Placement) Skew(w int) int {
	worst := 0
	for _, r := range p.spread[w] {
		if len(r.counts) > 0 {
			worst = max(worst, slices.Max(r.counts)-slices.Min(r.counts)-r.maxSkew)
		}
	}
	return worst
}

// Explain says in words why a task of the kind does not fit on the node now;
// "" where it fits.
func (p *Placement) Explain(kind, node int) string {
	k := &p.kinds[kind]
	name, on := p.workloads[k.workload], &p.snap.spec.Nodes[node]
	switch p.Check(kind, node) {
	case Cordoned:
		return fmt.Sprintf("node %s takes no new tasks (unschedulable)", on.Name)
	case NotSelected:
		return fmt.Sprintf("node %s lacks labels that %s selects: %s", on.Name, name, labelText(p.snap.spec.Constraints.NodeSelector[name]))
	case Tainted:
		for _, t := range on.Taints {
			if t.Effect != PreferNoSchedule && !p.snap.spec.Constraints.tolerates(name, t) {
				return fmt.Sprintf("node %s has the taint %s=%s:%s, which %s does not tolerate", on.Name, t.Key, t.Value, t.Effect, name)
			}
		}
	case NoDomain:
		for _, r := range p.spread[k.workload] {
			if r.domain[node] < 0 {
				return fmt.Sprintf("node %s has no label %s, over which %s is spread", on.Name, r.key, name)
			}
		}
	case NoSlot:
		return fmt.Sprintf("node %s has no free slot (all %d are taken)", on.Name, on.Slots)
	case NoResource:
		for d, n := range k.need {
			if free := p.Free(node)[d]; n > 0 && n > free {
				return fmt.Sprintf("node %s has %s of %s free, %s asks for %s", on.Name,
					amount(p.dims[d], free), p.dims[d], name, amount(p.dims[d], n))
			}
		}
	case NodeMax:
		return fmt.Sprintf("node %s runs %d of %s, the most allowed on a node", on.Name, p.Counts(node)[k.workload], name)
	case Repelled:
		for _, r := range p.anti[k.workload] {
			d := r.domain[node]
			if d < 0 || r.counts[d*len(p.workloads)+r.other] == 0 {
				continue
			}
			if r.key == HostKey {
				return fmt.Sprintf("node %s runs %s, which %s must not be with", on.Name, p.workloads[r.other], name)
			}
			domain, _ := on.Domain(r.key)
			return fmt.Sprintf("%s=%s runs %s, which %s must not be with", r.key, domain, p.workloads[r.other], name)
		}
	case Skewed:
		for _, r := range p.spread[k.workload] {
			d := r.domain[node]
			if least := slices.Min(r.counts); r.counts[d]+1-least > r.maxSkew {
				return fmt.Sprintf("%s=%s has %d of %s while the emptiest has %d: the skew would exceed %d",
					r.key, r.names[d], r.counts[d], name, least, r.maxSkew)
			}
		}
	}
	return ""
}

func labelText(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, k+"="+labels[k])
	}
	return strings.Join(parts, ",")
}

func amount(resource string, n int64) string {
	switch resource {
	case CPU:
		return fmt.Sprintf("%g cores", float64(n)/1000)
	case Memory:
		return fmt.Sprintf("%g MiB", float64(n)/(1<<20))
	}
	return fmt.Sprint(n)
}
