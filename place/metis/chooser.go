package metis

import (
	"fmt"
	"math"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/place/encode"
)

// chooser goes down the hierarchy for one task after another.
type chooser struct {
	*baseline.Board
	p     *Policy
	trial *place.Trial
	enc   *encode.Services
	looks looks
	tree  tree

	demand   []float64 // tasks to come, by workload number
	expected float64   // how many of them are not pending
	value    float64   // of all nodes
	tasks    int       // on them
	kinds    int       // workloads of tasks to come
	strange  bool      // nothing like it in training: nodes by their gain, workloads in even turns
	steep    bool      // the objective falls by more than any in training
	every    int
	since    int // tasks put since the last look
	turn     int // the part whose turn it is, with Even

	pass, partPass num.Pass
	data           []float32
	scores         []float32
	list           []int32

	chosen, second int // nodes; second is -1 where there was no other choice
}

func newChooser(p *Policy, req place.Request, b *baseline.Board) *chooser {
	t := b.Trial()
	c := &chooser{Board: b, p: p, trial: t, enc: encode.NewServices(t.Values)}
	workloads := t.Workloads()
	c.demand = make([]float64, len(workloads))
	for i := range t.Tasks() {
		c.demand[t.Workload(t.Kind(i))]++
	}
	var come []int // workloads
	for w, name := range workloads {
		c.demand[w] += req.Expected[name]
		c.expected += req.Expected[name]
		if c.demand[w] > 0 {
			come = append(come, w)
		}
	}
	c.kinds = len(come)
	if p.o.Picker == nil && len(req.View.Nodes()) > 0 {
		c.steep = encode.Steep(t.Values, t.Values.Class(t.Config(0)), come)
	}
	// A look costs more the more workloads there are, and each of them is put the
	// more seldom.
	c.every = max(1, int(p.o.Refresh*max(1, float64(c.kinds)/few)*float64(len(req.View.Nodes()))))
	c.begin()
	return c
}

// few is the number of workloads up to which nothing is left out in a look.
const few = 7

// Training has at most Many workloads, and mostly more than Sparse tasks a node. Where
// every task may have a node of its own, nothing is to be kept for what comes:
// greedy is best. With 30 workloads the network sees too little of what could
// still become of a node and is worse than the gain alone, while that of the
// parts, which knows how full they are, stays better than nothing
// (docs/services.md).
const (
	Many   = 15
	Sparse = 1.8
)

// begin books the board as it is.
func (c *chooser) begin() {
	c.value, c.tasks = 0, 0
	for n := range c.trial.Snapshot().Nodes() {
		c.value += c.worth(n)
		for _, k := range c.trial.Counts(n) {
			c.tasks += k
		}
	}
	c.since = c.every
	total := float64(c.tasks)
	for _, d := range c.demand {
		total += d
	}
	greedy := c.steep || c.p.o.Picker == nil && total < Sparse*float64(len(c.trial.Snapshot().Nodes()))
	c.strange = greedy || c.p.o.Picker == nil && c.kinds > Many
	c.looks, c.tree = newLooks(c), tree{}
	if !c.Coupled() && (c.p.o.Divide == Even || c.p.o.Divide == Hierarchy && !greedy) {
		c.tree = newTree(c, c.p.o.Parts)
	}
}

// Renew implements baseline.Renewer. What is still to come is known by the
// chooser's own Put and Take alone, which no exchange changes.
func (c *chooser) Renew() { c.begin() }

// worth is the value of a node; one about which the model is silent counts
// for nothing.
func (c *chooser) worth(node int) float64 {
	if v := c.trial.Values.Value(c.trial.Config(node)).Sum; !math.IsInf(v, -1) {
		return v
	}
	return 0
}

// Choose implements baseline.Chooser.
func (c *chooser) Choose(kind int) int {
	c.look()
	c.chosen, c.second = -1, -1
	switch {
	case c.tree.parts == nil:
		c.flat(kind)
	case c.p.o.Divide == Even:
		c.even(kind)
	case c.p.o.Picker != nil:
		c.descend(kind)
	default:
		c.chosen = int(c.tree.champion(0, kind).node)
	}
	return c.chosen
}

// look looks at the whole cluster again where it is time to.
func (c *chooser) look() {
	if c.since >= c.every {
		c.looks.renew()
		c.since = 0
	}
}

// flat chooses among the states that take the task.
func (c *chooser) flat(kind int) {
	if c.p.o.Picker == nil {
		c.chosen, c.second = c.highest(kind)
		return
	}
	w := c.trial.Workload(kind)
	c.list = c.list[:0]
	for _, s := range c.Live() {
		if c.trial.Check(kind, int(c.Nodes(s)[0])) == cluster.Fits {
			c.list = append(c.list, s)
		}
	}
	if len(c.list) == 0 {
		return
	}
	score := func(s int32) float32 { return c.looks.score(int(c.Nodes(s)[0]), w) }
	c.list = shortlist(c.list, c.p.o.Shortlist, score)
	nodes := c.list
	for i, s := range nodes {
		nodes[i] = c.Nodes(s)[0]
	}
	c.chosen = c.pick(nodes, w)
}

