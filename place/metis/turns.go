package metis

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place/encode"
)

// turns is a chooser that says which workload is next, too.
type turns struct {
	*chooser
	all   []float64 // tasks of the request by kind
	pass  num.Pass
	list  []int32 // kinds that are left and fit
	nodes []int32 // that they would get
	data  []float32
	// drawn, where not nil, draws the turns by their probabilities; without, the
	// most probable is taken.
	drawn  *rand.Rand
	shares []float32
}

func newTurns(c *chooser) *turns {
	t := &turns{chooser: c, all: make([]float64, c.trial.Kinds())}
	for i := range c.trial.Tasks() {
		t.all[c.trial.Kind(i)]++
	}
	return t
}

// Next implements baseline.Orderer. Of more kinds than training has, too, the
// largest share that is left goes first: to ask the network is to ask where a
// task of every kind would go, for every task.
func (t *turns) Next(left []int) int {
	c := t.chooser
	c.look()
	if c.strange || len(t.all) > Many {
		return t.evenly(left)
	}
	t.list, t.nodes = t.list[:0], t.nodes[:0]
	highest := 0.0
	for k, n := range left {
		if n == 0 {
			continue
		}
		if node := c.likes(k); node >= 0 {
			t.list, t.nodes = append(t.list, int32(k)), append(t.nodes, node)
			highest = max(highest, float64(n)/t.all[k])
		}
	}
	if len(t.list) == 0 {
		return -1
	}
	if len(t.list) == 1 {
		return int(t.list[0])
	}
	// Not the chooser's rows, which the questions below fill.
	t.data = slices.Grow(t.data[:0], len(t.list)*encode.TurnFeatures)[:len(t.list)*encode.TurnFeatures]
	m := num.Matrix{Rows: len(t.list), Cols: encode.TurnFeatures, Data: t.data}
	for i, k := range t.list {
		w := c.trial.Workload(int(k))
		best := c.looks.sure(int(t.nodes[i]), w)
		row := m.Row(i)
		copy(row, c.looks.of(int(t.nodes[i])).row(w))
		c.enc.EncodeTurn(row, w, float64(left[k])/t.all[k], highest, float64(best)-c.runnerUp(int(k), int(t.nodes[i]), w))
	}
	scores := t.pass.Score(c.p.nets.Turn, m, c.enc.Overview())
	if c.p.o.Picker != nil {
		return int(t.list[c.p.o.Picker.Turn(m, c.enc.Overview(), scores)])
	}
	if t.drawn != nil {
		return int(t.list[t.draw(scores)])
	}
	return int(t.list[num.Highest(scores)])
}

// evenly is the kind of which the largest share is left, of those that fit.
func (t *turns) evenly(left []int) int {
	share := func(k int32) float64 { return float64(left[k]) / t.all[k] }
	t.list = t.list[:0]
	for k := range left {
		t.list = append(t.list, int32(k))
	}
	if t.drawn != nil { // those of like shares in any order
		t.drawn.Shuffle(len(t.list), func(i, j int) { t.list[i], t.list[j] = t.list[j], t.list[i] })
	}
	slices.SortStableFunc(t.list, func(a, b int32) int { return cmp.Compare(share(b), share(a)) })
	for _, k := range t.list {
		if left[k] > 0 && t.likes(int(k)) >= 0 {
			return int(k)
		}
	}
	return -1
}

// likes is the node that a task of a kind would get, -1 for none.
func (c *chooser) likes(kind int) int32 {
	if c.tree.parts != nil {
		return c.tree.champion(0, kind).node
	}
	best, _ := c.highest(kind)
	return int32(best)
}

// runnerUp is the highest score for a task among the nodes that are in another
// situation than one; far below where there is none.
func (c *chooser) runnerUp(kind, than, w int) float64 {
	second := math.Inf(-1)
	for _, s := range c.Live() {
		n := int(c.Nodes(s)[0])
		if c.looks.at[n] != c.looks.at[than] && c.trial.Check(kind, n) == cluster.Fits {
			second = max(second, float64(c.looks.score(n, w)))
		}
	}
	return second
}
