package learned_test

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/learned"
)

// Two jobs share the only device, at the half of their speed that a model
// believes in.
func Example() {
	model, err := interference.Fit(interference.KindTable, []history.Sample{
		{Scope: history.ScopeDevice, Colocation: cluster.Colocation{"lm": 2}, Workload: "lm", Metric: history.Rate, Value: 0.5, Alone: 1},
	}, interference.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	speeds := jobs.NewSpeeds(model, jobs.Options{Scope: history.ScopeDevice})
	policy, err := jobs.New("spread", jobs.Settings{Speeds: speeds})
	if err != nil {
		fmt.Println(err)
		return
	}
	nodes := cluster.Nodes("", 1, 1, 0)
	nodes[0].Devices[0].Slots = 2
	r, err := sim.Run(sim.Config{
		Nodes: nodes, Policy: policy, Truth: learned.New(speeds.Fork()),
		Jobs: []sim.Job{
			{Job: cluster.Job{Name: "a", Tasks: sim.Workers("a", "lm", 1)}, Work: 100},
			{Job: cluster.Job{Name: "b", Tasks: sim.Workers("b", "lm", 1)}, Work: 100},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("mean JCT %.0f s\n", r.MeanJCT)
	// Output: mean JCT 200 s
}
