package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/cotenant/cotenant/kubernetes/bench"
	"github.com/cotenant/cotenant/kubernetes/controlplane"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
)

// jobsFlags are those of `bench jobs`.
type jobsFlags struct {
	servers  int
	profiled int
	load     compare.Load
	seed     uint64
	rounds   int
	span     time.Duration
	limits   bench.Limits
	program  string
	together bool
	settle   time.Duration
}

func benchJobsCommand() *cobra.Command {
	var f jobsFlags
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "Replay training jobs with the stock scheduler and with ours, beside the simulator: JSON Lines on standard output",
		Long: `Draw the jobs of "cotenant simulate jobs --contention --backfill", run them in
the simulator by spread (which is how the stock scheduler scores) and by harmony,
and then on control planes, by the stock scheduler and by ours with harmony:
each job is a PodGroup of workers and parameter servers that go together,
submitted when it arrives, and ended when its work is done at the speeds that
the same world gives for where its pods really are. Time is compressed. The last
line holds the ratios of mean job completion times.`,
		Args: cobra.NoArgs,
		RunE: whole(func(cmd *cobra.Command) error { return benchJobs(cmd, f) }),
	}
	fl := cmd.Flags()
	fl.IntVar(&f.servers, "servers", 6, "`N` servers of 4 GPUs")
	fl.IntVar(&f.profiled, "profile", 3000, "`N` co-locations that a profiler measured beforehand")
	fl.IntVar(&f.load.Jobs, "jobs", 200, "`N` jobs")
	fl.Float64Var(&f.load.Load, "load", .9, "arrival rate x mean time alone / capacity")
	fl.Uint64Var(&f.seed, "seed", 1, "`S`, the seed of the jobs and of the model")
	fl.IntVar(&f.rounds, "rounds", 1, "run both schedulers `N` times, in turn: A B A B")
	fl.DurationVar(&f.span, "span", 6*time.Minute, "`time` in which spread's run would pass: how much time is compressed")
	fl.Float32Var(&f.limits.QPS, "qps", 1000, "requests a second that a scheduler's client may send: more than by default, since hours pass in seconds")
	fl.Int32Var(&f.limits.Burst, "burst", 2000, "requests that it may send at once")
	fl.StringVar(&f.program, "ours", "cotenant-scheduler", "`program` beside the stock scheduler, in the folder of programs or a path")
	fl.DurationVar(&f.settle, "settle", 0, "`time` for which the jobs' time stands still after each event, so that a scheduler's seconds do not count as hours; 4s is what the stock scheduler's backoff takes")
	fl.BoolVar(&f.together, "together", false, "run both schedulers at the same time, each on a plane of its own: little is computed, most is waited for")
	return cmd
}

// ratios compare ours with the stock scheduler, by mean job completion times.
type ratios struct {
	Load float64 `json:"load"`
	Seed uint64  `json:"seed"`
	Jobs int     `json:"jobs"`
	// Plane is the mean over rounds of cotenant / stock, Simulated harmony / spread.
	Plane     float64 `json:"ratio_plane"`
	Simulated float64 `json:"ratio_simulated"`
	// Points is 100 times the difference.
	Points float64 `json:"points"`
}

func benchJobs(cmd *cobra.Command, f jobsFlags) error {
	switch {
	case f.rounds < 1:
		return fmt.Errorf("--rounds %d: give 1 or more", f.rounds)
	case f.span < time.Second:
		return fmt.Errorf("--span %v: give a second or more", f.span)
	}
	ctx, lines := cmd.Context(), json.NewEncoder(cmd.OutOrStdout())
	if err := (controlplane.Config{}).Check(ctx, controlplane.Scheduler{Program: f.program}); err != nil {
		return fmt.Errorf("--ours: %w", err)
	}
	testbed, err := bench.NewTestbed(f.servers, f.profiled)
	if err != nil {
		return err
	}
	simulated, err := simulateBoth(ctx, testbed, f, lines)
	if err != nil {
		return err
	}
	replay := bench.Replay{Testbed: testbed, Limits: f.limits, Settle: f.settle, Rate: simulated[0].Makespan / f.span.Seconds(), Log: cmd.ErrOrStderr()}
	if replay.Jobs, err = testbed.Generate(f.load, f.seed); err != nil {
		return err
	}
	if replay.Model, err = testbed.Model(f.seed); err != nil {
		return err
	}
	ours := bench.OursForJobs()
	ours.Program = f.program
	candidates := []bench.Candidate{bench.StockForJobs(), ours}
	mean := make([]float64, len(candidates))
	for round := range f.rounds {
		fmt.Fprintf(cmd.ErrOrStderr(), "round %d of %d\n", round+1, f.rounds)
		results, err := replayAll(ctx, replay, candidates, f.together)
		if err != nil {
			return err
		}
		for i, r := range results {
			mean[i] += r.MeanJCT
			if err := lines.Encode(r); err != nil {
				return err
			}
		}
	}
	out := ratios{
		Load: f.load.Load, Seed: f.seed, Jobs: f.load.Jobs,
		Plane: mean[1] / mean[0], Simulated: simulated[1].MeanJCT / simulated[0].MeanJCT,
	}
	out.Points = 100 * (out.Plane - out.Simulated)
	return lines.Encode(out)
}

// replayAll runs a replay by each scheduler, one after the other or at once.
func replayAll(ctx context.Context, replay bench.Replay, candidates []bench.Candidate, together bool) ([]bench.JobsResult, error) {
	results := make([]bench.JobsResult, len(candidates))
	group, ctx := errgroup.WithContext(ctx)
	if !together {
		group.SetLimit(1)
	}
	for i, c := range candidates {
		group.Go(func() (err error) {
			one := replay
			one.Scheduler = c
			if results[i], err = one.Run(ctx); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			return nil
		})
	}
	return results, group.Wait()
}

// simulateBoth is spread's run and harmony's.
func simulateBoth(ctx context.Context, t *bench.Testbed, f jobsFlags, lines *json.Encoder) ([]sim.Result, error) {
	policies := []string{compare.Spread, compare.Harmony}
	results, err := t.Simulate(ctx, f.load, f.seed, policies...)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		if err := lines.Encode(bench.Simulated(policies[i], r)); err != nil {
			return nil, err
		}
	}
	return results, nil
}
