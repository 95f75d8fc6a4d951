package baseline_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
)

// A cache next to its client makes both faster, which kube-scheduler's scores
// cannot see.
func Example() {
	model := rates{"cache+client": {"cache": 1.2, "client": 1.3}}
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: cluster.Nodes("", 2, 0, 4)})
	if err != nil {
		fmt.Println(err)
		return
	}
	group := cluster.Group{Name: "web", Tasks: []cluster.Task{
		{ID: "1", Workload: "cache"}, {ID: "2", Workload: "client"},
	}}
	for _, name := range []string{"spread", "greedy-search"} {
		p, err := baseline.New(name, baseline.Options{Model: model})
		if err != nil {
			fmt.Println(err)
			return
		}
		req := place.Request{View: view, Pending: []cluster.Group{group}, Rand: rand.New(rand.NewPCG(1, 0))}
		d, err := p.Place(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		e, err := place.Evaluate(req, d, model)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: mean performance %.3f\n", name, e.Value)
	}
	// Output:
	// spread: mean performance 1.000
	// greedy-search: mean performance 1.250
}
