package metis_test

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/metis"
	"github.com/cotenant/cotenant/sim/generated"
)

func Example() {
	model := generated.New(4, 1)
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: cluster.Nodes("", 2, 1, 4)})
	if err != nil {
		fmt.Println(err)
		return
	}
	file, err := metis.Shipped("")
	if err != nil {
		fmt.Println(err)
		return
	}
	policy := metis.New(file.Nets, model, metis.Options{})
	d, err := policy.Place(place.Request{View: view, Pending: []cluster.Group{
		{Name: "web", Tasks: []cluster.Task{{ID: "web/0", Workload: "w00"}, {ID: "web/1", Workload: "w01"}}},
	}})
	fmt.Println(len(d.Bind), len(d.Hold), err)
	// Output: 2 0 <nil>
}
