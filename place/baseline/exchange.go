package baseline

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// exchange is a change of two nodes at once: what their states become, and by
// how much the score of the two rises.
type exchange struct {
	gain float64
	a, b int32
}

// reach is how far an exchange may go.
type reach uint8

const (
	// swaps is one task moved, or two of different kinds swapped.
	swaps reach = iota
	// splits is any split of the two nodes' put tasks between them.
	splits
)

// splitLimit bounds how many splits of a pair of nodes are looked at; pairs
// with more are left to swaps. 16 tasks of 7 workloads have about 4,000.
const splitLimit = 5000

// splitCost is the work of valuing one split of a pair in looks at a pair.
const splitCost = 8

// memoLimit bounds the memory of remembered exchanges.
const memoLimit = 1 << 19

// exchanges values exchanges between nodes. A co-location's score is the part
// of the objective that adds up over nodes; for the worst performance, which
// does not, see blend.
type exchanges struct {
	*Board
	blend  blend
	tables [][]float64 // by state; see table
	memo   [2]map[uint64]exchange
	bySum  map[string]exchange // best split, by shapes and the tasks of both; gain is the score of the two
	scores []float64           // by state; NaN while unknown
	spent  int                 // in looks at a pair of states; see splitCost

	pairs   []exchange // scratch: what one enumeration found
	config  []place.Config
	merged  []item
	sumKey  []byte
	by      []int
	weights int
}

// blend turns the worst performance, which a whole placement has but no node,
// into something that adds up: a smooth minimum, -log(sum exp(-sharp*w))/sharp
// over the nodes, linear around the placement at hand. It is exact enough to
// guide a search; which placement is best is decided by the true objective.
type blend struct {
	weight float64 // of exp(-sharp*(w-around)) of one node; 0 where worst does not count
	around float64
}

// sharp says how far below the others a performance must lie to count alone:
// at 40, 0.05 below counts 7 times as much.
const sharp = 40

// silence is the score of a co-location about which the model is silent: far
// below any other, but finite, so that differences keep their meaning.
const silence = -1e3

func newExchanges(b *Board) *exchanges {
	x := &exchanges{Board: b}
	x.forget()
	return x
}

func (x *exchanges) forget() {
	x.memo = [2]map[uint64]exchange{{}, {}}
	x.bySum = map[string]exchange{}
}

// focus sets the blend around the placement as it is. It reports whether
// scores changed.
func (x *exchanges) focus() bool {
	weight := x.trial.Values.Objective().Worst
	if weight == 0 {
		return false
	}
	worst := math.Inf(1)
	for _, s := range x.live {
		if w := x.trial.Values.Value(x.states[s].config).Worst; !math.IsInf(w, -1) {
			worst = min(worst, w)
		}
	}
	if math.IsInf(worst, 1) {
		worst = 0
	}
	sum := 0.0
	for _, s := range x.live {
		if w := x.trial.Values.Value(x.states[s].config).Worst; !math.IsInf(w, 0) {
			sum += float64(len(x.nodes[s])) * math.Exp(-sharp*(w-worst))
		}
	}
	x.blend = blend{weight / (sharp * max(1, sum)), worst}
	x.forget()
	x.scores = x.scores[:0]
	clear(x.tables)
	return true
}

// score is what a node in the state adds to the objective.
func (x *exchanges) score(s int32) float64 {
	for int(s) >= len(x.scores) {
		x.scores = append(x.scores, math.NaN())
	}
	if v := x.scores[s]; v == v {
		return v
	}
	value := x.trial.Values.Value(x.states[s].config)
	score := silence
	if value.Known {
		score = x.trial.Own(x.states[s].config, int(x.first[x.states[s].shape]))
		if x.blend.weight > 0 && !math.IsInf(value.Worst, 1) {
			score -= x.blend.weight * math.Exp(-sharp*(value.Worst-x.blend.around))
		}
	}
	x.scores[s] = score
	return score
}

// best is the exchange of a node in state s with another in state u that
// gains most, each node feasible by itself.
func (x *exchanges) best(s, u int32, r reach) exchange {
	x.spent++
	if x.rack(s) != x.rack(u) {
		e := exchange{a: s, b: u}
		for _, f := range x.apart(s, u, r) {
			if f.gain > e.gain {
				e = f
			}
		}
		return e
	}
	if r == swaps && x.trial.Kinds() <= tableKinds {
		return x.bestSwap(s, u)
	}
	if s > u {
		e := x.best2(u, s, r)
		return exchange{e.gain, e.b, e.a}
	}
	return x.best2(s, u, r)
}

// tableKinds is the most kinds of tasks for which tables pay.
const tableKinds = 64

