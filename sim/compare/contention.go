package compare

import (
	"fmt"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/contention"
)

// ContentionConfig describes a world of servers.
type ContentionConfig struct {
	// Constants of the world; nil means those that ship.
	Constants *contention.Constants
	// Strength of contention; 0 means 1.
	Strength float64
	Servers  int
	// PerRack servers share a rack; 0 means that all do.
	PerRack int
	// Profile is what a profiler measures there, beforehand: all that is known
	// of interference.
	Profile contention.SamplesConfig
}

// profiled is the number of workers, and of parameter servers, up to which
// rates alone are measured, where Profile does not say.
const profiled = 4

// Contention is the world of servers that sim/contention writes down.
func Contention(c ContentionConfig) (*World, error) {
	if c.Servers < 1 {
		return nil, fmt.Errorf("%d servers; give at least 1", c.Servers)
	}
	config := contention.Config{Constants: c.Constants, Strength: c.Strength}
	truth, err := contention.New(config)
	if err != nil {
		return nil, err
	}
	constants := truth.Constants
	samples, err := truth.Samples(c.Profile)
	if err != nil {
		return nil, err
	}
	workers, ps := max(c.Profile.MaxWorkers, profiled), max(c.Profile.MaxPS, profiled)
	alone := truth.AloneSamples(workers, ps)
	w := &World{
		Nodes: constants.Nodes(c.Servers, c.PerRack), Declared: constants.Requests(), Scope: history.ScopeNode,
		Alone: history.NewAloneRates(alone), Samples: colocations(samples),
		truth: func() sim.Truth {
			// What New refuses, it refused above.
			t, err := contention.New(config)
			if err != nil {
				panic(err)
			}
			return t
		},
	}
	w.Generate = func(l Load, seed uint64) ([]sim.Job, error) {
		list, err := constants.Jobs(contention.JobsConfig{
			Jobs: l.Jobs, Seed: seed, Load: l.Load, Devices: c.Servers * constants.Server.Devices,
			Shortest: l.Shortest, Longest: l.Longest,
		})
		if err != nil {
			return nil, err
		}
		return finished(list, l, seed), nil
	}
	byName := map[string]*contention.Workload{}
	for i := range constants.Workloads {
		byName[constants.Workloads[i].Name] = &constants.Workloads[i]
	}
	// Traces name no parameter servers: a job gets as many as workers.
	w.TraceTasks = func(t formats.TraceJob) []cluster.Task {
		if known := byName[t.Workload]; known != nil {
			return known.Tasks(t.Name, t.Workers, t.Workers)
		}
		return t.Job().Tasks
	}
	return w, nil
}

// colocations makes samples of what servers hold into what models learn from:
// one for each workload of a co-location, whatever jobs its tasks belong to,
// and each task by itself. Jobs of all sizes differ in rate, so that what can
// be pooled is their performance. That tasks of one job slow each other as
// tasks of two do not is lost: a model of co-locations cannot know it.
func colocations(samples []history.Sample) []history.Sample {
	var out []history.Sample
	for _, s := range samples {
		if s.Colocation.Alone() {
			continue
		}
		s.Workers, s.Span, s.Role = 0, "", ""
		s.Value, s.Alone, s.Spread = s.Value/s.Alone, 1, 0
		out = append(out, s)
	}
	var names []string
	for i := range out {
		names = append(names, out[i].Workload)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		out = append(out, history.Sample{
			Source: out[0].Source, Scope: history.ScopeNode, Colocation: cluster.Colocation{name: 1}, Workload: name,
			Metric: history.Rate, Value: 1, Alone: 1,
		})
	}
	// Cells differ by whose tasks they were: the mean is what there is to learn.
	return history.Summarise(out).Samples
}
