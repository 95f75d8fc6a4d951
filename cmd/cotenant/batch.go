package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history/formats"
)

// maxBatch bounds the tasks of one batch: more is a slip of the keyboard.
const maxBatch = 1_000_000

// batch is the services to place: tasks by workload, in the order of columns.
type batch struct {
	name      string // for errors: FILE:row
	workloads []string
	counts    []int
}

func (b *batch) tasks() int {
	n := 0
	for _, k := range b.counts {
		n += k
	}
	return n
}

// readBatch reads FILE[:row]: a row of a CSV with a column a workload.
func readBatch(in *inputs, spec string) (*batch, error) {
	file, row, _ := formats.SplitRow(spec)
	data, err := in.read("batch", file)
	if err != nil {
		return nil, err
	}
	table, _, err := formats.ReadBatches(bytes.NewReader(data), formats.Options{Name: file})
	if err != nil {
		return nil, fmt.Errorf("--batch: %w; the first line names the workloads, each further line is a batch", err)
	}
	counts, err := table.Row(row)
	if err != nil {
		return nil, fmt.Errorf("--batch: %w", err)
	}
	b := &batch{name: fmt.Sprintf("%s:%d", file, row), workloads: table.Workloads, counts: make([]int, len(table.Workloads))}
	for i, w := range b.workloads {
		b.counts[i] = counts[w]
	}
	if n := b.tasks(); n > maxBatch {
		return nil, fmt.Errorf("--batch %s: %d tasks; a batch has at most %d", b.name, n, maxBatch)
	}
	return b, nil
}

var orders = []string{"random", "workload", "roundrobin"}

// group is the batch as one group whose tasks come in the given order. It may
// be placed in part, as the replicas of services may.
func (b *batch) group(order string, seed uint64) cluster.Group {
	g := cluster.Group{Name: "batch", Tasks: make([]cluster.Task, 0, b.tasks())}
	put := func(w, i int) {
		g.Tasks = append(g.Tasks, cluster.Task{
			ID:       cluster.TaskID(fmt.Sprintf("%s/%d", b.workloads[w], i)),
			Workload: b.workloads[w], Role: cluster.Replica,
		})
	}
	if order == "roundrobin" {
		for i := 0; len(g.Tasks) < b.tasks(); i++ {
			for w, n := range b.counts {
				if i < n {
					put(w, i)
				}
			}
		}
		return g
	}
	for w, n := range b.counts {
		for i := range n {
			put(w, i)
		}
	}
	if order == "random" {
		r := rand.New(rand.NewPCG(seed, streamOrder))
		r.Shuffle(len(g.Tasks), func(i, j int) { g.Tasks[i], g.Tasks[j] = g.Tasks[j], g.Tasks[i] })
	}
	return g
}

// Streams of random numbers drawn from one --seed. What a policy draws must
// not depend on whether the order was drawn.
const (
	streamOrder = iota + 1
	streamPolicy
)
