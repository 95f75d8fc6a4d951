package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/interference"
)

func simulateCommand() *cobra.Command {
	return group("simulate", "Run jobs or services on a simulated cluster, or balance a job's workers, policy against policy", simulateJobsCommand(), simulateServicesCommand(), simulateBalanceCommand())
}

// simulateFlags are the flags of `simulate jobs`, as given.
type simulateFlags struct {
	world     worldFlags
	trace     string
	drawNames bool
	load      float64
	jobs      int
	durations string
	sizes     string
	exclude   []string
	strict    bool

	policies  []string
	observed  float64
	modelKind string
	modelSeed uint64
	online    bool

	backfill    bool
	priorities  bool
	interval    time.Duration
	stale       time.Duration
	migrate     time.Duration
	scale       time.Duration
	elastic     string
	mtbf        time.Duration
	repair      time.Duration
	jobFailures float64
	limit       time.Duration
	tune        int
	tuneSeeds   string

	seed   uint64
	seeds  int
	output string
	report string
	out    string
}

func simulateJobsCommand() *cobra.Command {
	f := &simulateFlags{}
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "Replay training jobs by several policies, and compare their completion times",
		Long: `Replay the same jobs by every policy named, on a cluster where jobs that share
slow each other as measured (--throughputs) or as a written-down model of
servers says (--contention), and compare their job completion times (JCT).

Jobs come from a trace, or are drawn: Poisson arrivals at a load, durations
log-uniform. Policies never see durations. What they know of interference is
what --observed leaves them: the speeds of that share of the measured
co-locations, and a model's predictions for the rest; what fits together and
how fast jobs run alone is always known. With --online they learn from what
they meet. NAME:truth knows everything.

harmony is a policy that was trained; harmony@FILE one of your own training
(cotenant train jobs).

The table holds every policy against spread, seed by seed: its mean JCT as a
share of spread's, with the standard error over seeds, and the share of the gap
between spread and the lower bound (nobody waits or is slowed) that it closes.

With --scale the policies that propose changes of what runs (greedy, greedy-wait,
matching, harmony) also give jobs more workers where devices are idle, and fewer
where others wait, within --elastic.

With --tune every policy that has parameters is tuned first: by the same search,
with the same budget, on the same seeds, other than those of the comparison. It
is tried in the world that it believes, so that tuning asks the truth nothing;
NAME:truth is tuned on the truth. Values given by hand stay.

After Ctrl-C the runs that finished are shown and, with --out, written.
Exit 1 when a policy failed or left jobs unfinished.`,
		Example: `  cotenant simulate jobs --throughputs throughputs.json --nodes v100:16 --load 0.9 --jobs 1000 \
      --seeds 16 --backfill --policy greedy,greedy-wait,greedy-wait:truth --observed 0.8
  cotenant simulate jobs --throughputs throughputs.json --nodes v100:24 --trace ed69ec.trace --backfill --migrate 30s
  cotenant simulate jobs --throughputs throughputs.json --nodes v100:8,k80:8 --load 1.1 --report out.html --out run
  cotenant simulate jobs --throughputs throughputs.json --nodes v100:16 --backfill --policy greedy-wait,matching --tune 40
  cotenant simulate jobs --throughputs throughputs.json --nodes v100:4x4 --sizes 1:0.7,2:0.1,4:0.15,8:0.05 --backfill --scale 30s --elastic 0.5:2
  cotenant simulate jobs --contention --nodes 6 --load 0.9 --jobs 400 --seeds 5 --strength 1.3`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.world.register(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.trace, "trace", "", "`FILE` of jobs with arrival times: Gavel's, both layouts, or openb's pods; gzip too")
	fl.BoolVar(&f.drawNames, "draw-workloads", false, "draw the workload of each job of --trace whose own has no speeds: openb names no programs")
	fl.Float64Var(&f.load, "load", 0.9, "draw jobs at this load: arrival rate x mean time alone / capacity")
	fl.IntVar(&f.jobs, "jobs", 1000, "draw `N` jobs")
	fl.StringVar(&f.durations, "durations", "", "`MIN:MAX` of the time alone of drawn jobs, log-uniform (default 0.5h:53h; with --contention 0.5h:8h)")
	fl.StringVar(&f.sizes, "sizes", "", "mix of workers of drawn jobs, `N:SHARE,...`, such as 1:0.7,2:0.1,4:0.15,8:0.05 (default: single workers)")
	fl.StringSliceVar(&f.exclude, "exclude", []string{"Recommendation"}, "leave out these families of `workloads`, in --throughputs and --trace; an empty list leaves out none")
	fl.BoolVar(&f.strict, "strict", false, "fail on the first bad record of a file instead of leaving it out")

	fl.StringArrayVar(&f.policies, "policy", nil, "policies, a comma `list` of NAME[@FILE][:truth][:key=value...] and exec:PROGRAM (default: all that are built in)")
	fl.Float64Var(&f.observed, "observed", 1, "`share` of the measured co-locations whose speeds are known beforehand, drawn by seed")
	fl.StringVar(&f.modelKind, "model-kind", interference.KindNeural, "`kind` of model that predicts the rest: linear, forest, neural")
	fl.Uint64Var(&f.modelSeed, "model-seed", 0, "draw what is observed by this `seed` for all runs (default: by the seed of each run)")
	fl.BoolVar(&f.online, "online", false, "policies learn from the speeds that they meet")

	fl.BoolVar(&f.backfill, "backfill", false, "a job that does not fit lets later ones pass")
	fl.BoolVar(&f.priorities, "priorities", false, "queue by priority: the trace's weight, or one of 3 drawn for each job")
	fl.DurationVar(&f.interval, "interval", 0, "decide on a grid of this `time` instead of at every arrival and completion")
	fl.DurationVar(&f.stale, "stale", 0, "policies see the cluster as it was this `time` ago")
	fl.DurationVar(&f.migrate, "migrate", 0, "allow running jobs to move, at this `cost` of standing still")
	fl.DurationVar(&f.scale, "scale", 0, "allow running jobs to get more or fewer workers, at this `cost` of standing still")
	fl.StringVar(&f.elastic, "elastic", "0.5:2", "`MIN:MAX` of the workers of a job, as factors on its own number (--scale)")
	fl.DurationVar(&f.mtbf, "mtbf", 0, "mean `time` between failures of a node (default: never)")
	fl.DurationVar(&f.repair, "repair", time.Hour, "`time` to repair a node")
	fl.Float64Var(&f.jobFailures, "job-failures", 0, "`probability` that a run of a job fails and starts again")
	fl.DurationVar(&f.limit, "time-limit", 0, "most `time` for a decision of an exec: policy (default 1m)")

	fl.IntVar(&f.tune, "tune", 0, "first tune every policy that has parameters: try each with `N` sets of values")
	fl.StringVar(&f.tuneSeeds, "tune-seeds", "1000:6", "`FIRST:N`, the seeds to tune on: jobs are drawn by them, for a trace too")

	fl.Uint64Var(&f.seed, "seed", 1, "`S`, the seed of all that is drawn")
	fl.IntVar(&f.seeds, "seeds", 1, "run with `N` seeds: S, S+1, ...")
	fl.StringVar(&f.report, "report", "", "also write a page with plots to `FILE`")
	fl.StringVar(&f.out, "out", "", "also write manifest.json, runs.csv, jobs.csv and decisions.csv into `DIR`")
	outputFlag(cmd, &f.output)
	return cmd
}
