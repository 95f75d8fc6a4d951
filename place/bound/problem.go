package bound

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// shape is what makes nodes alike for the tasks to come: class, residents,
// what is free and what they admit. Its options are the additions (multisets
// of pending kinds) that a node of the shape can hold, in depth-first order:
// option 0 is the empty addition, option i adds one task of kind[i] to
// option parent[i]. So a linear price of all options costs one addition each.
type shape struct {
	node   int // a representative
	parent []int32
	kind   []int16
	run    []int16 // how many tasks of kind[i] option i holds
	config []place.Config
	value  []float64 // Trial.Utmost; -Inf where the model is silent
	worst  []float64
	whole  bool             // all options are listed
	met    map[string]int32 // options by their counts, where not whole
}

// class is a set of nodes of one shape in the same topology domains.
type class struct {
	shape *shape
	nodes []int
	rows  []int32 // by kind: the spread row that a task of it counts in; -1
}

// spread is a spread rule that has rows.
type spread struct {
	workload int
	rows     []int // by domain
	least    []int // by domain: fewest pending tasks
}

// problem is a request as a linear program over configurations: a row for
// each pending kind (all its tasks are placed), a row for each class of nodes
// (each node has one configuration), and a row for each workload and domain of
// a spread rule (at most so many tasks).
type problem struct {
	trial    *place.Trial // running tasks only
	demand   []int        // by kind
	classes  []class
	shapes   []*shape
	caps     []float64 // by spread row: most tasks, running not counted
	spreads  []spread
	skew     []int // by workload number, as the running tasks have it
	measured bool  // the model is measuredOnly
	limit    int   // most options to list in all
	count    int   // options listed
}

func (p *problem) classRow(i int) int  { return len(p.demand) + i }
func (p *problem) spreadRow(i int) int { return len(p.demand) + len(p.classes) + i }

func newProblem(t *place.Trial, measured bool, limit int) *problem {
	p := &problem{trial: t, demand: make([]int, t.Kinds()), measured: measured, limit: limit}
	for i := range t.Tasks() {
		p.demand[t.Kind(i)]++
	}
	for w := range t.Workloads() {
		p.skew = append(p.skew, t.Skew(w))
	}
	spread := p.spreadRows()
	shapes := map[string]*shape{}
	classes := map[string]int{}
	for node := range t.Snapshot().Nodes() {
		key := p.shapeKey(node)
		s, ok := shapes[key]
		if !ok {
			s = &shape{node: node}
			shapes[key] = s
			p.shapes = append(p.shapes, s)
		}
		rows := spread(node)
		key += fmt.Sprint(rows)
		at, ok := classes[key]
		if !ok {
			at = len(p.classes)
			classes[key] = at
			p.classes = append(p.classes, class{shape: s, rows: rows})
		}
		p.classes[at].nodes = append(p.classes[at].nodes, node)
	}
	return p
}

// shapeKey is equal for nodes that are alike: the same residents, the same
// room and the same answer for every pending kind.
func (p *problem) shapeKey(node int) string {
	t := p.trial
	key := binary.AppendVarint(nil, int64(t.Config(node)))
	if t.Racked() {
		// Whether traffic with other nodes may count.
		key = binary.AppendVarint(key, int64(min(t.Rack(node), 0)))
	}
	n, _ := t.FreeSlots(node)
	key = binary.AppendVarint(key, int64(n))
	for _, f := range t.Free(node) {
		key = binary.AppendVarint(key, f)
	}
	for k := range p.demand {
		if p.demand[k] == 0 {
			continue
		}
		r := t.Check(k, node)
		if r == cluster.Skewed {
			r = cluster.Fits // depends on the other nodes
		}
		key = append(key, byte(r))
	}
	return string(key)
}

// spreadRows numbers the rows of the spread rules and returns the function
// that gives each node its rows by kind. Of N tasks over D domains that may
// differ by s, none holds more than floor((N + (D-1)s) / D), running tasks
// counted; a domain that holds more already takes none.
func (p *problem) spreadRows() func(node int) []int32 {
	t := p.trial
	nodes := t.Snapshot().Nodes()
	type key struct {
		workload, domain string
		rule             int
	}
	row := map[key]int32{}
	total := make([]int, len(t.Workloads()))
	for k, n := range p.demand {
		total[t.Workload(k)] += n
	}
	for node := range nodes {
		for w, n := range t.Counts(node) {
			total[w] += n
		}
	}
	rules := t.Snapshot().Constraints().Spread
	selected := func(workload string, node int) bool {
		for k, v := range t.Snapshot().Constraints().NodeSelector[workload] {
			if d, ok := nodes[node].Domain(k); !ok || d != v {
				return false
			}
		}
		return true
	}
	for i, r := range rules {
		w := -1
		for j, name := range t.Workloads() {
			if name == r.Workload {
				w = j
			}
		}
		running := map[string]int{}
		var names []string
		for node := range nodes {
			d, ok := nodes[node].Domain(r.Key)
			if !ok || !selected(r.Workload, node) {
				continue
			}
			if _, seen := running[d]; !seen {
				names = append(names, d)
			}
			running[d] += t.Counts(node)[w]
		}
		if len(names) == len(nodes) && total[w] <= len(nodes) || slices.ContainsFunc(p.spreads, func(o spread) bool { return o.workload == w }) {
			continue // a rule over single nodes that few tasks can break, or a second one
		}
		sp := spread{workload: w}
		for _, d := range names {
			// Where the running tasks break the rule, they may go on as unevenly.
			allowed := max(1, r.MaxSkew) + p.skew[w]
			most := (total[w] + (len(names)-1)*allowed) / len(names)
			least := (total[w] - (len(names)-1)*allowed + len(names) - 1) / len(names)
			row[key{r.Workload, d, i}] = int32(len(p.caps))
			sp.rows = append(sp.rows, len(p.caps))
			sp.least = append(sp.least, max(0, least-running[d]))
			p.caps = append(p.caps, float64(max(0, most-running[d])))
		}
		p.spreads = append(p.spreads, sp)
	}
	return func(node int) []int32 {
		rows := make([]int32, len(p.demand))
		for k := range rows {
			rows[k] = -1
			for i, r := range rules {
				if r.Workload != t.Workloads()[t.Workload(k)] {
					continue
				}
				d, _ := nodes[node].Domain(r.Key)
				if at, ok := row[key{r.Workload, d, i}]; ok && rows[k] < 0 {
					rows[k] = at
				}
			}
		}
		return rows
	}
}

