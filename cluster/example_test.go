package cluster_test

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
)

// Two replicas that must not share a node find one each; the third learns why
// it has none.
func Example() {
	s, err := cluster.NewSnapshot(cluster.Spec{
		Nodes: cluster.Nodes("", 2, 0, 8),
		Constraints: cluster.Constraints{
			AntiAffinity: []cluster.AntiAffinity{{A: "redis", B: "redis"}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	pending := []cluster.Task{{ID: "1", Workload: "redis"}, {ID: "2", Workload: "redis"}, {ID: "3", Workload: "redis"}}
	p := cluster.NewPlacement(s, pending)
	for i, t := range pending {
		placed := false
		for n, node := range s.Nodes() {
			if !placed && p.Check(p.Kind(i), n) == cluster.Fits {
				p.Put(p.Kind(i), n)
				placed = true
				fmt.Println(t.ID, "on", node.Name)
			}
		}
		if !placed {
			fmt.Println(t.ID, "held:", p.Explain(p.Kind(i), 0))
		}
	}
	// Output:
	// 1 on node-0
	// 2 on node-1
	// 3 held: node node-0 runs redis, which redis must not be with
}
