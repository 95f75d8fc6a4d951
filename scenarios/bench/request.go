package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/place"
)

// Streams of random numbers drawn from a scenario's seed, so that one drawing
// does not move another.
const (
	streamOrder = iota + 1
	streamPolicy
	streamOccupied
)

// counts is the batch of a plan by workload.
func (p *planSpec) counts(data string, t *truth) (cluster.Colocation, error) {
	switch {
	case p.Batch != "":
		name, row, ok := formats.SplitRow(p.Batch)
		if !ok {
			return nil, fmt.Errorf("batch %q is not FILE:ROW", p.Batch)
		}
		batches, _, err := formats.ReadFile(filepath.Join(data, name), formats.Options{Strict: true}, formats.ReadBatches)
		if err != nil {
			return nil, err
		}
		return batches.Row(row)
	case p.Total > 0 && t.generated != nil:
		return t.generated.Batch(p.Total, 0), nil
	case len(p.Tasks) > 0:
		return p.Tasks, nil
	}
	return nil, errors.New("no batch: give batch, tasks, or total with a generated truth")
}

// request is the plan's question for one seed, which draws the order of the
// tasks and what occupies the cluster.
func (p *planSpec) request(batch cluster.Colocation, workloads []string, seed uint64) (place.Request, error) {
	objective, err := place.ParseObjective(orMean(p.Objective))
	if err != nil {
		return place.Request{}, err
	}
	spec := cluster.Spec{Nodes: zoned(p.Nodes, p.Slots, p.Zones), Constraints: p.Constraints}
	if p.Occupied > 0 {
		if spec.Running, err = p.occupy(spec, workloads, seed); err != nil {
			return place.Request{}, err
		}
	}
	view, err := cluster.NewSnapshot(spec)
	if err != nil {
		return place.Request{}, err
	}
	var tasks []cluster.Task
	for _, w := range batch.Workloads() {
		for i := range batch[w] {
			tasks = append(tasks, cluster.Task{ID: cluster.TaskID(fmt.Sprintf("%s/%d", w, i)), Workload: w, Role: cluster.Replica})
		}
	}
	rand.New(rand.NewPCG(seed, streamOrder)).Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	return place.Request{
		View: view, Pending: []cluster.Group{{Name: "batch", Tasks: tasks}}, Objective: objective,
		Rand: rand.New(rand.NewPCG(seed, streamPolicy)),
	}, nil
}

// zoned are nodes of some slots, labelled with so many zones in turn.
func zoned(n, slots, zones int) []cluster.Node {
	nodes := cluster.Nodes("", n, 0, slots)
	for i := range nodes {
		if zones > 0 {
			nodes[i].Labels = map[string]string{cluster.ZoneKey: fmt.Sprintf("zone-%d", i%zones)}
		}
	}
	return nodes
}

func orMean(objective string) string {
	if objective == "" {
		return "mean"
	}
	return objective
}

// occupy puts tasks that don't move on random nodes until they hold the
// wanted share of all slots.
func (p *planSpec) occupy(spec cluster.Spec, workloads []string, seed uint64) ([]cluster.Running, error) {
	want := int(p.Occupied*float64(p.Nodes*p.Slots) + 0.5)
	view, err := cluster.NewSnapshot(spec)
	if err != nil {
		return nil, err
	}
	one := make([]cluster.Task, len(workloads))
	for i, w := range workloads {
		one[i] = cluster.Task{ID: cluster.TaskID("running/" + w), Workload: w, Role: cluster.Replica}
	}
	placement := cluster.NewPlacement(view, one)
	r := rand.New(rand.NewPCG(seed, streamOccupied))
	var running []cluster.Running
	for try := 0; len(running) < want; try++ {
		if try > 1000*want {
			return nil, fmt.Errorf("occupied %g: only %d of %d tasks fit under the constraints", p.Occupied, len(running), want)
		}
		w, node := r.IntN(len(workloads)), r.IntN(p.Nodes)
		kind := placement.Kind(w)
		if placement.Check(kind, node) != cluster.Fits {
			continue
		}
		placement.Put(kind, node)
		t := one[w]
		t.ID = cluster.TaskID(fmt.Sprintf("running/%d", len(running)))
		running = append(running, cluster.Running{Task: t, Node: spec.Nodes[node].Name})
	}
	return running, nil
}
