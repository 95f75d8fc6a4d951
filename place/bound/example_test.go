package bound_test

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/bound"
)

// Two caches and two stores go on two nodes of two slots: a cache runs well
// beside a store, two of a kind halve each other.
func ExampleCompute() {
	rate := func(c cluster.Colocation, w string, v float64) history.Sample {
		return history.Sample{Colocation: c, Workload: w, Metric: history.Rate, Value: v, Alone: 1}
	}
	both := cluster.Colocation{"cache": 1, "store": 1}
	model, _ := interference.Fit("table", []history.Sample{
		rate(cluster.Colocation{"cache": 1}, "cache", 1),
		rate(cluster.Colocation{"store": 1}, "store", 1),
		rate(cluster.Colocation{"cache": 2}, "cache", 0.5),
		rate(cluster.Colocation{"store": 2}, "store", 0.5),
		rate(both, "cache", 0.9), rate(both, "store", 0.8),
	}, interference.Options{})
	view, _ := cluster.NewSnapshot(cluster.Spec{Nodes: cluster.Nodes("", 2, 1, 2)})
	req := place.Request{View: view, Pending: []cluster.Group{{Tasks: []cluster.Task{
		{ID: "c0", Workload: "cache"},
		{ID: "c1", Workload: "cache"},
		{ID: "s0", Workload: "store"},
		{ID: "s1", Workload: "store"},
	}}}}
	limit, _ := bound.Compute(req, model, bound.Options{})
	plan, _ := bound.New(model, bound.Options{}).Place(req)
	worth, _ := place.Evaluate(req, plan, model)
	fmt.Printf("at most %.2f (proven: %v), planned %.2f\n", limit.Bound, limit.Proven, worth.Value)
	// Output: at most 0.85 (proven: true), planned 0.85
}
