package sim_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/sim"
)

// play decides what it is told, one decision after another, and then as least.
type play struct {
	least
	moves []place.Decision
	at    int
}

func (p *play) Place(req place.Request) (place.Decision, error) {
	if p.at < len(p.moves) {
		p.at++
		return p.moves[p.at-1], nil
	}
	return p.least.Place(req)
}

func bind(task, node string, devices ...int) place.Binding {
	return place.Binding{Task: cluster.TaskID(task), Node: node, Devices: devices}
}

func TestBadDecisionsAreErrors(t *testing.T) {
	on := sim.Price{On: true}
	decide := func(b ...place.Binding) []place.Decision { return []place.Decision{{Bind: b}} }
	whole := place.Decision{Bind: []place.Binding{bind("g/0", "v100-0", 0), bind("g/1", "v100-1", 0)}}
	for wanted, try := range map[string]struct {
		decisions []place.Decision
		migrate   sim.Price
		scale     sim.Price
	}{
		`binds task "x", which no job has`:                  {decisions: decide(bind("x", "v100-0", 0))},
		`task "g/0" of job "g" to node "y"`:                 {decisions: decide(bind("g/0", "y", 0))},
		`job "g": binds 1 of 2 tasks`:                       {decisions: decide(bind("g/0", "v100-0", 0))},
		`task "g/0" of job "g", which it names twice`:       {decisions: decide(bind("g/0", "v100-0", 0), bind("g/0", "v100-1", 0))},
		`binds task "h/0" of job "h", which is not pending`: {decisions: decide(bind("h/0", "v100-0", 0))},
		`node "v100-0": device 0 has no free slot`:          {decisions: decide(bind("g/0", "v100-0", 0), bind("g/1", "v100-0", 0))},
		`node "v100-0": devices [1], but it has 1`:          {decisions: decide(bind("g/0", "v100-1", 0), bind("g/1", "v100-0", 1))},
		`node "v100-0": devices [], but the task asks for 1`: {
			decisions: decide(bind("g/0", "v100-1", 0), bind("g/1", "v100-0")),
		},
		`names twice`: {decisions: []place.Decision{{Bind: whole.Bind, Hold: []place.Hold{{Task: "g/1"}}}}},
		`holds task "h/0" of job "h", which is not pending`: {decisions: []place.Decision{{Hold: []place.Hold{{Task: "h/0"}}}}},
		`this run does not allow moves`:                     {decisions: []place.Decision{{Move: []place.Move{{Task: "g/0", To: "v100-2"}}}}},
		`moves task "g/0" of job "g", which does not run`: {
			migrate:   on,
			decisions: []place.Decision{{Move: []place.Move{{Task: "g/0", To: "v100-2"}}}},
		},
		`job "g": task "g/0" does not fit: node "v100-1": device 0`: {
			migrate:   on,
			decisions: []place.Decision{whole, {Move: []place.Move{{Task: "g/0", To: "v100-1", Devices: []int{0}}}}},
		},
		`which runs already`: {migrate: on, decisions: []place.Decision{whole, whole}},
		`resizes job "g" to 3 workers, but this run does not allow it`: {
			decisions: []place.Decision{{Resize: []place.Resize{{Group: "g", Workers: 3}}}},
		},
		`resizes job "g" to 4 workers; it takes 1 to 3`: {
			scale:     on,
			decisions: []place.Decision{{Resize: []place.Resize{{Group: "g", Workers: 4}}}},
		},
		`resizes job "g" twice`: {
			scale:     on,
			decisions: []place.Decision{{Resize: []place.Resize{{Group: "g", Workers: 1}, {Group: "g", Workers: 2}}}},
		},
		`resizes job "h", which does not scale`: {scale: on, decisions: []place.Decision{{Resize: []place.Resize{{Group: "h", Workers: 1}}}}},
		`resizes job "z", which does not exist`: {scale: on, decisions: []place.Decision{{Resize: []place.Resize{{Group: "z", Workers: 1}}}}},
		`job "g": grows from 2 to 3 workers with 0 of 1 new ones bound`: {
			scale:     on,
			decisions: []place.Decision{whole, {Resize: []place.Resize{{Group: "g", Workers: 3}}}},
		},
		`job "g": binds 2 of 3 tasks`: {
			scale:     on,
			decisions: []place.Decision{{Resize: []place.Resize{{Group: "g", Workers: 3}}, Bind: whole.Bind}},
		},
		`job "g": binds 1 of 1 tasks, and 1 that it has not at that size`: {
			scale:     on,
			decisions: []place.Decision{{Resize: []place.Resize{{Group: "g", Workers: 1}}, Bind: whole.Bind}},
		},
	} {
		g := gang("g", "w", 0, 100, 2)
		g.MinWorkers, g.MaxWorkers = 1, 3
		c := sim.Config{
			Nodes: gpus(3, 1), Jobs: []sim.Job{g, single("h", "w", 10*s, 10)}, Truth: scaling{},
			Policy: &play{moves: try.decisions}, Name: "bad", Migrate: try.migrate, Scale: try.scale,
		}
		_, err := sim.Run(c)
		if err == nil || !strings.Contains(err.Error(), wanted) || !strings.HasPrefix(err.Error(), "policy bad at ") {
			t.Errorf("%v\nwant %q", err, wanted)
		}
	}
}

