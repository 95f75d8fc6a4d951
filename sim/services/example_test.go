package services_test

import (
	"fmt"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/place/placetest"
	"github.com/cotenant/cotenant/sim/services"
)

// The same services on ten nodes, placed by two policies.
func Example() {
	truth := placetest.Model{}
	spec := cluster.Spec{Nodes: cluster.Nodes("any", 10, 0, 4)}
	horizon := 10 * time.Hour
	arrivals, err := services.Stream{
		Capacity: 40, Load: 0.7, Horizon: horizon, Lifetime: time.Hour, Scaling: 1, Workloads: []string{"db", "web"},
		Sizes: []services.Size{{Replicas: 1, Share: 2}, {Replicas: 4, Share: 1}},
	}.Draw(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	judge := services.Judge{Cluster: spec, Truth: truth}
	for _, name := range []string{"spread", "greedy"} {
		policy, err := baseline.New(name, baseline.Options{Model: truth})
		if err != nil {
			fmt.Println(err)
			return
		}
		r, err := services.Run(services.Config{
			Cluster: spec, Arrivals: arrivals, Truth: truth, Policy: policy, Name: name,
			Horizon: horizon, Warmup: 2 * time.Hour, Lifetime: time.Hour, Samples: 20,
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		v, err := judge.Judge(&r)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %.2f of the bound, %.0f tasks running, %d of %d had to wait\n", name, v.Share, r.Running, r.Waited, r.Arrived)
	}
	// Output:
	// spread: 0.76 of the bound, 32 tasks running, 0 of 291 had to wait
	// greedy: 0.86 of the bound, 32 tasks running, 0 of 291 had to wait
}
