package services

import (
	"fmt"
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// board is the cluster as it truly is: what each node runs and has room for,
// and how well its tasks do. A change costs the node it happens on.
type board struct {
	*cluster.Placement
	kind   map[string]int32 // by workload
	values *place.Values    // Sum is the sum of performances

	config  []place.Config
	rate    []float64 // by node: the performance of its tasks
	moving  []int     // [node*kinds+kind]: tasks without performance now
	movers  []int     // by node
	parts   map[place.Config][]float64
	model   interference.Model
	sum     float64
	running int
	silent  place.Config // a co-location about which the truth is silent; -1
	skew    []int        // by kind
	skewed  int          // kinds whose spread is broken
}

func newBoard(s *cluster.Snapshot, truth interference.Model, memory *Memory) *board {
	workloads := s.Workloads()
	one := make([]cluster.Task, len(workloads))
	names := make([]string, len(workloads))
	b := &board{kind: make(map[string]int32, len(workloads)), model: truth, silent: -1}
	// With one task of each, kinds are workloads, in their order.
	for i, w := range workloads {
		one[i] = cluster.Task{Workload: w.Name}
		names[i] = w.Name
		b.kind[w.Name] = int32(i)
	}
	b.Placement = cluster.NewPlacement(s, one)
	if memory == nil {
		memory = &Memory{}
	}
	if memory.values == nil || !slices.Equal(memory.workloads, names) {
		total := make([]int, len(workloads))
		if len(total) > 0 {
			total[0] = 1 // so that Sum is not divided
		}
		*memory = Memory{
			workloads: names, values: place.NewValues(truth, place.MeanPerformance, names, total, 0), parts: map[place.Config][]float64{},
		}
	}
	b.values, b.parts = memory.values, memory.parts
	nodes := s.Nodes()
	b.config = make([]place.Config, len(nodes))
	for n := range nodes {
		b.config[n] = b.values.Empty(nodes[n].Class)
	}
	b.rate = make([]float64, len(nodes))
	b.moving = make([]int, len(nodes)*len(workloads))
	b.movers = make([]int, len(nodes))
	b.skew = make([]int, len(workloads))
	return b
}

func (b *board) put(kind, node int) {
	b.Put(kind, node)
	b.running++
	b.become(node, b.values.Next(b.config[node], kind))
	b.countSkew(kind)
}

func (b *board) take(kind, node int) {
	b.Take(kind, node)
	b.running--
	b.become(node, b.values.Prev(b.config[node], kind))
	b.countSkew(kind)
}

// still counts tasks that a move leaves without performance.
func (b *board) still(kind, node, by int) {
	b.moving[node*len(b.skew)+kind] += by
	b.movers[node] += by
	b.become(node, b.config[node])
}

// become settles the performance of a node.
func (b *board) become(node int, c place.Config) {
	b.config[node] = c
	v := b.values.Value(c)
	rate := v.Sum
	if !v.Known {
		b.silent, rate = c, 0
	}
	if b.movers[node] > 0 {
		parts := b.performances(c)
		for k, n := range b.moving[node*len(b.skew) : (node+1)*len(b.skew)] {
			rate -= float64(n) * parts[k]
		}
	}
	b.sum += rate - b.rate[node]
	b.rate[node] = rate
}

// add adds up the sum anew, so that rounding does not pile up.
func (b *board) add() {
	b.sum = 0
	for _, rate := range b.rate {
		b.sum += rate
	}
}

// performances are those of a co-location's tasks by kind; 0 where there is
// none.
func (b *board) performances(c place.Config) []float64 {
	if p, ok := b.parts[c]; ok {
		return p
	}
	p := make([]float64, len(b.skew))
	co := b.values.Colocation(c)
	class := place.ModelClass(b.model, b.values.Class(c))
	row := b.model.Predict(class, history.Rate, []cluster.Colocation{co})[0]
	for i, w := range co.Workloads() {
		p[b.kind[w]] = row[i].Value
	}
	b.parts[c] = p
	return p
}

func (b *board) countSkew(kind int) {
	s := b.Skew(kind)
	if (s > 0) != (b.skew[kind] > 0) {
		if s > 0 {
			b.skewed++
		} else {
			b.skewed--
		}
	}
	b.skew[kind] = s
}

// worst is the lowest performance on a node; +Inf where nothing runs.
func (b *board) worst(node int) float64 {
	lowest := math.Inf(1)
	parts := b.performances(b.config[node])
	for k, n := range b.Counts(node) {
		if n > 0 {
			lowest = min(lowest, parts[k])
		}
	}
	return lowest
}

// err reports a co-location whose performance nobody knows.
func (b *board) err() error {
	if b.silent < 0 {
		return nil
	}
	on := ""
	if class := b.values.Class(b.silent); class != "" {
		on = " on class " + class
	}
	return fmt.Errorf("the truth is silent about the co-location %s%s; nodes with fewer slots keep to what was measured, and a fitted model as truth knows the rest",
		b.values.Colocation(b.silent).Key(), on)
}
