package measured_test

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/sim/measured"
)

// Two jobs share a device, where one goes at three quarters of its speed and
// the other at half.
func Example() {
	on := func(colocation cluster.Colocation, workload string, rate, alone float64) history.Sample {
		return history.Sample{
			Class: "v100", Scope: history.ScopeDevice, Colocation: colocation, Workload: workload,
			Metric: history.Rate, Value: rate, Alone: alone,
		}
	}
	pair := cluster.Colocation{"a3c": 1, "lm/5": 1}
	truth, err := measured.New([]history.Sample{
		on(cluster.Colocation{"a3c": 1}, "a3c", 8, 8),
		on(cluster.Colocation{"lm/5": 1}, "lm/5", 100, 100),
		on(pair, "a3c", 6, 8),
		on(pair, "lm/5", 50, 100),
	}, "v100")
	if err != nil {
		fmt.Println(err)
		return
	}
	view, err := cluster.NewSnapshot(cluster.Spec{
		Nodes: cluster.Nodes("v100", 1, 1, 0),
		Running: []cluster.Running{
			{Task: cluster.Task{ID: "x", Workload: "a3c", Devices: 1}, Node: "v100-0", On: []int{0}},
			{Task: cluster.Task{ID: "y", Workload: "lm/5", Devices: 1}, Node: "v100-0", On: []int{0}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	rates := truth.Rates(view, []cluster.TaskID{"x", "y"})
	fmt.Println(rates["x"], rates["y"])
	// Output: 0.75 0.5
}
