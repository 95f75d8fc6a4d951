package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/cotenant/cotenant/kubernetes/bench"
	"github.com/cotenant/cotenant/kubernetes/controlplane"
)

// maxNodes is what one machine carries with ease.
const maxNodes = 5000

// trialFlags are those of demo and bench: which pods, which schedulers.
type trialFlags struct {
	truth   string
	nodes   int
	tasks   int // 0 is usual, or fewer where so many would leave a scheduler no choice
	usual   int
	mixed   bool
	seed    uint64
	rounds  int
	program string
	config  string
}

func (f *trialFlags) add(fl *pflag.FlagSet, nodes, tasks, rounds int) {
	fl.StringVar(&f.truth, "truth", "", "`FILE` of samples by which placements are judged; without it ../shared/data/metis, or what ships where that is absent")
	fl.IntVar(&f.nodes, "nodes", nodes, "`N` nodes")
	fl.IntVar(&f.tasks, "pods", 0, fmt.Sprintf("`N` pods, evenly of the workloads of the truth ; 0 is %d, or what fills three quarters of the slots where that is less", tasks))
	f.usual = tasks
	fl.BoolVar(&f.mixed, "mixed", false, "services of 1 to 16 replicas by --seed, instead of one service a workload")
	fl.Uint64Var(&f.seed, "seed", 1, "`S`, the seed of what is drawn")
	fl.IntVar(&f.rounds, "rounds", rounds, "run every scheduler `N` times, in turn: A B A B")
	fl.StringVar(&f.program, "ours", "cotenant-scheduler", "`program` beside the stock scheduler, in the folder of programs or a path; \"none\" for the stock scheduler alone")
	fl.StringVar(&f.config, "ours-config", "", "`FILE` with its KubeSchedulerConfiguration; ${MODEL} in it becomes the path of the truth as a model file")
}

// batch reads the truth and makes the pods.
func (f *trialFlags) batch() (*bench.Truth, bench.Batch, error) {
	path := f.truth
	if path == "" {
		path = bench.Shared("metis/colocation-6435.csv")
	}
	truth, err := bench.ReadTruth(path)
	if err != nil {
		return nil, bench.Batch{}, fmt.Errorf("--truth: %w", err)
	}
	switch {
	case f.nodes < 1 || f.nodes > maxNodes:
		return nil, bench.Batch{}, fmt.Errorf("--nodes %d: give 1 to %d", f.nodes, maxNodes)
	case f.rounds < 1:
		return nil, bench.Batch{}, fmt.Errorf("--rounds %d: give 1 or more", f.rounds)
	case f.tasks < 0 || f.tasks > f.nodes*truth.Slots:
		return nil, bench.Batch{}, fmt.Errorf("--pods %d: give 1 to %d, what %d nodes of %d slots hold", f.tasks, f.nodes*truth.Slots, f.nodes, truth.Slots)
	}
	tasks := f.tasks
	if tasks == 0 {
		tasks = min(f.usual, max(1, f.nodes*truth.Slots*3/4))
	}
	if f.mixed {
		return truth, truth.Mixed(tasks, f.nodes, f.seed), nil
	}
	return truth, truth.Even(tasks, f.nodes), nil
}

// candidates are the stock scheduler and ours.
func (f *trialFlags) candidates(ctx context.Context, truth *bench.Truth) ([]bench.Candidate, error) {
	all := []bench.Candidate{bench.Stock()}
	if f.program == "none" {
		return all, nil
	}
	ours := bench.Ours()
	ours.Program = f.program
	if f.config != "" {
		text, err := optional(f.config)
		if err != nil {
			return nil, fmt.Errorf("--ours-config: %w", err)
		}
		ours.Configuration = text
		names, err := controlplane.Scheduler{Configuration: text}.Serves()
		if err != nil {
			return nil, fmt.Errorf("--ours-config: %w", err)
		}
		if !slices.Contains(names, corev1.DefaultSchedulerName) {
			ours.SchedulerName = names[0]
		}
	}
	return append(all, ours), check(ctx, controlplane.Config{}, "ours", ours, truth)
}

// check finds what would keep a scheduler from starting, by the flags that it
// comes of, before anything is started for it.
func check(ctx context.Context, plane controlplane.Config, flag string, c bench.Candidate, truth *bench.Truth) error {
	if err := plane.Check(ctx, controlplane.Scheduler{Program: c.Program}); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	dir, err := os.MkdirTemp("", "cotenant-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	text, err := c.For(truth, dir)
	if err != nil {
		return err
	}
	if err := plane.Check(ctx, controlplane.Scheduler{Program: c.Program, Configuration: text, Sole: true}); err != nil {
		return fmt.Errorf("--%s-config: %w", flag, err)
	}
	return nil
}

// trials are those of all rounds, in turn.
func (f *trialFlags) trials(ctx context.Context) ([]bench.Trial, error) {
	truth, batch, err := f.batch()
	if err != nil {
		return nil, err
	}
	candidates, err := f.candidates(ctx, truth)
	if err != nil {
		return nil, err
	}
	var all []bench.Trial
	for range f.rounds {
		for _, c := range candidates {
			all = append(all, bench.Trial{Batch: batch, Truth: truth, Scheduler: c})
		}
	}
	return all, nil
}

// run runs one of them, and logs beside what the command prints.
func runTrial(cmd *cobra.Command, t bench.Trial) (bench.Result, error) {
	t.Log = cmd.ErrOrStderr()
	r, err := bench.Run(cmd.Context(), t)
	if err != nil {
		return r, fmt.Errorf("%s: %w", t.Scheduler.Name, err)
	}
	return r, nil
}

// optional reads a file; "" is no file.
func optional(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	return string(text), err
}
