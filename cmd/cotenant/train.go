package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/interference"
)

func trainCommand() *cobra.Command {
	return group("train", "Train placement policies by reinforcement learning", trainServicesCommand(), trainJobsCommand())
}

// trainFlags are the flags of `train jobs`, as given.
type trainFlags struct {
	world   worldFlags
	samples string
	trace   string
	draw    bool
	exclude []string
	strict  bool

	observed  float64
	beliefs   int
	modelKind string
	modelSeed uint64
	jobs      int
	loads     string

	updates   int
	time      time.Duration
	maxWait   time.Duration
	noted     float64
	episodes  int
	warm      int
	noReplay  bool
	noExperts bool
	noModel   bool

	seed    uint64
	workers int
	out     string
	log     string
	resume  string
	output  string
}

func trainJobsCommand() *cobra.Command {
	f := &trainFlags{}
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "Train the policy harmony to place training jobs",
		Long: `Train a network to place training jobs (Harmony, INFOCOM 2019), and write it as
a policy for simulate jobs and plan jobs: --policy harmony@FILE.

It learns in a simulated cluster in which jobs go as fast as a model of
interference believes, fitted to what --observed leaves of the measured
co-locations; the truth is never asked, and the result says how often it was: 0.
Clusters smaller and larger than that of --nodes, loads, durations and mixes of
workloads are drawn anew for every episode; --trace draws jobs like those of a
trace. With several --beliefs it learns in as many worlds, each with a model of
another draw of what is observed.

Every few updates the network is held against spread and greedy-wait on
validation seeds, in the same believed worlds; the best network is the one that
is written.

--log gets a checkpoint and the curves: scalars.jsonl, and event files
(tensorboard --logdir DIR). After Ctrl-C, or when the time is up, the best so
far is written, and --resume DIR goes on, to the same bytes as a run that was
not interrupted; flags that are not given then are those of then.`,
		Example: `  cotenant train jobs --throughputs throughputs.json --nodes v100:16 --observed 0.8 --out policy.safetensors
  cotenant train jobs --throughputs throughputs.json --nodes v100:8,k80:8 --time 20m --out policy.safetensors
  cotenant train jobs --contention --nodes 6 --updates 200 --log run --out servers.safetensors
  cotenant train jobs --samples history.db --nodes v100:4x4 --trace ed69ec.trace --out policy.safetensors`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
		// It saves where it is.
		Annotations: map[string]string{endsItself: "yes"},
	}
	f.world.register(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.samples, "samples", "", "instead: `FILE` of measurements: .jsonl, .csv, SQLite; gzip too")
	fl.StringVar(&f.trace, "trace", "", "draw jobs like those of this `FILE`, by workload, workers and duration; its arrivals are not used")
	fl.BoolVar(&f.draw, "draw-workloads", false, "draw the workload of each job of --trace whose own has no speeds")
	fl.StringSliceVar(&f.exclude, "exclude", []string{"Recommendation"}, "leave out these families of `workloads`, in --throughputs and --trace; an empty list leaves out none")
	fl.BoolVar(&f.strict, "strict", false, "fail on the first bad record of a file instead of leaving it out")

	fl.Float64Var(&f.observed, "observed", 1, "`share` of the measured co-locations that the model is fitted to, drawn by seed")
	fl.IntVar(&f.beliefs, "beliefs", 0, "train in `N` worlds, each with a model of another draw (default: 4, and 1 where all is observed)")
	fl.StringVar(&f.modelKind, "model-kind", interference.KindNeural, "`kind` of model that predicts the rest: linear, forest, neural")
	fl.Uint64Var(&f.modelSeed, "model-seed", 1, "`seed` of what is observed: S, S+1, ... for each belief")
	fl.IntVar(&f.jobs, "jobs", 500, "`N` jobs in an episode")
	fl.Float64Var(&f.noted, "noted", 0.25, "`share` of the decisions that are explored and learned from")
	fl.DurationVar(&f.maxWait, "max-wait", 60*time.Hour, "`time` of waiting after which the policy places a job that fits, whatever it gains; 0 is never")
	fl.StringVar(&f.loads, "load", "0.6:1.3", "`MIN:MAX` of the loads of episodes")

	fl.IntVar(&f.updates, "updates", 0, "make `N` updates (default: 300, or as many as --time allows)")
	fl.DurationVar(&f.time, "time", 0, "without --updates, make as many as fit into this `time`; with it, stop when the time is up: the best so far is written, and --resume goes on")
	fl.IntVar(&f.episodes, "episodes", 0, "`N` episodes for each update (default 32)")
	fl.IntVar(&f.warm, "imitate", 0, "first make `N` steps that imitate greedy-wait, by which the untrained network goes already")
	fl.BoolVar(&f.noReplay, "no-replay", false, "without replay of good episodes")
	fl.BoolVar(&f.noExperts, "no-experts", false, "without exploration by experts")
	fl.BoolVar(&f.noModel, "no-model", false, "without a model: what was not observed counts as a fair share of the device")

	fl.Uint64Var(&f.seed, "seed", 1, "`S`, the seed of all that is drawn")
	fl.IntVar(&f.workers, "workers", 0, "episodes at the same time, `N` (default: one a core); the result is the same for any number")
	fl.StringVar(&f.out, "out", "", "write the policy to this `FILE`")
	fl.StringVar(&f.log, "log", "", "`DIR` of the checkpoint and the curves (default: FILE.log)")
	fl.StringVar(&f.resume, "resume", "", "go on with the run in `DIR`, which is the --log of then, with the flags of then")
	outputFlag(cmd, &f.output)
	return cmd
}