// highest are the nodes of all that take a task of the kind whose scores are the
// highest and the next; -1 where there is none.
func (c *chooser) highest(kind int) (best, second int) {
	w := c.trial.Workload(kind)
	best, second = -1, -1
	var top, next float32
	for _, s := range c.Live() {
		n := int(c.Nodes(s)[0])
		if c.trial.Check(kind, n) != cluster.Fits {
			continue
		}
		switch x := c.looks.score(n, w); {
		case best < 0 || x > top || x == top && n < best:
			best, second, top, next = n, best, x, top
		case second < 0 || x > next:
			second, next = n, x
		}
	}
	return best, second
}

// shortlist keeps the n states of the highest scores, best first.
func shortlist(states []int32, n int, score func(int32) float32) []int32 {
	kept := 0
	for _, s := range states {
		at := min(kept, n)
		for at > 0 && (score(s) > score(states[at-1]) || score(s) == score(states[at-1]) && s < states[at-1]) {
			if at < n {
				states[at] = states[at-1]
			}
			at--
		}
		if at < n {
			states[at] = s
			kept = min(kept+1, n)
		}
	}
	return states[:kept]
}

// pick lets the Picker choose a node.
func (c *chooser) pick(nodes []int32, w int) int {
	c.scores = c.scores[:0]
	for _, n := range nodes {
		c.scores = append(c.scores, c.looks.sure(int(n), w))
	}
	m := c.rows(len(nodes), encode.ServiceFeatures)
	for i, n := range nodes {
		copy(m.Row(i), c.looks.of(int(n)).row(w))
	}
	return int(nodes[c.p.o.Picker.Node(m, c.enc.Context(w), c.scores)])
}

func (c *chooser) rows(n, features int) num.Matrix {
	if len(c.data) < n*features {
		c.data = make([]float32, 2*n*features)
	}
	return num.Matrix{Rows: n, Cols: features, Data: c.data[:n*features]}
}

// Put implements baseline.Chooser.
func (c *chooser) Put(kind, node int) {
	before := c.worth(node)
	c.looks.worsen(node)
	c.leave(node)
	c.Board.Put(kind, node)
	c.enter(node)
	gain := c.worth(node) - before
	c.value += gain
	c.looks.worsen(node)
	c.tasks++
	c.since++
	c.demand[c.trial.Workload(kind)]--
	if c.p.o.Picker != nil {
		c.p.o.Picker.Placed(gain / c.enc.Unit())
	}
}

// Take implements baseline.Chooser.
func (c *chooser) Take(kind, node int) {
	c.value -= c.worth(node)
	c.looks.worsen(node)
	c.leave(node)
	c.Board.Take(kind, node)
	c.enter(node)
	c.value += c.worth(node)
	c.looks.worsen(node)
	c.tasks--
	c.since++
	c.demand[c.trial.Workload(kind)]++
}

func (c *chooser) leave(node int) {
	c.looks.leave(node)
	c.tree.count(node, -1)
}

func (c *chooser) enter(node int) {
	c.looks.enter(node)
	c.tree.count(node, 1)
}

// Reason implements baseline.Chooser.
func (c *chooser) Reason(kind, node int) place.Reason {
	w := c.trial.Workload(kind)
	nodes := c.trial.Snapshot().Nodes()
	beside := c.trial.Colocation(node).Key()
	if beside == "" {
		beside = "nothing"
	}
	gain := c.trial.Gain(kind, node)
	c.looks.sure(node, w)
	l := c.looks.of(node)
	if c.strange {
		c.enc.Encode(l.row(w), l.State, w)
	}
	r := place.Reason{
		Words: fmt.Sprintf("%s beside %s adds %+.4g to %s now", nodes[node].Name, beside, gain, c.trial.Values.Objective()),
		Scores: map[string]float64{
			"gain": place.Finite(gain), "score": float64(l.scores[w]), "demand_after": float64(l.row(w)[encode.ServiceAfter]),
		},
	}
	lead := l.row(w)[encode.ServiceLead]
	switch {
	case math.IsInf(gain, -1):
		r.Words = fmt.Sprintf("%s beside %s: the model is silent about it", nodes[node].Name, beside)
	case lead >= -1e-6:
		r.Words += ", more than anywhere else"
	default:
		r.Words += fmt.Sprintf(", %.3g of a task's performance less than elsewhere, which is kept for what comes", -lead)
	}
	if c.second >= 0 {
		r.Scores["next_score"] = float64(c.looks.of(c.second).scores[w])
	}
	return r
}
