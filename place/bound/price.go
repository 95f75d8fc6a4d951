package bound

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/cotenant/cotenant/internal/lp"
)

// beam is how many options of each size the heuristic pricing keeps where the
// options are too many to list.
// The certificate, which looks once, keeps more.
const (
	beam     = 48
	wideBeam = 400
)

// pricing is the state of one linear program over a problem: what is still to
// be placed, and which options are allowed.
type pricing struct {
	*problem
	demand  []int   // by kind
	free    [][]int // nodes to fill, by class
	caps    []float64
	atLeast float64 // options with a lower worst performance are not allowed
	score   []float64
	columns []column // by lp.Column.Tag
	banned  map[column]bool
	draw    *rand.Rand // of dive; nil takes the largest fraction
	known   bool       // price the options known, look for no new ones
	exact   bool       // spread rows are met exactly, not at most: see targets
}

type column struct {
	class  int
	option int32
}

func (p *problem) pricing() *pricing {
	q := &pricing{problem: p, demand: slices.Clone(p.demand), caps: slices.Clone(p.caps), atLeast: math.Inf(-1)}
	for i := range p.classes {
		q.free = append(q.free, slices.Clone(p.classes[i].nodes))
	}
	return q
}

func (q *pricing) rhs() []float64 {
	b := make([]float64, 0, len(q.demand)+len(q.free)+len(q.caps))
	for _, n := range q.demand {
		b = append(b, float64(n))
	}
	for _, nodes := range q.free {
		b = append(b, float64(len(nodes)))
	}
	for _, c := range q.caps {
		b = append(b, max(0, c))
	}
	return b
}

// slacks are the columns that leave room in the spread rows.
func (q *pricing) slacks() []lp.Column {
	if q.exact {
		return []lp.Column{}
	}
	out := make([]lp.Column, len(q.caps))
	for i := range out {
		out[i] = lp.Column{Rows: []int32{int32(q.spreadRow(i))}, Vals: []float64{1}, Tag: -1}
	}
	return out
}

// column writes an option of a class as a column of the linear program.
func (q *pricing) column(class int, option int32) lp.Column {
	s := q.classes[class].shape
	c := lp.Column{
		Cost: s.value[option], Rows: []int32{int32(q.classRow(class))}, Vals: []float64{1}, Tag: len(q.columns),
	}
	q.columns = append(q.columns, column{class, option})
	add := func(row int32) {
		if i := slices.Index(c.Rows, row); i >= 0 {
			c.Vals[i]++
			return
		}
		c.Rows, c.Vals = append(c.Rows, row), append(c.Vals, 1)
	}
	s.tasks(option, func(kind int) {
		add(int32(kind))
		if r := q.classes[class].rows[kind]; r >= 0 {
			add(int32(q.spreadRow(int(r))))
		}
	})
	return c
}

// prices gives each kind its price in a class: its own row's and its spread
// row's.
func (q *pricing) prices(class int, dual []float64) []float64 {
	out := slices.Clone(dual[:len(q.demand)])
	for k, r := range q.classes[class].rows {
		if r >= 0 {
			price := dual[q.spreadRow(int(r))]
			if !q.exact {
				price = max(0, price)
			}
			out[k] += price
		}
	}
	return out
}

// most is how many tasks of each kind a node of the class may be given.
func (q *pricing) most(class int) []int {
	most := slices.Clone(q.demand)
	for k, r := range q.classes[class].rows {
		if r >= 0 {
			most[k] = min(most[k], int(max(0, q.caps[r])))
		}
	}
	return most
}

// best finds the allowed option of a class with the highest value minus
// prices, and those that led on the way there (they differ, which helps the
// linear program). In phase 1 values count as 0.
func (q *pricing) best(class int, prices []float64, phase int) (option int32, reduced float64, others []int32) {
	s := q.classes[class].shape
	if cap(q.score) < len(s.parent) {
		q.score = make([]float64, 2*len(s.parent))
	}
	score := q.score[:len(s.parent)]
	most := q.most(class)
	reduced = math.Inf(-1)
	for i := range score {
		if i == 0 {
			score[0] = 0
		} else {
			k := s.kind[i]
			score[i] = score[s.parent[i]] - prices[k]
			if int(s.run[i]) > most[k] {
				score[i] = math.Inf(-1) // and so for all that hold it
			}
		}
		v := s.value[i]
		if s.worst[i] < q.atLeast || math.IsInf(v, -1) {
			continue
		}
		r := score[i]
		if phase == 2 {
			r += v
		}
		if r > reduced && !(len(q.banned) > 0 && q.banned[column{class, int32(i)}]) {
			reduced = r
			others = append(others, option)
			option = int32(i)
		}
	}
	if n := len(others); n > 3 {
		others = others[n-3:]
	}
	return option, reduced, others
}

