package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cotenant/cotenant/cluster"
)

type planView struct {
	Shown                    bool
	Batch                    []fact
	Cluster, Objective       string
	Sees, Judge              string
	Bound, BoundWords        string
	HigherIsBetter, HasHolds bool
	Rows                     []planRow
}

type planRow struct {
	Name                                                 name
	Words, Value, Share, Predicted, Held, Seconds, Error string
	Bar                                                  barView
}

// ranked lists the policies from the best: by share, then by value.
func ranked(p Plan) []Policy {
	out := slices.Clone(p.Policies)
	key := func(p Policy) float64 {
		if known(p.Share) {
			return p.Share
		}
		return math.Inf(-1)
	}
	value := func(q Policy) float64 {
		switch {
		case !known(q.True):
			return math.Inf(-1)
		case p.Minimises:
			return -q.True
		}
		return q.True
	}
	slices.SortStableFunc(out, func(a, b Policy) int {
		return cmp.Or(cmp.Compare(key(b), key(a)), cmp.Compare(value(b), value(a)))
	})
	return out
}

func newPlanView(p Plan) planView {
	v := planView{
		Shown: len(p.Policies) > 0, Sees: p.Sees, Judge: p.Judge, HigherIsBetter: !p.Minimises,
		Cluster: plural(p.Nodes, "node", "nodes"), Objective: p.Objective,
	}
	if p.Slots > 0 {
		v.Cluster += fmt.Sprintf(" of %s", plural(p.Slots, "slot", "slots"))
	}
	tasks := 0
	for _, w := range slices.Sorted(maps.Keys(p.Batch)) {
		v.Batch = append(v.Batch, fact{w, count(p.Batch[w])})
		tasks += p.Batch[w]
	}
	if tasks > 0 {
		v.Cluster = plural(tasks, "task", "tasks") + " on " + v.Cluster
	}
	v.Bound = fixed(p.Bound.Value, 4)
	switch {
	case !known(p.Bound.Value):
		v.BoundWords = "no bound was computed"
	case p.Bound.Proven:
		v.BoundWords = "proven: as far as co-locations are known, no placement can do better"
	default:
		v.BoundWords = "not proven: a placement may do better"
	}
	if known(p.Bound.Value) && p.Bound.Seconds > 0 {
		v.BoundWords += " (found in " + seconds(p.Bound.Seconds) + ")"
	}
	for i, q := range ranked(p) {
		r := planRow{
			Name: breakable(q.Name), Words: q.Words, Value: fixed(q.True, 4), Predicted: fixed(q.Predicted, 4),
			Share: percent(q.Share, 2), Held: count(q.Held), Seconds: seconds(q.Seconds), Error: q.Error,
		}
		if known(q.Share) {
			class := "s0"
			if i == 0 {
				class = "s2"
			}
			r.Bar = bar(q.Share, 0, class)
		}
		v.HasHolds = v.HasHolds || q.Held > 0
		v.Rows = append(v.Rows, r)
	}
	return v
}

type mapsView struct {
	Workloads []workloadLegend
	Policies  []mapView
	Grouped   bool
}

type workloadLegend struct {
	Class, Code string
	Name        name
}

type mapView struct {
	Name, Share, Label string
	Stacks             []stackView
	Configs            []configRow
}

// stackView is one node, or several alike, drawn as a stack of cells.
type stackView struct {
	Title string
	Count string // "×12" where it stands for several nodes
	Cells []cellView
	First bool // first of a class: a gap before it
}

type cellView struct{ Class, Code string }

type configRow struct {
	Colocation, Class, Performance string
	Nodes                          string
}

// mostStacks is how many nodes are drawn one by one; beyond it, alike nodes
// share a stack.
const mostStacks = 160

func newMapsView(d Data) mapsView {
	names := map[string]bool{}
	for w := range d.Plan.Batch {
		names[w] = true
	}
	for _, p := range d.Plan.Policies {
		for _, n := range p.Nodes {
			for w := range n.Tasks {
				names[w] = true
			}
		}
	}
	workloads := slices.Sorted(maps.Keys(names))
	marks := codes(workloads)
	v := mapsView{Grouped: d.Plan.Nodes > mostStacks}
	look := map[string]cellView{}
	for i, w := range workloads {
		look[w] = cellView{fmt.Sprintf("w%d", i%len(workloadColours)), marks[i]}
		v.Workloads = append(v.Workloads, workloadLegend{look[w].Class, marks[i], breakable(w)})
	}
	for _, p := range ranked(d.Plan) {
		if len(p.Nodes) == 0 {
			continue
		}
		v.Policies = append(v.Policies, newMapView(p, workloads, look))
	}
	return v
}

