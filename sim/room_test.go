package sim_test

import (
	"strings"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/sim"
)

// Each way in which a task does not fit is told in words.
func TestWhatDoesNotFitIsTold(t *testing.T) {
	nodes := []cluster.Node{
		{Name: "closed", Devices: []cluster.Device{{}}, Unschedulable: true},
		{Name: "tainted", Devices: []cluster.Device{{}}, Taints: []cluster.Taint{{Key: "k", Effect: cluster.NoSchedule}}},
		{Name: "narrow", Devices: []cluster.Device{{Slots: 2}}, Slots: 1, Capacity: cluster.Resources{cluster.Memory: 9}},
		{Name: "wide", Devices: []cluster.Device{{Slots: 2}, {Slots: 2}}, Capacity: cluster.Resources{cluster.Memory: 9}},
	}
	a, b := single("a", "w", 0, 10), single("b", "w", 0, 10)
	a.Tasks[0].Devices = 2
	a.Tasks[0].Requests = cluster.Resources{cluster.Memory: 5}
	for wanted, bindings := range map[string][]place.Binding{
		`node "closed" takes no new tasks`:                           {bind("b/0", "closed", 0)},
		`node "tainted" takes no new tasks`:                          {bind("b/0", "tainted", 0)},
		`node "narrow" has no free slot (all 1 are taken)`:           {bind("b/0", "narrow", 0), bind("c/0", "narrow", 0)},
		`node "wide": devices [1 1] name one twice`:                  {bind("a/0", "wide", 1, 1)},
		`node "wide" has 4 of memory free, the task asks for 5`:      {bind("a/0", "wide", 0, 1), bind("d/0", "wide")},
		`node "wide": device 1 has no free slot (all 2 are taken)`:   {bind("a/0", "wide", 0, 1), bind("b/0", "wide", 1), bind("c/0", "wide", 1)},
		`node "wide": devices [-1], but it has 2, counted from 0`:    {bind("b/0", "wide", -1)},
		`node "wide": devices [0], but the task asks for 0`:          {bind("d/0", "wide", 0)},
		`job "b": task "b/0" does not fit: node "closed" takes no n`: {bind("c/0", "wide", 0), bind("b/0", "closed", 0)},
	} {
		d := single("d", "big", 0, 10)
		d.Tasks[0].Devices = 0
		_, err := sim.Run(sim.Config{
			Nodes: nodes, Workloads: []cluster.Workload{{Name: "big", Requests: cluster.Resources{cluster.Memory: 5}}},
			Jobs: []sim.Job{a, b, single("c", "w", 0, 10), d}, Truth: crowd{}, Policy: &play{moves: []place.Decision{{Bind: bindings}}}, Backfill: true,
		})
		if err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%v\nwant %q", err, wanted)
		}
	}
}

// What an old view shows as taken is no place either.
func TestStaleViewBinds(t *testing.T) {
	_, err := sim.Run(sim.Config{
		Nodes: gpus(1, 1), Truth: crowd{}, Stale: s, Jobs: []sim.Job{single("a", "w", 0, 10), single("b", "w", 5*s, 10)},
		Policy: &play{moves: []place.Decision{{Bind: []place.Binding{bind("a/0", "v100-0", 0)}}, {Bind: []place.Binding{bind("b/0", "v100-0", 0)}}}},
	})
	if err == nil || !strings.Contains(err.Error(), `does not fit the view that the policy was given: node "v100-0": device 0`) {
		t.Error(err)
	}
}

// link is a truth in which all tasks of the cluster share a link: it answers
// for tasks that nobody asked it about.
type link struct{}

func (link) Rates(s *cluster.Snapshot, _ []cluster.TaskID) map[cluster.TaskID]float64 {
	rates := map[cluster.TaskID]float64{}
	for _, r := range s.Running() {
		rates[r.ID] = 1 / float64(len(s.Running()))
	}
	return rates
}

// a runs alone for 10 s and then, on a node of its own, beside b at half speed
// until b is done at 20 s.
func TestTruthReachesFurther(t *testing.T) {
	got := spans(t, sim.Config{
		Nodes: gpus(2, 1), Truth: link{}, Policy: &least{}, Jobs: []sim.Job{single("a", "w", 0, 20), single("b", "w", 10*s, 5)},
	})
	if got != "a 0-25 b 10-20" {
		t.Error(got)
	}
}

// A job that fails whenever it runs is given up.
func TestGivenUp(t *testing.T) {
	r, err := sim.Run(sim.Config{
		Nodes: gpus(1, 1), Truth: crowd{}, Policy: &least{}, JobFailure: 0.999999, MaxRestarts: 4,
		Jobs: []sim.Job{single("a", "w", 0, 10), single("b", "w", s, 10)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Unfinished) != 2 || r.Restarts != 8 || r.Why == "" || !strings.Contains(r.Jobs[0].Why, "given up") {
		t.Errorf("%+v", r)
	}
}
