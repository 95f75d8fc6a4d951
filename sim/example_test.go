package sim_test

import (
	"fmt"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/sim"
)

// firstFit binds each single worker to the first device with a free slot.
type firstFit struct{}

func (firstFit) Place(req place.Request) (place.Decision, error) {
	var d place.Decision
	used := map[string]int{}
	for _, r := range req.View.Running() {
		used[r.Node]++
	}
	for _, g := range req.Pending {
		for _, n := range req.View.Nodes() {
			if used[n.Name] < n.Devices[0].Slots {
				used[n.Name]++
				d.Bind = append(d.Bind, place.Binding{Task: g.Tasks[0].ID, Node: n.Name, Devices: []int{0}})
				break
			}
		}
	}
	return d, nil
}

// crowding is a truth: two tasks on a node go at 0.6 of their speed.
type crowding struct{}

func (crowding) Rates(s *cluster.Snapshot, touched []cluster.TaskID) map[cluster.TaskID]float64 {
	used, at := map[string]int{}, map[cluster.TaskID]string{}
	for _, r := range s.Running() {
		used[r.Node]++
		at[r.ID] = r.Node
	}
	rates := map[cluster.TaskID]float64{}
	for _, id := range touched {
		rates[id] = 1
		if used[at[id]] > 1 {
			rates[id] = 0.6
		}
	}
	return rates
}

// Two jobs, a minute apart, on one device with two slots: first-fit puts them
// together.
func Example() {
	nodes := cluster.Nodes("v100", 1, 1, 0)
	nodes[0].Devices[0].Slots = 2
	job := func(name string, arrival time.Duration) sim.Job {
		return sim.Job{Job: cluster.Job{Name: name, Arrival: arrival, Tasks: sim.Workers(name, "resnet-50/32", 1)}, Work: 180}
	}
	r, err := sim.Run(sim.Config{
		Nodes: nodes, Jobs: []sim.Job{job("a", 0), job("b", time.Minute)}, Truth: crowding{}, Policy: firstFit{}, Backfill: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, j := range r.Jobs {
		fmt.Printf("%s: %s to %s\n", j.Name, j.Start, j.Finish)
	}
	fmt.Printf("mean JCT %g s, alone %g s\n", r.MeanJCT, r.LowerBound)
	// Output:
	// a: 0s to 4m20s
	// b: 1m0s to 5m20s
	// mean JCT 260 s, alone 180 s
}
