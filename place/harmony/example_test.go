package harmony_test

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/harmony"
	"github.com/cotenant/cotenant/place/jobs"
)

// The policy that ships places a job on a cluster with one device that is
// shared and one that is free.
func Example() {
	pair := cluster.Colocation{"lm": 1, "a3c": 1}
	model, err := interference.Fit(interference.KindTable, []history.Sample{
		{Class: "v100", Colocation: cluster.Colocation{"lm": 1}, Workload: "lm", Metric: history.Rate, Value: 10, Alone: 10},
		{Class: "v100", Colocation: cluster.Colocation{"a3c": 1}, Workload: "a3c", Metric: history.Rate, Value: 4, Alone: 4},
		{Class: "v100", Colocation: pair, Workload: "lm", Metric: history.Rate, Value: 8, Alone: 10},
		{Class: "v100", Colocation: pair, Workload: "a3c", Metric: history.Rate, Value: 3, Alone: 4},
	}, interference.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	nodes := cluster.Nodes("v100", 2, 1, 0)
	for i := range nodes {
		nodes[i].Devices[0].Slots = 2
	}
	task := cluster.Task{ID: "old/0", Workload: "lm", Role: cluster.Worker, Devices: 1}
	view, err := cluster.NewSnapshot(cluster.Spec{
		Nodes: nodes, Running: []cluster.Running{{Task: task, Group: "old", Node: nodes[0].Name, On: []int{0}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := []cluster.Group{{
		Name: "new", Gang: true, Tasks: []cluster.Task{{ID: "new/0", Workload: "a3c", Role: cluster.Worker, Devices: 1}},
	}}

	file, err := harmony.Shipped(history.ScopeDevice)
	if err != nil {
		fmt.Println(err)
		return
	}
	speeds := jobs.NewSpeeds(model, jobs.Options{Scope: history.ScopeDevice})
	policy, err := file.Policy(jobs.Settings{Speeds: speeds, Explain: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := policy.Place(place.Request{View: view, Pending: queue})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Bind[0].Task, "goes to", d.Bind[0].Node, "device", d.Bind[0].Devices)
	fmt.Printf("it gains %.2f\n", d.Why["new/0"].Scores["gain"])
	// Output:
	// new/0 goes to v100-1 device [0]
	// it gains 1.00
}
