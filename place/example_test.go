package place_test

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/placetest"
)

// first is the simplest policy: every task on the first node that takes it.
type first struct{}

func (first) Place(req place.Request) (place.Decision, error) {
	p := cluster.NewPlacement(req.View, req.Tasks())
	at := make([]int, len(req.Tasks()))
	for i := range at {
		at[i] = -1
		for n := range req.View.Nodes() {
			if p.Check(p.Kind(i), n) == cluster.Fits {
				p.Put(p.Kind(i), n)
				at[i] = n
				break
			}
		}
	}
	return place.DecisionOf(req, p, at), nil
}

// A policy of one's own, asked and judged.
func Example() {
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: cluster.Nodes("", 2, 0, 1)})
	if err != nil {
		fmt.Println(err)
		return
	}
	req := place.Request{
		View: view,
		Pending: []cluster.Group{{Name: "web", Tasks: []cluster.Task{
			{ID: "web/0", Workload: "nginx"}, {ID: "web/1", Workload: "nginx"}, {ID: "web/2", Workload: "nginx"},
		}}},
	}
	d, err := first{}.Place(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, b := range d.Bind {
		fmt.Println(b.Task, "on", b.Node)
	}
	for _, h := range d.Hold {
		fmt.Println(h.Task, "held:", h.Why)
	}
	e, err := place.Evaluate(req, d, placetest.Model{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("mean performance %.2f, %d held\n", e.Value, e.Held)
	// Output:
	// web/0 on node-0
	// web/1 on node-1
	// web/2 held: 0 of 2 nodes fit; 2 of them as here: node node-0 has no free slot (all 1 are taken)
	// mean performance 0.67, 1 held
}