func newMapView(p Policy, workloads []string, look map[string]cellView) mapView {
	v := mapView{Name: p.Name, Share: percent(p.Share, 2)}
	nodes := slices.Clone(p.Nodes)
	slices.SortStableFunc(nodes, func(a, b Node) int { return compareNodes(a, b, workloads) })
	var runs [][]Node // of alike nodes
	for i, n := range nodes {
		if i > 0 && compareNodes(nodes[i-1], n, workloads) == 0 {
			runs[len(runs)-1] = append(runs[len(runs)-1], n)
		} else {
			runs = append(runs, []Node{n})
		}
	}
	used := 0
	class := nodes[0].Class
	for _, run := range runs {
		if run[0].Tasks.Tasks() > 0 {
			used += len(run)
		}
		stack := newStack(run[0], workloads, look)
		stack.First = run[0].Class != class
		class = run[0].Class
		if len(nodes) > mostStacks {
			stack.Title, stack.Count = plural(len(run), "node", "nodes")+": "+stack.Title, "×"+count(len(run))
			v.Stacks = append(v.Stacks, stack)
		} else {
			for i, n := range run {
				s := stack
				s.Title, s.First = n.Name+": "+stack.Title, stack.First && i == 0
				v.Stacks = append(v.Stacks, s)
			}
		}
	}
	slices.SortStableFunc(runs, func(a, b []Node) int { return cmp.Compare(len(b), len(a)) })
	for _, run := range runs {
		v.Configs = append(v.Configs, newConfigRow(run))
	}
	v.Label = fmt.Sprintf("%s: %d of %s used, %s", p.Name, used, plural(len(nodes), "node", "nodes"), plural(len(runs), "kind of co-location", "kinds of co-location"))
	return v
}

// compareNodes sorts by class, then fuller nodes first, then those with more
// of the first workloads: alike nodes become neighbours.
func compareNodes(a, b Node, workloads []string) int {
	c := cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(b.Tasks.Tasks(), a.Tasks.Tasks()))
	for _, w := range workloads {
		c = cmp.Or(c, cmp.Compare(b.Tasks[w], a.Tasks[w]))
	}
	return cmp.Or(c, cmp.Compare(b.Slots, a.Slots))
}

func newStack(n Node, workloads []string, look map[string]cellView) stackView {
	var s stackView
	var words []string
	for _, w := range workloads {
		k := n.Tasks[w]
		if k == 0 {
			continue
		}
		performance, ok := n.Performance[w]
		if !ok {
			performance = math.NaN()
		}
		for range k {
			s.Cells = append(s.Cells, cellView{look[w].Class + " " + stepClass(level(performance)), look[w].Code})
		}
		words = append(words, fmt.Sprintf("%s (performance %s)", times(w, k), fixed(performance, 2)))
	}
	for i := len(s.Cells); i < n.Slots; i++ {
		s.Cells = append(s.Cells, cellView{Class: "free"})
	}
	s.Title = strings.Join(words, ", ")
	if len(words) == 0 {
		s.Title = "empty"
	}
	return s
}

func times(w string, k int) string {
	if k == 1 {
		return w
	}
	return fmt.Sprintf("%d × %s", k, w)
}

func newConfigRow(run []Node) configRow {
	n := run[0]
	r := configRow{Colocation: words(n.Tasks), Class: n.Class, Nodes: count(len(run))}
	sum, tasks := 0.0, 0
	for _, w := range n.Tasks.Workloads() {
		p, ok := n.Performance[w]
		if !ok {
			p = math.NaN()
		}
		sum += p * float64(n.Tasks[w])
		tasks += n.Tasks[w]
	}
	r.Performance = unknown
	if tasks > 0 {
		r.Performance = fixed(sum/float64(tasks), 2)
	}
	return r
}

func words(c cluster.Colocation) string {
	var parts []string
	for _, w := range c.Workloads() {
		parts = append(parts, times(w, c[w]))
	}
	if len(parts) == 0 {
		return "empty"
	}
	return strings.Join(parts, " + ")
}
