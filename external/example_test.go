package external_test

import (
	"context"
	"fmt"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/external"
	"github.com/cotenant/cotenant/place"
)

// A shell is a poor language for policies, but it is one: this one holds the
// only task.
func ExampleNew() {
	const program = `while read -r request; do echo '{"id": 1, "hold": [{"task": "redis/0", "why": "not today"}]}'; done`
	policy := external.New(context.Background(), []string{"sh", "-c", program}, external.Options{})
	defer policy.Close()

	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: cluster.Nodes("", 1, 0, 8)})
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := policy.Place(place.Request{
		View:    view,
		Pending: []cluster.Group{{Name: "redis", Tasks: []cluster.Task{{ID: "redis/0", Workload: "redis"}}}},
	})
	fmt.Println(d.Hold[0].Task, "is held:", d.Hold[0].Why, err)
	// Output: redis/0 is held: not today <nil>
}