// table holds by how much the score of a node in the state rises where one of
// its tasks (row: position in items plus 1; 0 is none) is replaced by another
// (column: kind plus 1; 0 is none); -Inf where that does not fit. The best swap
// of any two states is then a matter of additions.
func (x *exchanges) table(s int32) []float64 {
	for int(s) >= len(x.tables) {
		x.tables = append(x.tables, nil)
	}
	if x.tables[s] != nil {
		return x.tables[s]
	}
	kinds := x.trial.Kinds()
	items := x.states[s].items
	to := make([]int32, (len(items)+1)*(kinds+1))
	x.config = x.config[:0]
	for row := range len(items) + 1 {
		base, out := s, int32(-1)
		if row > 0 {
			out = items[row-1].kind
			base = x.less(s, out)
		}
		for column := range kinds + 1 {
			next := base
			if column > 0 {
				next = x.more(base, int32(column-1))
			}
			if int32(column-1) == out || !x.fits(next) {
				next = -1
			} else {
				x.config = append(x.config, x.states[next].config)
			}
			to[row*(kinds+1)+column] = next
		}
	}
	x.trial.Values.Fill(x.config)
	t := make([]float64, len(to))
	now := x.score(s)
	for i, next := range to {
		t[i] = math.Inf(-1)
		if next >= 0 {
			t[i] = x.score(next) - now
		}
	}
	x.tables[s] = t
	return t
}

// bestSwap is the best move or swap between two states. Where it gains
// nothing, the states of the exchange are left out.
func (x *exchanges) bestSwap(s, u int32) exchange {
	mine, theirs := x.table(s), x.table(u)
	items, others := x.states[s].items, x.states[u].items
	width := x.trial.Kinds() + 1
	best, out, in := tiny, -1, -1
	for i := range len(items) + 1 {
		row, column := mine[i*width:(i+1)*width], 0
		if i > 0 {
			column = int(items[i-1].kind) + 1
		}
		if g := row[0] + theirs[column]; i > 0 && g > best {
			best, out, in = g, i-1, -1
		}
		for j := range others {
			if g := row[others[j].kind+1] + theirs[(j+1)*width+column]; g > best {
				best, out, in = g, i-1, j
			}
		}
	}
	if best <= tiny {
		return exchange{}
	}
	e := exchange{best, s, u}
	if out >= 0 {
		e.a, e.b = x.less(e.a, items[out].kind), x.more(e.b, items[out].kind)
	}
	if in >= 0 {
		e.a, e.b = x.more(e.a, others[in].kind), x.less(e.b, others[in].kind)
	}
	return e
}

func (x *exchanges) best2(s, u int32, r reach) exchange {
	key := uint64(s)<<32 | uint64(u)
	if e, ok := x.memo[r][key]; ok {
		return e
	}
	if len(x.memo[r])+len(x.bySum) > memoLimit {
		x.forget()
	}
	e := x.value(s, u, r)
	x.memo[r][key] = e
	return e
}

func (x *exchanges) value(s, u int32, r reach) exchange {
	now := x.score(s) + x.score(u)
	sum := ""
	if r == splits {
		x.merge(s, u)
		if x.weights <= splitLimit {
			x.sumKey = binary.LittleEndian.AppendUint32(x.sumKey[:0], uint32(x.states[s].shape))
			x.sumKey = binary.LittleEndian.AppendUint32(x.sumKey, uint32(x.states[u].shape))
			for _, it := range x.merged {
				x.sumKey = binary.LittleEndian.AppendUint32(x.sumKey, uint32(it.kind))
				x.sumKey = binary.LittleEndian.AppendUint32(x.sumKey, uint32(it.count))
			}
			if e, ok := x.bySum[string(x.sumKey)]; ok {
				e.gain -= now
				return e
			}
			sum = string(x.sumKey)
		}
	}
	x.list(s, u, r)
	best := exchange{gain: math.Inf(-1), a: s, b: u}
	for _, e := range x.pairs {
		if e.gain > best.gain {
			best = e
		}
	}
	if sum != "" {
		x.bySum[sum] = best
	}
	best.gain -= now
	return best
}

// merge collects the put tasks of two states and counts how many ways there
// are to split them, at most splitLimit+1.
func (x *exchanges) merge(s, u int32) {
	x.merged = x.merged[:0]
	a, b := x.states[s].items, x.states[u].items
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].kind < b[0].kind:
			x.merged, a = append(x.merged, a[0]), a[1:]
		case len(a) == 0 || b[0].kind < a[0].kind:
			x.merged, b = append(x.merged, b[0]), b[1:]
		default:
			x.merged = append(x.merged, item{a[0].kind, a[0].count + b[0].count})
			a, b = a[1:], b[1:]
		}
	}
	x.weights = 1
	for _, it := range x.merged {
		x.weights = min(splitLimit+1, x.weights*int(it.count+1))
	}
}