type wrong struct{ rates map[cluster.TaskID]float64 }

func (w wrong) Rates(*cluster.Snapshot, []cluster.TaskID) map[cluster.TaskID]float64 { return w.rates }

func TestBadTruthsAreErrors(t *testing.T) {
	for wanted, rates := range map[string]map[cluster.TaskID]float64{
		`gives no progress of task "a/0" of job "a" on node "v100-0"`: {},
		`gives task "a/0" of job "a" the progress -1`:                 {"a/0": -1},
	} {
		_, err := sim.Run(sim.Config{Nodes: gpus(1, 1), Jobs: []sim.Job{single("a", "w", 0, 1)}, Truth: wrong{rates}, Policy: &least{}, Name: "p"})
		if err == nil || !strings.Contains(err.Error(), wanted) || !strings.HasPrefix(err.Error(), "with policy p at 0s: truth (sim_test.wrong)") {
			t.Errorf("%v, want %q", err, wanted)
		}
	}
	never := wrong{map[cluster.TaskID]float64{"a/0": math.NaN()}}
	_, err := sim.Run(sim.Config{Nodes: gpus(1, 1), Jobs: []sim.Job{single("a", "w", 0, 1)}, Truth: explained{never}, Policy: &least{}})
	if !errors.Is(err, errFailing) {
		t.Errorf("%v, want also what the truth says of it", err)
	}
}

type explained struct{ wrong }

func (explained) Err() error { return errFailing }

type failing struct{}

var errFailing = errors.New("out of luck")

func (failing) Place(place.Request) (place.Decision, error) { return place.Decision{}, errFailing }

func TestPolicyErrorsSayWhoAndWhen(t *testing.T) {
	_, err := sim.Run(sim.Config{Nodes: gpus(1, 1), Jobs: []sim.Job{single("a", "w", 3*s, 1)}, Truth: crowd{}, Policy: failing{}, Name: "unlucky"})
	if !errors.Is(err, errFailing) || !strings.Contains(err.Error(), "policy unlucky at 3s") {
		t.Error(err)
	}
}

