package jobs_test

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/jobs"
)

// A job comes while each of two devices runs one. spread takes the first
// device; greedy has measured that the other neighbour hurts less; greedy-wait
// takes neither where that gains too little.
func Example() {
	pair := func(a, b string, together float64) []history.Sample {
		return []history.Sample{
			{Scope: history.ScopeDevice, Colocation: cluster.Colocation{a: 1, b: 1}, Workload: a, Metric: history.Rate, Value: together, Alone: 1},
			{Scope: history.ScopeDevice, Colocation: cluster.Colocation{a: 1, b: 1}, Workload: b, Metric: history.Rate, Value: together, Alone: 1},
		}
	}
	samples := append(pair("lm", "resnet", .4), pair("lm", "a3c", .8)...)
	model, err := interference.Fit(interference.KindTable, samples, interference.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	nodes := cluster.Nodes("", 1, 2, 0)
	for d := range nodes[0].Devices {
		nodes[0].Devices[d].Slots = 2
	}
	worker := func(id cluster.TaskID, workload string) cluster.Task {
		return cluster.Task{ID: id, Workload: workload, Role: cluster.Worker, Devices: 1}
	}
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes, Running: []cluster.Running{
		{Task: worker("first/0", "resnet"), Node: "node-0", On: []int{0}, Group: "first"},
		{Task: worker("second/0", "a3c"), Node: "node-0", On: []int{1}, Group: "second"},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := []cluster.Group{{Name: "third", Gang: true, Tasks: []cluster.Task{worker("third/0", "lm")}}}
	speeds := jobs.NewSpeeds(model, jobs.Options{Scope: history.ScopeDevice})
	for _, p := range []struct {
		name   string
		values map[string]float64
	}{{"spread", nil}, {"greedy", nil}, {"greedy-wait", map[string]float64{"threshold": .7}}} {
		policy, err := jobs.New(p.name, jobs.Settings{Speeds: speeds, Values: p.values})
		if err != nil {
			fmt.Println(err)
			return
		}
		d, err := policy.Place(place.Request{View: view, Pending: queue})
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, b := range d.Bind {
			fmt.Printf("%s: device %d\n", p.name, b.Devices[0])
		}
		for _, h := range d.Hold {
			fmt.Printf("%s: %s\n", p.name, h.Why)
		}
	}
	// Output:
	// spread: device 0
	// greedy: device 1
	// greedy-wait: would gain too little now, so it waits for a better place
}
