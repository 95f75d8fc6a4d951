package placetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// Load is a large cluster of nodes x devices of two slots, of the class v100.
type Load struct {
	Nodes, Devices int
	// Tasks run, of gangs of Together (1); Scattered over the devices, or dealt
	// out in their order.
	Tasks, Together int
	Scattered       bool
	// Queue gangs of Workers (1) wait.
	Queue, Workers int
}

// Busy is 16 requests of such a cluster: in each one task ended since the last
// and another came.
func Busy(tb testing.TB, l Load) []place.Request {
	tb.Helper()
	nodes := cluster.Nodes("v100", l.Nodes, l.Devices, 0)
	for i := range nodes {
		for d := range nodes[i].Devices {
			nodes[i].Devices[d].Slots = 2
		}
	}
	names := Workloads(26)
	var running []cluster.Running
	for i := range l.Tasks {
		at := i % (l.Nodes * l.Devices)
		if l.Scattered { // one in three devices has two
			at = i * 2654435761 % (l.Nodes * l.Devices * 2) / 2
		}
		running = append(running, cluster.Running{
			Task:    cluster.Task{ID: cluster.TaskID(fmt.Sprintf("r%d/0", i)), Workload: names[i*7%26], Role: cluster.Worker, Devices: 1},
			Node:    nodes[at/l.Devices].Name,
			On:      []int{at % l.Devices},
			Group:   fmt.Sprintf("r%d", i/max(1, l.Together)),
			Movable: true,
			Started: time.Duration(i) * time.Minute,
		})
	}
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes, Running: running})
	if err != nil {
		tb.Fatal(err)
	}
	var pending []cluster.Group
	for i := range l.Queue {
		pending = append(pending, Gang(fmt.Sprintf("q%d", i), max(1, l.Workers), names[i*5%26]))
	}
	var reqs []place.Request
	for i := range 16 {
		reqs = append(reqs, place.Request{View: view, Pending: pending, Now: 150 * time.Hour})
		gone := i * 3 % len(running)
		next := running[gone]
		next.ID, next.Group = cluster.TaskID(fmt.Sprintf("s%d/0", i)), fmt.Sprintf("s%d", i)
		if view, err = view.Next([]int{gone}, []cluster.Running{next}); err != nil {
			tb.Fatal(err)
		}
		running = view.Running()
	}
	return reqs
}
