package contention_test

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/sim/contention"
)

// A job whose parameter server sits across the network, and then another one
// that computes on the same servers.
func Example() {
	world := contention.Default()
	truth, err := contention.New(contention.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	spec := cluster.Spec{Nodes: world.Nodes(2, 0), Workloads: world.Requests()}
	run := func(job string, workload int, nodes ...string) {
		for i, task := range world.Workloads[workload].Tasks(job, 1, 1) {
			spec.Running = append(spec.Running, cluster.Running{Task: task, Node: nodes[i], Group: job})
		}
	}
	progress := func() float64 {
		s, err := cluster.NewSnapshot(spec)
		if err != nil {
			fmt.Println(err)
			return 0
		}
		return truth.Rates(s, []cluster.TaskID{"vgg/worker-0"})["vgg/worker-0"]
	}
	run("vgg", 1, "server-0", "server-1")
	fmt.Printf("apart: %.2f\n", progress())
	for i := range 3 {
		run(fmt.Sprint("resnet-", i), 0, "server-1", "server-1")
	}
	fmt.Printf("and beside others: %.2f\n", progress())
	// Output:
	// apart: 0.86
	// and beside others: 0.78
}
