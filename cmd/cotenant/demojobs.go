package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/cotenant/cotenant/data"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/report"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
	"github.com/cotenant/cotenant/sim/contention"
)

// demoServers, demoProfile and demoNoise are the contention world of the demo:
// the paper's testbed, and what its profiler measured beforehand.
const (
	demoServers = 6
	demoProfile = 500
	demoNoise   = 0.03
)

// demoJobPolicies are compared on the example trace.
var demoJobPolicies = []string{compare.Spread, "tetris", "greedy", "greedy-wait", compare.Harmony}

// jobPolicyWords say in a sentence what each of them does.
var jobPolicyWords = map[string]string{
	compare.Spread:  "where the fewest run: what schedulers do that count requests",
	"tetris":        "where demand and free resources align best",
	"greedy":        "where the sum of progress is predicted to gain most",
	"greedy-wait":   "greedy, but a job that would gain too little waits",
	compare.Harmony: "a network trained by reinforcement learning",
}

// exampleName is the trace that ships, in words.
const exampleName = "the example trace"

func demoWorld() (*compare.World, error) {
	return compare.Contention(compare.ContentionConfig{
		Servers: demoServers, Profile: contention.SamplesConfig{Colocations: demoProfile, Seed: 1, Noise: demoNoise},
	})
}

// jobsTrial is the example trace replayed by several policies.
type jobsTrial struct {
	simulation
	watched  *watched
	outcomes []compare.Outcome
}

// replayJobs replays the first jobs of the example trace.
func replayJobs(ctx context.Context, log io.Writer, f *demoFlags) (*jobsTrial, error) {
	t := &jobsTrial{watched: &watched{page: true, first: f.seed, runs: map[runKey]*watchedRun{}}}
	var err error
	if t.World, err = demoWorld(); err != nil {
		return nil, err
	}
	list, _, err := formats.ReadTrace(bytes.NewReader(data.Trace), formats.Options{Name: exampleName, Strict: true})
	if err != nil {
		return nil, err
	}
	trace, err := t.World.FromTrace(list[:min(f.jobs, len(list))], compare.TraceOptions{Options: formats.Options{Name: exampleName, Strict: true}})
	if err != nil {
		return nil, err
	}
	t.trace = &trace
	t.Jobs = func(uint64) ([]sim.Job, error) { return trace.Jobs, nil }
	for _, name := range demoJobPolicies {
		t.Specs = append(t.Specs, compare.Spec{Text: name, Name: name})
	}
	t.Seeds, t.Parallel, t.Hook = []uint64{f.seed}, parallel, t.watched.hook
	t.Options = sim.Config{Backfill: true}
	t.Belief = compare.Belief{Observed: 1, Kind: interference.KindNeural}
	if err := t.Check(); err != nil {
		return nil, err
	}
	t.outcomes, err = t.runAll(ctx, log)
	if ctx.Err() != nil {
		return nil, stopped("no report was written")
	}
	return t, err
}

// writeDemo prints the table of the demo: fewer columns than `simulate jobs`
// has.
func (t *jobsTrial) writeDemo(w io.Writer) error {
	rows := compare.Rows(t.outcomes)
	unit, per := timeUnit(rows)
	fmt.Fprintf(w, "replayed: %s, %d training jobs on %d servers of 4 devices (parameter servers and workers, a written-down model of contention)\n",
		exampleName, len(t.trace.Jobs), demoServers)
	fmt.Fprintf(w, "policies see a neural model of %d co-locations that a profiler measured there; JCT is a job's time from arrival to finish\n", demoProfile)
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, []string{
			r.Spec.Text, number(r.Ratio).text(3), percentOf(r.Closed), number(r.MeanJCT / per).text(2), number(r.MaxWait / per).text(2),
		})
	}
	cells = append(cells, []string{"(lower bound)", number(rows[0].Bound).text(3), percentOf(1), number(rows[0].Bound * rows[0].MeanJCT / per).text(2), number(0).text(2)})
	if err := writeTable(w, []string{"policy", " JCT / spread", " gap closed", " mean JCT " + unit, " longest wait"}, cells); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "One trace, one seed: cotenant simulate jobs --contention --seeds 5 says how far the differences can be trusted.")
	return err
}

// report is the replay for the page.
func (t *jobsTrial) report() *report.Simulation {
	s := t.page(t.watched, t.outcomes)
	s.Facts = []report.Fact{
		{Name: "Jobs", Text: fmt.Sprintf("%d of %s, each with as many parameter servers as workers", len(t.trace.Jobs), exampleName)},
		{Name: "Cluster", Text: fmt.Sprintf("%d servers of 4 devices, whose contention is a written-down model of processors, memory, PCIe and network", demoServers)},
		{Name: "Policies see", Text: fmt.Sprintf("rates alone, and a neural model of %d co-locations that a profiler measured there; no policy knows how long a job takes", demoProfile)},
		{Name: "Rules", Text: "jobs are placed whole or wait; one that finds no place lets later ones pass"},
	}
	for i := range s.Policies {
		s.Policies[i].Words = jobPolicyWords[s.Policies[i].Name]
	}
	return &s
}
