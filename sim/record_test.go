package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/sim"
)

// a and b share a device for 20 s, c runs on the other device of the node; d
// waits for 10 s. The workers of one job are not neighbours of one another.
func TestRecords(t *testing.T) {
	node := cluster.Node{Name: "n", Devices: []cluster.Device{{Slots: 2}, {Slots: 2}}}
	var q sim.QueueRecord
	var beside sim.BesideRecord
	p := &play{}
	p.moves = append(p.moves, place.Decision{Bind: []place.Binding{bind("a/0", "n", 0), bind("a/1", "n", 1), bind("b/0", "n", 0), bind("c/0", "n", 1)}})
	r, err := sim.Run(sim.Config{
		Nodes: []cluster.Node{node}, Truth: &share{}, Policy: p, Backfill: true, Watch: sim.Watchers(q.Watch, beside.Watch),
		Jobs: []sim.Job{gang("a", "y", 0, 20, 2), single("b", "x", 0, 20), single("c", "z", 0, 30), single("d", "x", 10*s, 5)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(q.Steps); got != "[{0s 0} {10s 1} {20s 0}]" {
		t.Error(got)
	}
	if got := fmt.Sprint(beside.Pairs()); got != "[{{x y device} 20} {{x y node} 20} {{x z node} 25} {{y z device} 20} {{y z node} 20}]" {
		t.Error(got)
	}
	var b strings.Builder
	r.Jobs[3].State = sim.Unfinished
	if err := r.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	want := `job,workload,tasks,workers,state,arrival_s,start_s,finish_s,jct_s,work_s,lost_s,moves,resizes,restarts
a,y,2,2,finished,0,0,20,20,20,0,0,0,0
b,x,1,1,finished,0,0,20,20,20,0,0,0,0
c,z,1,1,finished,0,0,30,30,30,0,0,0,0
d,x,1,1,unfinished,10,20,,,5,0,0,0,0
`
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
}
