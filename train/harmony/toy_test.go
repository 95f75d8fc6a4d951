package harmony_test

import (
	"fmt"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place/encode"
	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/rl"
	"github.com/cotenant/cotenant/train/harmony"
)

// toy is a world of one workload, two of which share a device at 0.62 of their
// speed each: together they gain 0.24, which greedy-wait refuses. At a load
// above 1 that is wrong: only devices that are shared keep up.
func toy(t testing.TB, load float64) harmony.World {
	t.Helper()
	w, err := toyWorld(load)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// toyStream is a toy with as many jobs as are wanted.
func toyStream(t testing.TB, load float64, jobs int) harmony.World {
	t.Helper()
	w, err := toyJobs(load, jobs)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func toyWorld(load float64) (harmony.World, error) { return toyJobs(load, 80) }

func toyJobs(load float64, n int) (harmony.World, error) {
	model, err := interference.Fit(interference.KindTable, []history.Sample{
		{Scope: history.ScopeDevice, Colocation: cluster.Colocation{"a": 1}, Workload: "a", Metric: history.Rate, Value: 1, Alone: 1},
		{Scope: history.ScopeDevice, Colocation: cluster.Colocation{"a": 2}, Workload: "a", Metric: history.Rate, Value: 0.62, Alone: 1},
	}, interference.Options{})
	if err != nil {
		return harmony.World{}, err
	}
	streams := harmony.Streams{
		Classes: []string{""}, Workloads: []string{"a"}, Jobs: n, Load: [2]float64{load, load}, Devices: [2]int{4, 4}, Share: 2,
		Alone: func(string, string, []string) (float64, bool) { return 1, true },
	}
	return harmony.World{
		Name: fmt.Sprintf("toy at %g", load), Speeds: jobs.NewSpeeds(model, jobs.Options{Scope: history.ScopeDevice}), Draw: streams.Draw,
	}, nil
}

// quick is a Config for tests: a few short updates with large steps.
func quick(worlds ...harmony.World) harmony.Config {
	o := rl.DefaultOptions()
	o.Minibatch = 128
	o.Rate = rl.Constant(5e-3)
	o.Trace = rl.Trace{Decision: 0.98}
	o.Remember = 5000
	o.Good = rl.Constant(0.1)
	return harmony.Config{
		Worlds: worlds, Seed: 1, Updates: 12, Episodes: 16, Takes: 4, Prior: 5, Noted: 0.5, Every: 4, Validation: 4, Rl: &o,
		Threshold: encode.Fixed(0.3), // that the toy is there to undo
	}
}

func trainer(t testing.TB, c harmony.Config) *harmony.Trainer {
	t.Helper()
	tr, err := harmony.NewTrainer(c)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}
