package metis

import (
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place/encode"
)

// tree splits the nodes into parts, level by level. A part's champion for a
// kind of task is the node that the sub-policies below would take: that of a
// smallest part by its nodes' scores, that of a larger one by choosing among
// the champions of its parts. Going down from the top by the best choice at
// every level ends at the champion of the whole, so champions are kept until
// something in their part changes.
type tree struct {
	c     *chooser
	parts []part  // the first is the cluster
	leaf  []int32 // by node: its smallest part
	least []int32 // the smallest parts
	epoch int     // since when champions count
}

type part struct {
	encode.Part
	parent    int32
	children  []int32
	from, to  int // nodes of a smallest part
	used, all float64
	version   int
	champions []champion // by kind
}

type champion struct {
	node    int32 // -1 where no node takes the task
	score   float32
	epoch   int
	version int
}

func newTree(c *chooser, k int) tree {
	n := len(c.trial.Snapshot().Nodes())
	t := tree{c: c, leaf: make([]int32, n), epoch: 1}
	t.split(-1, 0, n, k)
	for node := range n {
		t.count(node, 1)
	}
	return t
}

// split makes the part of the nodes from..to and, where they are more than k,
// its parts, of equal size but for rounding.
func (t *tree) split(parent int32, from, to, k int) int32 {
	id := int32(len(t.parts))
	t.parts = append(t.parts, part{parent: parent, from: from, to: to, champions: make([]champion, t.c.trial.Kinds())})
	if to-from <= k {
		t.least = append(t.least, id)
		for n := from; n < to; n++ {
			t.leaf[n] = id
		}
		return id
	}
	children := make([]int32, 0, k)
	for i := range k {
		children = append(children, t.split(id, from+(to-from)*i/k, from+(to-from)*(i+1)/k, k))
	}
	t.parts[id].children = children
	return id
}

// count enters a node as it is into the counts of its parts, or takes it out.
func (t *tree) count(node, by int) {
	if t.parts == nil {
		return
	}
	l := t.c.looks.of(node)
	tasks := 0
	for _, n := range t.c.trial.Counts(node) {
		tasks += n
	}
	value := t.c.worth(node)
	for i := t.leaf[node]; i >= 0; i = t.parts[i].parent {
		p := &t.parts[i]
		p.version++
		p.Nodes += by
		p.Tasks += by * tasks
		p.Value += float64(by) * value
		p.all += float64(by) * l.slots
		p.used += float64(by) * l.slots * l.Fill
		if l.Room > 0 {
			p.Open += by
		}
		p.Fill = 0
		if p.all > 0 {
			p.Fill = p.used / p.all
		}
	}
}

// forget makes no champion count any more.
func (t *tree) forget() { t.epoch++ }

// champion is where the best choices lead from a part down.
func (t *tree) champion(id int32, kind int) champion {
	p := &t.parts[id]
	if c := p.champions[kind]; c.epoch == t.epoch && c.version == p.version {
		return c
	}
	best := champion{node: -1, epoch: t.epoch, version: p.version}
	if p.children == nil {
		w := t.c.trial.Workload(kind)
		for n := p.from; n < p.to; n++ {
			if t.c.trial.Check(kind, n) != cluster.Fits {
				continue
			}
			if s := t.c.looks.score(n, w); best.node < 0 || s > best.score {
				best.node, best.score = int32(n), s
			}
		}
	} else if rows, open := t.champions(id, kind); len(open) > 0 {
		at := 0
		if len(open) > 1 {
			at = num.Highest(t.c.partPass.Score(t.c.p.nets.Part, rows, t.c.enc.Context(t.c.trial.Workload(kind))))
		}
		won := t.parts[open[at]].champions[kind]
		best.node, best.score = won.node, won.score
	}
	t.parts[id].champions[kind] = best
	return best
}

// champions are the features of the parts of a part that take the task, and
// which these are. Where the score of a champion is rough while that of another
// is not, its part is left out; where all are, the highest stands alone.
func (t *tree) champions(id int32, kind int) (rows num.Matrix, open []int32) {
	w := t.c.trial.Workload(kind)
	best := int32(-1)
	score := func(child int32) float32 { return t.parts[child].champions[kind].score }
	for _, child := range t.parts[id].children {
		if t.champion(child, kind).node < 0 {
			continue
		}
		if best < 0 || score(child) > score(best) {
			best = child
		}
		open = append(open, child)
	}
	rough := func(child int32) bool {
		return t.c.looks.of(int(t.parts[child].champions[kind].node)).rough[w]
	}
	if best >= 0 {
		all := rough(best)
		open = slices.DeleteFunc(open, func(child int32) bool { return child != best && (all || rough(child)) })
	}
	rows = t.c.rows(len(open), encode.PartFeatures)
	for i, child := range open {
		p := &t.parts[child]
		row := rows.Row(i)
		copy(row, t.c.looks.of(int(p.champions[kind].node)).row(w))
		t.c.enc.EncodePart(row, p.Part, score(child)-score(best))
	}
	return rows, open
}

// descend goes down with the Picker choosing at every level.
func (c *chooser) descend(kind int) {
	id := int32(0)
	w := c.trial.Workload(kind)
	if c.tree.champion(0, kind).node < 0 {
		return
	}
	for c.tree.parts[id].children != nil {
		rows, open := c.tree.champions(id, kind)
		at := 0
		if len(open) > 1 {
			c.scores = append(c.scores[:0], c.partPass.Score(c.p.nets.Part, rows, c.enc.Context(w))...)
			at = c.p.o.Picker.Part(rows, c.enc.Context(w), c.scores)
		}
		id = open[at]
	}
	c.inside(id, kind)
}

// even takes the next part in turn that takes the task.
func (c *chooser) even(kind int) {
	for range c.tree.least {
		id := c.tree.least[c.turn%len(c.tree.least)]
		c.turn++
		if c.tree.champion(id, kind).node < 0 {
			continue
		}
		c.inside(id, kind)
		return
	}
}

// inside chooses a node of a smallest part.
func (c *chooser) inside(id int32, kind int) {
	if c.p.o.Picker == nil {
		c.chosen = int(c.tree.champion(id, kind).node)
		return
	}
	w := c.trial.Workload(kind)
	c.list = c.list[:0]
	seen := map[int32]bool{}
	for n := c.tree.parts[id].from; n < c.tree.parts[id].to; n++ {
		if c.trial.Check(kind, n) == cluster.Fits && !seen[c.looks.at[n]] {
			seen[c.looks.at[n]] = true
			c.list = append(c.list, int32(n))
		}
	}
	c.chosen = c.pick(c.list, w)
}
