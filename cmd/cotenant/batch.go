package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history/formats"
)

// batch is the services to place: tasks by workload, in the order of columns;
// or the groups that wait in a snapshot.
type batch struct {
	name      string // for errors: "batch FILE:row"
	workloads []string
	counts    []int
	waiting   []cluster.Group
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
	file, row, isRow := formats.SplitRow(spec)
	if at := strings.LastIndexByte(spec, ':'); !isRow && at > 0 && isFile(spec[:at]) && !isFile(spec) {
		return nil, wrongUse("--batch %s: %q is no row; rows of %s count from 0 after the header: 0, 1, ...", spec, spec[at+1:], spec[:at])
	}
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
	b := &batch{name: fmt.Sprintf("batch %s:%d", file, row), workloads: table.Workloads, counts: make([]int, len(table.Workloads))}
	for i, w := range b.workloads {
		b.counts[i] = counts[w]
	}
	return b, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

var orders = []string{"random", "workload", "roundrobin"}

// pendingBatch is the groups that wait in a snapshot.
func pendingBatch(file string, groups []cluster.Group) *batch {
	b := &batch{name: "pending pods of " + file, waiting: groups}
	for _, g := range groups {
		for _, t := range g.Tasks {
			i := slices.Index(b.workloads, t.Workload)
			if i < 0 {
				i = len(b.workloads)
				b.workloads = append(b.workloads, t.Workload)
				b.counts = append(b.counts, 0)
			}
			b.counts[i]++
		}
	}
	return b
}

// groups is the batch as one group whose tasks come in the given order. It may
// be placed in part, as the replicas of services may. What waits in a snapshot
// comes by arrival, whatever the order.
func (b *batch) groups(order string, seed uint64) []cluster.Group {
	if b.waiting != nil {
		return b.waiting
	}
	tasks := make([]cluster.Task, 0, b.tasks())
	put := func(w, i int) {
		tasks = append(tasks, cluster.Task{
			ID:       cluster.TaskID(fmt.Sprintf("%s/%d", b.workloads[w], i)),
			Workload: b.workloads[w], Role: cluster.Replica,
		})
	}
	if order == "roundrobin" {
		for i := 0; len(tasks) < b.tasks(); i++ {
			for w, n := range b.counts {
				if i < n {
					put(w, i)
				}
			}
		}
	} else {
		for w, n := range b.counts {
			for i := range n {
				put(w, i)
			}
		}
	}
	if order == "random" {
		r := rand.New(rand.NewPCG(seed, streamOrder))
		r.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	}
	return []cluster.Group{{Name: "batch", Tasks: tasks}}
}

// Streams of random numbers drawn from one --seed. What a policy draws must
// not depend on whether the order was drawn.
const (
	streamOrder = iota + 1
	streamPolicy
)
