package sim_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/sim"
)

// scaling is crowd that knows other sizes.
type scaling struct{ crowd }

func (scaling) Scale(_ string, own, workers int) float64 {
	return math.Sqrt(float64(workers) / float64(own))
}

// drawConfig draws a small run with any of the options.
func drawConfig(t *rapid.T) sim.Config {
	c := sim.Config{
		Seed:     rapid.Uint64Range(0, 1000).Draw(t, "seed"),
		Backfill: rapid.Bool().Draw(t, "backfill"), Priorities: rapid.Bool().Draw(t, "priorities"),
		Interval: rapid.SampledFrom([]time.Duration{0, 0, 7 * s}).Draw(t, "interval"),
		Stale:    rapid.SampledFrom([]time.Duration{0, 0, 5 * s}).Draw(t, "stale"),
		Migrate:  sim.Price{On: rapid.Bool().Draw(t, "migrate"), Cost: 3 * s},
		Scale:    sim.Price{On: rapid.Bool().Draw(t, "scale"), Cost: 2 * s},
		MTBF:     rapid.SampledFrom([]time.Duration{0, 0, 300 * s}).Draw(t, "mtbf"), Repair: 10 * s,
		JobFailure: rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "job failure"),
		Checkpoint: rapid.SampledFrom([]float64{0, 5}).Draw(t, "checkpoint"),
		Truth:      scaling{},
	}
	for n := range rapid.IntRange(1, 3).Draw(t, "nodes") {
		node := cluster.Node{
			Name: fmt.Sprint("n", n), Slots: rapid.IntRange(0, 4).Draw(t, "slots"),
			Capacity: cluster.Resources{cluster.Memory: 6},
		}
		for d := range rapid.IntRange(0, 3).Draw(t, "devices") {
			node.Devices = append(node.Devices, cluster.Device{Name: fmt.Sprint(d), Slots: rapid.IntRange(0, 2).Draw(t, "device slots")})
		}
		c.Nodes = append(c.Nodes, node)
	}
	for i := range rapid.IntRange(0, 8).Draw(t, "jobs") {
		j := gang(fmt.Sprint("j", i), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "workload"),
			time.Duration(rapid.IntRange(0, 60_000).Draw(t, "arrival"))*time.Millisecond,
			float64(rapid.IntRange(1, 60_000).Draw(t, "work"))/1000, rapid.IntRange(1, 3).Draw(t, "workers"))
		j.Priority = rapid.IntRange(0, 2).Draw(t, "priority")
		if rapid.Bool().Draw(t, "scales") {
			j.MinWorkers, j.MaxWorkers = 1, len(j.Tasks)+rapid.IntRange(0, 2).Draw(t, "more")
		}
		for k := range j.Tasks {
			j.Tasks[k].Devices = rapid.IntRange(0, 2).Draw(t, "devices")
		}
		if rapid.Bool().Draw(t, "server") {
			j.Tasks = append(j.Tasks, cluster.Task{
				ID: cluster.TaskID(j.Name + "/ps"), Workload: "ps", Role: cluster.ParameterServer,
				Requests: cluster.Resources{cluster.Memory: rapid.Int64Range(0, 4).Draw(t, "memory")},
			})
		}
		c.Jobs = append(c.Jobs, j)
	}
	byName := map[string]sim.Job{}
	for _, j := range c.Jobs {
		byName[j.Name] = j
	}
	c.Policy = chaos{jobs: byName, zeal: true, migrate: c.Migrate.On, resize: c.Scale.On}
	return c
}

// ledger adds up what a watcher sees of a run, and notes what must not be.
type ledger struct {
	config sim.Config
	work   map[string]float64
	last   time.Duration
	wrong  string
}