func TestBadConfigsAreRefused(t *testing.T) {
	change := func(f func(*sim.Config)) sim.Config {
		c := sim.Config{Nodes: gpus(1, 1), Jobs: []sim.Job{single("a", "w", 0, 1), single("b", "w", 0, 1)}, Truth: crowd{}, Policy: &least{}}
		f(&c)
		return c
	}
	for wanted, c := range map[string]sim.Config{
		"no truth":                         change(func(c *sim.Config) { c.Truth = nil }),
		"no policy":                        change(func(c *sim.Config) { c.Policy = nil }),
		"probability 1 that a job fails":   change(func(c *sim.Config) { c.JobFailure = 1 }),
		"checkpoint after -1":              change(func(c *sim.Config) { c.Checkpoint = -1 }),
		"interval is -1s":                  change(func(c *sim.Config) { c.Interval = -s }),
		"-1 restarts":                      change(func(c *sim.Config) { c.MaxRestarts = -1 }),
		"it has no Scale":                  change(func(c *sim.Config) { c.Scale.On = true }),
		`job "a": listed twice`:            change(func(c *sim.Config) { c.Jobs[1] = c.Jobs[0] }),
		`task "a/0" is in job "a" too`:     change(func(c *sim.Config) { c.Jobs[1].Tasks = c.Jobs[0].Tasks }),
		`job "a": work 0 s`:                change(func(c *sim.Config) { c.Jobs[0].Work = 0 }),
		`job "a": arrival -1s`:             change(func(c *sim.Config) { c.Jobs[0].Arrival = -s }),
		`job "a": no tasks`:                change(func(c *sim.Config) { c.Jobs[0].Tasks = nil }),
		`has no name`:                      change(func(c *sim.Config) { c.Jobs[0].Name = "" }),
		`task "a/0" has no workload`:       change(func(c *sim.Config) { c.Jobs[0].Tasks[0].Workload = "" }),
		`a task has no ID`:                 change(func(c *sim.Config) { c.Jobs[0].Tasks[0].ID = "" }),
		`task "a/0" asks for -1 devices`:   change(func(c *sim.Config) { c.Jobs[0].Tasks[0].Devices = -1 }),
		`task "a/0" asks for -1 of cpu`:    change(func(c *sim.Config) { c.Jobs[0].Tasks[0].Requests = cluster.Resources{"cpu": -1} }),
		`scales from 0 to 2 workers`:       change(func(c *sim.Config) { c.Jobs[0].MaxWorkers = 2 }),
		`node "v100-0": slots -1`:          change(func(c *sim.Config) { c.Nodes[0].Slots = -1 }),
		"time of repair is -1s":            change(func(c *sim.Config) { c.Repair = -s }),
		`work 1e+300 s; it must be more t`: change(func(c *sim.Config) { c.Jobs[0].Work = 1e300 }),
	} {
		if _, err := sim.Run(c); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%v, want %q", err, wanted)
		}
	}
}

// A gang that the empty cluster cannot take is refused at once; the others do
// not wait behind it.
func TestWhatNeverFitsIsRefused(t *testing.T) {
	nodes := gpus(2, 1)
	nodes[0].Capacity = cluster.Resources{cluster.Memory: 10}
	two := single("two-devices", "w", 0, 1)
	two.Tasks[0].Devices = 2
	memory := gang("memory", "w", 0, 1, 2)
	for i := range memory.Tasks {
		memory.Tasks[i].Requests = cluster.Resources{cluster.Memory: 6}
	}
	r, err := sim.Run(sim.Config{
		Nodes: nodes, Jobs: []sim.Job{gang("three", "w", 0, 1, 3), two, memory, gang("fits", "w", s, 1, 2)}, Truth: crowd{}, Policy: &least{},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Refused) != 3 || len(r.Unfinished) != 0 || r.Jobs[3].Finish != 2*s {
		t.Errorf("refused %v, unfinished %v, %+v", r.Refused, r.Unfinished, r.Jobs[3])
	}
	for i, why := range []string{"takes 2 of its 3 tasks", "takes 0 of its 1 tasks", "takes 1 of its 2 tasks"} {
		if !strings.Contains(r.Jobs[i].Why, why) {
			t.Errorf("job %s: %q, want %q", r.Jobs[i].Name, r.Jobs[i].Why, why)
		}
	}
}

type holdAll struct{}

func (holdAll) Place(place.Request) (place.Decision, error) { return place.Decision{}, nil }

// Runs that get nowhere end, whatever the options, and say so.
func TestRunsThatGetNowhereEnd(t *testing.T) {
	c := sim.Config{Nodes: gpus(2, 1), Jobs: []sim.Job{single("a", "w", 0, 1), single("b", "w", 5*s, 1)}, Truth: crowd{}, Policy: holdAll{}}
	still := c
	still.Policy, still.Truth = &least{}, wrong{map[cluster.TaskID]float64{"a/0": 0, "b/0": 0}}
	for name, c := range map[string]sim.Config{"holds": c, "stands still": still} {
		for _, interval := range []time.Duration{0, s} {
			for _, stale := range []time.Duration{0, 3 * s} {
				for _, mtbf := range []time.Duration{0, 100 * s} {
					c.Interval, c.Stale, c.MTBF, c.Repair, c.MaxRestarts = interval, stale, mtbf, 30*s, 3
					r, err := sim.Run(c)
					if err != nil {
						t.Fatal(err)
					}
					if len(r.Unfinished) != 2 || r.Why == "" {
						t.Errorf("%s: unfinished %v: %q", name, r.Unfinished, r.Why)
					}
				}
			}
		}
	}
}