// list enumerates the exchanges within reach into pairs. Each gain is the
// score of both nodes afterwards.
func (x *exchanges) list(s, u int32, r reach) {
	x.pairs = x.pairs[:0]
	if r == splits {
		x.merge(s, u)
	}
	if r == splits && x.weights <= splitLimit {
		x.split(x.empty(s), x.empty(u), 0)
	} else {
		x.swap(s, u)
	}
	// One call of the model for all that is new is much cheaper than many.
	x.config = x.config[:0]
	for _, e := range x.pairs {
		x.config = append(x.config, x.states[e.a].config, x.states[e.b].config)
	}
	x.trial.Values.Fill(x.config)
	for i := range x.pairs {
		e := &x.pairs[i]
		e.gain = x.score(e.a) + x.score(e.b)
	}
	x.spent += splitCost * len(x.pairs)
}

// empty is the state of the same shape with nothing put.
func (x *exchanges) empty(s int32) int32 {
	shape := x.states[s].shape
	return x.number(shape, nil, x.base[shape])
}

// split appends all feasible ways to deal the merged items from i on to two
// nodes in states a and b.
func (x *exchanges) split(a, b int32, i int) {
	if i == len(x.merged) {
		x.pairs = append(x.pairs, exchange{a: a, b: b})
		return
	}
	it := x.merged[i]
	// b gets all of the kind first, then one after another goes over to a. What
	// is too much for a stays too much as more is dealt.
	bs := make([]int32, it.count+1)
	bs[0] = b
	for n := range it.count {
		bs[n+1] = x.more(bs[n], it.kind)
	}
	for n := range it.count + 1 {
		if n > 0 {
			a = x.more(a, it.kind)
		}
		if !x.fits(a) {
			return
		}
		if rest := bs[it.count-n]; x.fits(rest) {
			x.split(a, rest, i+1)
		}
	}
}

// swap appends the feasible moves of one task and swaps of two.
func (x *exchanges) swap(s, u int32) {
	try := func(a, b int32) {
		if x.fits(a) && x.fits(b) {
			x.pairs = append(x.pairs, exchange{a: a, b: b})
		}
	}
	items, others := len(x.states[s].items), len(x.states[u].items)
	for i := range items {
		out := x.states[s].items[i].kind
		from := x.less(s, out)
		to := x.more(u, out)
		try(from, to)
		for j := range others {
			if in := x.states[u].items[j].kind; in != out {
				try(x.more(from, in), x.less(to, in))
			}
		}
	}
	for j := range others {
		in := x.states[u].items[j].kind
		try(x.more(s, in), x.less(u, in))
	}
}

// apply makes the exchange happen on two nodes, unless a constraint that
// spans nodes forbids it; it reports whether it did.
func (x *exchanges) apply(n, m int, e exchange) bool {
	if !x.coupled {
		x.set(n, e.a)
		x.set(m, e.b)
		return true
	}
	before := x.skews()
	s, u := x.at[n], x.at[m]
	x.drop(n, e.a)
	x.drop(m, e.b)
	if x.fillChecked(n, s, e.a) && x.fillChecked(m, u, e.b) && !x.skewRose(before) {
		x.become(n, e.a)
		x.become(m, e.b)
		return true
	}
	x.restore(n, s)
	x.restore(m, u)
	return false
}

// fillChecked puts what a node lacks of state to, of what it was to keep from
// state from, as long as it fits. A skew halfway may be right at the end.
func (x *exchanges) fillChecked(node int, from, to int32) bool {
	for _, it := range x.states[to].items {
		for range it.count - x.states[from].count(it.kind) {
			if r := x.trial.Check(int(it.kind), node); r != cluster.Fits && r != cluster.Skewed {
				return false
			}
			x.trial.Put(int(it.kind), node)
		}
	}
	return true
}

// restore puts a node whose tasks were changed behind the board's back into
// the state that the board has it in.
func (x *exchanges) restore(node int, s int32) {
	for k := range x.trial.Kinds() {
		want := int(x.states[s].count(int32(k)))
		for x.trial.PutOn(k, node) > want {
			x.trial.Take(k, node)
		}
		for x.trial.PutOn(k, node) < want {
			x.trial.Put(k, node)
		}
	}
}

func (x *exchanges) skews() []int {
	skew := make([]int, len(x.trial.Workloads()))
	for w := range skew {
		skew[w] = x.trial.Skew(w)
	}
	return skew
}

func (x *exchanges) skewRose(before []int) bool {
	for w, was := range before {
		if x.trial.Skew(w) > was {
			return true
		}
	}
	return false
}

// alternatives lists the exchanges of two states that gain, best first, at
// most n: where constraints that span nodes forbid the best one, another may do.
func (x *exchanges) alternatives(s, u int32, r reach, n int) []exchange {
	var better []exchange
	for _, e := range x.apart(s, u, r) {
		if e.gain > tiny {
			better = append(better, e)
		}
	}
	slices.SortStableFunc(better, func(a, b exchange) int {
		switch {
		case a.gain > b.gain:
			return -1
		case a.gain < b.gain:
			return 1
		}
		return 0
	})
	return better[:min(n, len(better))]
}