func (l *ledger) watch(v sim.Stretch) {
	if v.To <= v.From || v.From < l.last {
		l.wrong = fmt.Sprintf("a stretch from %s to %s after %s", v.From, v.To, l.last)
	}
	l.last = v.To
	if newTally(v.View).overfull() {
		l.wrong = fmt.Sprintf("more runs than fits: %v", v.View.Running())
	}
	tasks, slowest, rate := map[string]int{}, map[string]float64{}, map[string]float64{}
	for i, r := range v.View.Running() {
		tasks[r.Group]++
		if r.Role == cluster.Worker {
			if p, ok := slowest[r.Group]; !ok || v.Progress[i] < p {
				slowest[r.Group] = v.Progress[i]
			}
		}
		if _, ok := rate[r.Group]; !ok {
			l.work[r.Group] += v.Rate[i] * max(0, v.To-max(v.From, v.Still[i])).Seconds()
		}
		rate[r.Group] = v.Rate[i]
	}
	for _, j := range l.config.Jobs {
		n := tasks[j.Name]
		scales := l.config.Scale.On && j.MaxWorkers > 0
		if n > 0 && n != len(j.Tasks) && !scales {
			l.wrong = fmt.Sprintf("%d of %d tasks of job %s run", n, len(j.Tasks), j.Name)
		}
		if n > 0 && n == len(j.Tasks) && math.Abs(slowest[j.Name]-rate[j.Name]) > 1e-12 {
			l.wrong = fmt.Sprintf("job %s runs at %g, its slowest worker at %g", j.Name, rate[j.Name], slowest[j.Name])
		}
	}
}

func TestPropertyRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		l := &ledger{config: c, work: map[string]float64{}}
		c.Watch = l.watch
		r, err := sim.Run(c)
		if err != nil {
			t.Fatal(err)
		}
		if l.wrong != "" {
			t.Fatal(l.wrong)
		}
		if len(r.Unfinished) > 0 && r.Why == "" {
			t.Fatalf("%v did not finish, and the result does not say why", r.Unfinished)
		}
		for _, j := range r.Jobs {
			did := l.work[j.Name]
			switch j.State {
			case sim.Finished:
				if math.Abs(did-j.Work-j.Lost) > 1e-6 {
					t.Errorf("job %s did %g s of work; it has %g and lost %g", j.Name, did, j.Work, j.Lost)
				}
				if !c.Scale.On && j.JCT().Seconds() < j.Work-1e-9 {
					t.Errorf("job %s took %s for %g s of work", j.Name, j.JCT(), j.Work)
				}
				if j.Start < j.Arrival || j.Finish < j.Start {
					t.Errorf("job %s: arrival %s, start %s, finish %s", j.Name, j.Arrival, j.Start, j.Finish)
				}
			case sim.Refused:
				if j.Started || j.Why == "" || did > 0 {
					t.Errorf("job %s was refused (%q), yet started: %t, %g s of work", j.Name, j.Why, j.Started, did)
				}
			}
		}
		// The same bytes again, watched or not.
		c.Watch = nil
		again, err := sim.Run(c)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(r)
		b, _ := json.Marshal(again)
		if string(a) != string(b) {
			t.Fatalf("the same run twice gave\n%s\n%s", a, b)
		}
	})
}

// Where each device takes every job and the policy holds nothing that fits,
// every job that was not refused finishes.
func TestPropertyAllFinish(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		// chaos places jobs at their own size, which scaling would not ask to fit.
		c.Stale, c.Scale.On = 0, false
		c.Policy = chaos{zeal: true, migrate: c.Migrate.On}
		for i := range c.Nodes {
			c.Nodes[i].Slots = 0
		}
		for i := range c.Jobs {
			tasks := c.Jobs[i].Tasks[:0:0]
			for _, task := range c.Jobs[i].Tasks {
				task.Devices, task.Requests = min(task.Devices, 1), nil
				tasks = append(tasks, task)
			}
			c.Jobs[i].Tasks = tasks
		}
		r, err := sim.Run(c)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Unfinished) > 0 {
			t.Fatalf("%v did not finish: %s", r.Unfinished, r.Why)
		}
	})
}
