package encode_test

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/encode"
	"github.com/cotenant/cotenant/place/jobs"
)

// A job may wait, or share the only device with one that runs: what the
// network is told of either.
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
	nodes := cluster.Nodes("v100", 1, 1, 0)
	nodes[0].Devices[0].Slots = 2
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

	board := jobs.NewBoard(jobs.NewSpeeds(model, jobs.Options{Scope: history.ScopeDevice}))
	encoder := encode.NewJobs(board, encode.DefaultThreshold(history.ScopeDevice))
	board.Reset(place.Request{View: view, Pending: queue})
	encoder.Begin()
	gang := board.Gang(0)
	candidates, _ := encoder.Encode(gang, []encode.Option{{}, {Sites: []int32{0}, Alike: 1}})
	for k := range candidates.Rows {
		x := candidates.Row(k)
		fmt.Printf("wait %g: gain %.2f, own %.2f, hurt %.2f\n", x[encode.Wait], x[encode.Gain], x[encode.Own], x[encode.Hurt])
	}
	// Output:
	// wait 1: gain 0.00, own 0.00, hurt 0.00
	// wait 0: gain 0.55, own 0.75, hurt -0.20
}
