package sim_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/sim"
)

// stepped replays jobs in small steps of time: no heap, nothing lazy, every
// rate asked for at every step. It gives the times of finishing in seconds,
// NaN for jobs that did not finish by the end.
func stepped(t *rapid.T, c sim.Config, end float64) []float64 {
	const dt = 1. / 64
	type state struct {
		left    float64
		running []cluster.Running
		waits   bool
	}
	jobs := make([]state, len(c.Jobs))
	finish := make([]float64, len(c.Jobs))
	for i, j := range c.Jobs {
		jobs[i].left, finish[i] = j.Work, math.NaN()
	}
	byArrival := make([]int, len(jobs))
	for i := range byArrival {
		byArrival[i] = i
	}
	slices.SortStableFunc(byArrival, func(a, b int) int { return int(c.Jobs[a].Arrival - c.Jobs[b].Arrival) })
	view := func() *cluster.Snapshot {
		spec := cluster.Spec{Nodes: c.Nodes}
		for i := range jobs {
			spec.Running = append(spec.Running, jobs[i].running...)
		}
		v, err := cluster.NewSnapshot(spec)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	place1 := func(now float64, offered []int) (all bool) {
		req := place.Request{View: view(), Now: time.Duration(now * 1e9)}
		for _, i := range offered {
			req.Pending = append(req.Pending, c.Jobs[i].Group())
		}
		d, err := c.Policy.Place(req)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range d.Bind {
			for _, i := range offered {
				for _, task := range c.Jobs[i].Tasks {
					if task.ID == b.Task {
						jobs[i].waits = false
						jobs[i].running = append(jobs[i].running, cluster.Running{
							Task: task, Node: b.Node, On: slices.Clone(b.Devices), Group: c.Jobs[i].Name,
						})
					}
				}
			}
		}
		return !slices.ContainsFunc(offered, func(i int) bool { return jobs[i].waits })
	}
	grid := c.Interval.Seconds()
	for step := 0; float64(step)*dt < end; step++ {
		now := float64(step) * dt
		for i, j := range c.Jobs {
			if j.Arrival.Seconds() <= now && len(jobs[i].running) == 0 && math.IsNaN(finish[i]) {
				jobs[i].waits = true
			}
		}
		if math.Mod(now, grid) == 0 {
			var waiting []int
			for _, i := range byArrival {
				if jobs[i].waits {
					waiting = append(waiting, i)
				}
			}
			if c.Backfill {
				place1(now, waiting)
			}
			for _, i := range waiting {
				if c.Backfill || !place1(now, []int{i}) {
					break
				}
			}
		}
		v := view()
		var ids []cluster.TaskID
		for _, r := range v.Running() {
			ids = append(ids, r.ID)
		}
		rates := c.Truth.Rates(v, ids)
		for i := range jobs {
			if len(jobs[i].running) == 0 {
				continue
			}
			pace := math.Inf(1)
			for _, r := range jobs[i].running {
				if r.Role == cluster.Worker {
					pace = min(pace, rates[r.ID])
				}
			}
			jobs[i].left -= pace * dt
			if jobs[i].left <= 0 {
				finish[i] = now + dt
				jobs[i].running = nil
			}
		}
	}
	return finish
}

// The simulator agrees with the plain replay to the length of a few steps.
// Cases in which a job ends so near a decision that a step could put it on the
// other side of it are left out.
func TestAgreesWithSteps(t *testing.T) {
	tried := 0
	rapid.Check(t, func(t *rapid.T) {
		c := sim.Config{
			Truth: &share{slow: map[string]float64{"a": 0.5, "b": 1}}, Policy: &least{},
			Interval: 8 * s, Backfill: rapid.Bool().Draw(t, "backfill"),
			Nodes: gpus(rapid.IntRange(1, 3).Draw(t, "nodes"), rapid.IntRange(1, 3).Draw(t, "slots")),
		}
		slots := len(c.Nodes) * c.Nodes[0].Devices[0].Slots
		for i := range rapid.IntRange(1, 6).Draw(t, "jobs") {
			c.Jobs = append(c.Jobs, gang(string(rune('a'+i)), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "workload"),
				time.Duration(8000*rapid.IntRange(0, 5).Draw(t, "interval")+rapid.IntRange(1000, 7000).Draw(t, "arrival"))*time.Millisecond,
				float64(rapid.IntRange(1000, 40_000).Draw(t, "work"))/1000, min(slots, rapid.IntRange(1, 3).Draw(t, "workers"))))
		}
		const slack = 0.25
		near := func(at float64) bool {
			off := math.Mod(at, 8)
			return off < slack || off > 8-slack
		}
		r, err := sim.Run(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range r.Jobs {
			if near(j.Finish.Seconds()) {
				return
			}
		}
		tried++
		for i, at := range stepped(t, c, r.Makespan+60) {
			if got := r.Jobs[i].Finish.Seconds(); !(math.Abs(got-at) < slack) {
				t.Errorf("job %s finishes at %g s, in small steps at %g s", r.Jobs[i].Name, got, at)
			}
		}
	})
	if tried == 0 {
		t.Error("compared no run")
	}
}
