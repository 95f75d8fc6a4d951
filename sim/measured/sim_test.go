package measured_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/measured"
)

// onto binds every job to device 0 of a node.
type onto string

func (node onto) Place(r place.Request) (place.Decision, error) {
	var d place.Decision
	for _, g := range r.Pending {
		for _, t := range g.Tasks {
			d.Bind = append(d.Bind, place.Binding{Task: t.ID, Node: string(node), Devices: []int{0}})
		}
	}
	return d, nil
}

func job(name, workload string, arrival time.Duration, work float64) sim.Job {
	return sim.Job{Job: cluster.Job{Name: name, Arrival: arrival, Tasks: []cluster.Task{
		{ID: cluster.TaskID(name), Workload: workload, Role: cluster.Worker, Devices: 1},
	}}, Work: work}
}

func replay(t *testing.T, truth *measured.Truth, node string, jobs ...sim.Job) (sim.Result, error) {
	t.Helper()
	all := nodes()
	for i := range all {
		for d := range all[i].Devices {
			all[i].Devices[d].Slots = 2
		}
	}
	return sim.Run(sim.Config{Nodes: all, Jobs: jobs, Truth: truth, Policy: onto(node), Backfill: true})
}

// Two jobs share a device for a while: lm goes at .8 and a3c at .5 until lm's
// 80 s are done at 100 s; a3c has done 50 of its 60 s then, and ends at 110 s.
func TestReplay(t *testing.T) {
	w := truth(t)
	r, err := replay(t, w, "fast-0", job("x", "lm", 0, 80), job("y", "a3c", 0, 60))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{100, 110} {
		if got := r.Jobs[i].Finish.Seconds(); math.Abs(got-want) > 1e-6 {
			t.Errorf("job %d ends at %g s; want %g", i, got, want)
		}
	}
	if w.Calls() == 0 || w.Err() != nil {
		t.Errorf("%d calls, %v", w.Calls(), w.Err())
	}
}

// A policy that puts together what does not fit ends the run, and hears why.
func TestReplayOfAMisfit(t *testing.T) {
	_, err := replay(t, truth(t), "slow-0", job("x", "big", 0, 80), job("y", "a3c", time.Second, 60))
	if err == nil || !strings.Contains(err.Error(), "do not fit on one slow together: a3c+big") {
		t.Errorf("%v; want an error that names the pair", err)
	}
}