// generate is the pricing step of column generation.
func (q *pricing) generate(dual []float64, phase int) []lp.Column {
	type found struct {
		class   int
		option  int32
		reduced float64
	}
	var all []found
	for i := range q.classes {
		if len(q.free[i]) == 0 {
			continue
		}
		prices := q.prices(i, dual)
		mu := dual[q.classRow(i)]
		option, reduced, others := q.best(i, prices, phase)
		if !q.classes[i].shape.whole && !q.known && reduced-mu <= 1e-8 {
			// Nothing among the options known so far: look for new ones.
			q.search(q.classes[i].shape, prices, phase, beam)
			option, reduced, others = q.best(i, prices, phase)
		}
		if reduced-mu > 1e-8 {
			all = append(all, found{i, option, reduced - mu})
			if len(q.classes) < 8 {
				for _, o := range others {
					all = append(all, found{i, o, 0})
				}
			}
		}
	}
	sort.SliceStable(all, func(a, b int) bool { return all[a].reduced > all[b].reduced })
	columns := make([]lp.Column, len(all))
	for i, f := range all {
		columns[i] = q.column(f.class, f.option)
	}
	return columns
}

// search adds options to a shape whose options are too many to list: by size,
// the best by value minus prices are extended by every kind.
func (q *pricing) search(s *shape, prices []float64, phase, width int) {
	p := q.problem
	type entry struct {
		option int32
		counts []uint8
		score  float64
	}
	front := []entry{{0, make([]uint8, len(q.demand)), 0}}
	if s.met == nil {
		s.met = map[string]int32{string(make([]byte, len(q.demand))): 0}
	}
	for len(front) > 0 {
		from := len(s.parent)
		var next []entry
		seen := map[string]bool{}
		for _, e := range front {
			for k := range q.demand {
				if int(e.counts[k]) >= q.demand[k] {
					continue
				}
				counts := slices.Clone(e.counts)
				counts[k]++
				key := string(counts)
				if seen[key] {
					continue
				}
				seen[key] = true
				option, known := s.met[key]
				if !known {
					if !p.fitsAfter(s.node, e.counts, k) {
						continue
					}
					option = int32(len(s.parent))
					s.add(e.option, int16(k), int16(counts[k]), p.trial.Values.Next(s.config[e.option], p.trial.Workload(k)))
					s.met[key] = option
				}
				next = append(next, entry{option, counts, e.score - prices[k]})
			}
		}
		p.fill(s, from)
		worth := func(e entry) float64 {
			if phase == 1 {
				return e.score
			}
			return e.score + s.value[e.option]
		}
		sort.SliceStable(next, func(a, b int) bool { return worth(next[a]) > worth(next[b]) })
		front = next[:min(width, len(next))]
	}
}

// fitsAfter asks whether one more task of kind k fits after the given ones.
func (p *problem) fitsAfter(node int, counts []uint8, k int) bool {
	t := p.trial.Placement
	for kind, n := range counts {
		for range n {
			t.Put(kind, node)
		}
	}
	ok := p.fits(k, node)
	for kind, n := range counts {
		for range n {
			t.Take(kind, node)
		}
	}
	return ok
}

// certificate is the bound that weak duality gives for any dual prices: what
// the rows are worth at those prices plus, for each node, the best option at
// them. proven is false where a shape's options were not all looked at.
func (q *pricing) certificate(dual []float64) (bound float64, proven bool) {
	proven = true
	for k, n := range q.demand {
		bound += dual[k] * float64(n)
	}
	for i, c := range q.caps {
		bound += max(0, dual[q.spreadRow(i)]) * c
	}
	for i := range q.classes {
		s := q.classes[i].shape
		prices := q.prices(i, dual)
		if !s.whole {
			proven = false
			q.search(s, prices, 2, wideBeam)
		}
		_, reduced, _ := q.best(i, prices, 2)
		bound += float64(len(q.free[i])) * reduced
	}
	return bound, proven
}

func (q *pricing) solve(o lp.Options) lp.Result {
	if o.Start == nil {
		o.Start = q.slacks()
		for i := range q.classes {
			if len(q.free[i]) > 0 {
				o.Start = append(o.Start, q.column(i, 0))
			}
		}
	}
	return lp.Maximize(q.rhs(), q.generate, o)
}