// list enumerates the options of every shape, smallest first, as far as the
// limit allows.
func (p *problem) list() {
	for _, s := range p.shapes {
		p.begin(s)
	}
	for _, s := range p.shapes {
		p.enumerate(s)
	}
}

// begin gives a shape its empty option.
func (p *problem) begin(s *shape) {
	s.parent, s.kind, s.run = []int32{-1}, []int16{-1}, []int16{0}
	s.config, s.value, s.worst = []place.Config{p.trial.Config(s.node)}, nil, nil
	p.fill(s, 0)
}

// enumerate lists the options of a shape depth first, each multiset once by
// adding kinds in ascending order. All constraints are monotone: what does not
// fit stays unfit when tasks are added, so no option is missed. Where that
// exceeds the limit, the shape keeps its empty option alone and is not whole.
func (p *problem) enumerate(s *shape) {
	left := append([]int(nil), p.demand...)
	if p.atLeast(s) > float64(p.limit-p.count) {
		return
	}
	s.whole = true
	var visit func(at int32, from int)
	visit = func(at int32, from int) {
		for k := from; k < len(left) && s.whole; k++ {
			if left[k] == 0 || !p.fits(k, s.node) {
				continue
			}
			if p.count+len(s.parent) > p.limit {
				s.whole = false
				return
			}
			next := int32(len(s.parent))
			run := int16(1)
			if int(s.kind[at]) == k {
				run += s.run[at]
			}
			s.add(at, int16(k), run, p.trial.Values.Next(s.config[at], p.trial.Workload(k)))
			left[k]--
			p.trial.Placement.Put(k, s.node)
			visit(next, k)
			p.trial.Placement.Take(k, s.node)
			left[k]++
		}
	}
	visit(0, 0)
	if !s.whole {
		p.begin(s)
		return
	}
	p.fill(s, 1)
	p.count += len(s.parent)
}

func (s *shape) add(parent int32, kind, run int16, c place.Config) {
	s.parent = append(s.parent, parent)
	s.kind = append(s.kind, kind)
	s.run = append(s.run, run)
	s.config = append(s.config, c)
}

// atLeast is how many options the listing will find if slots alone limit them:
// multisets of at most room tasks and at most demand[k] of each kind. Where
// resources or rules limit too it returns 0: the listing finds out.
func (p *problem) atLeast(s *shape) float64 {
	room, limited := p.trial.FreeSlots(s.node)
	if !limited || hasRules(p.trial) {
		return 0
	}
	pending := 0
	for _, n := range p.demand {
		pending += n
	}
	room = max(0, min(room, pending)) // a node may have more slots than memory has bytes
	ways := make([]float64, room+1)
	ways[0] = 1
	for k, n := range p.demand {
		if n == 0 || !p.fits(k, s.node) {
			continue
		}
		for used := room; used >= 0; used-- {
			for j := 1; j <= min(n, used); j++ {
				ways[used] += ways[used-j]
			}
		}
	}
	sum := 0.0
	for _, w := range ways {
		sum += w
	}
	return sum
}

func hasRules(t *place.Trial) bool {
	for k := range t.Kinds() {
		for _, n := range t.Need(k) {
			if n > 0 {
				return true
			}
		}
	}
	c := t.Snapshot().Constraints()
	return len(c.AntiAffinity)+len(c.MaxPerNode) > 0
}

// fits asks the placement, leaving out spread, which the rows take care of.
func (p *problem) fits(kind, node int) bool {
	r := p.trial.Check(kind, node)
	return r == cluster.Fits || r == cluster.Skewed
}

// fill values the options from the given one on.
func (p *problem) fill(s *shape, from int) {
	p.trial.Values.Fill(s.config[from:])
	for _, c := range s.config[from:] {
		v := p.trial.Values.Value(c)
		s.value = append(s.value, p.trial.Utmost(c, s.node))
		s.worst = append(s.worst, v.Worst)
	}
	if from == 0 && math.IsInf(s.value[0], -1) {
		// Residents about which the model is silent: whatever is there already
		// counts as nothing rather than forbidding the node.
		s.value[0], s.worst[0] = 0, math.Inf(1)
	}
}

// worth is what the linear program takes the co-location on a node for.
func (p *problem) worth(node int) float64 {
	return p.trial.Utmost(p.trial.Config(node), node)
}

// tasks walks the tasks of an option by kind.
func (s *shape) tasks(option int32, yield func(kind int)) {
	for at := option; at > 0; at = s.parent[at] {
		yield(int(s.kind[at]))
	}
}
