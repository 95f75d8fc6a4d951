package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/internal/whole"
	place_metis "github.com/cotenant/cotenant/place/metis"
	"github.com/cotenant/cotenant/train/metis"
)

// trainServicesFlags are the flags of `train services`, as given.
type trainServicesFlags struct {
	source  sourceFlags
	credit  string // of --source
	slots   int
	updates int
	time    time.Duration
	seed    uint64
	workers int
	out     string
	log     string
	resume  string
	output  string
}

func trainServicesCommand() *cobra.Command {
	f := &trainServicesFlags{}
	cmd := &cobra.Command{
		Use:   "services",
		Short: "Train the policy metis to place services",
		Long: `Train the networks of the policy metis (Metis, SC 2020), which place services
one after the other, and write them as a policy for plan services and simulate
services: --policy metis@FILE.

They learn on task batches for clusters of 30 to 81 nodes, drawn anew for every
episode, by what a model of interference believes. With --samples that is the
table of them where they hold every co-location of up to --slots tasks, and else
a neural model fitted on them; --model takes one by cotenant fit. Without both
they learn what holds for any workloads, in two worlds: the measurements that
ship, and made-up truths.

Every few updates the networks are held against greedy on validation batches;
the best are those that are written. The same flags give the same file.

--log gets a checkpoint and the curves: scalars.jsonl, and event files
(tensorboard --logdir DIR). After Ctrl-C, or when the time is up, the best so
far is written, and --resume DIR goes on, to the same bytes as a run that was
not interrupted; flags that are not given then are those of then.`,
		Example: `  cotenant train services --out policy.safetensors
  cotenant train services --samples colocations.csv --slots 8 --out policy.safetensors
  cotenant train services --model model.safetensors --slots 4 --log run --out policy.safetensors`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
		// It writes the best so far.
		Annotations: map[string]string{endsItself: "yes"},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.source.samples, "samples", "", "`FILE` of measurements: .jsonl, .csv (ours or Metis's), .npz, SQLite; gzip too")
	fl.StringVar(&f.source.model, "model", "", "instead: model `FILE` by cotenant fit")
	fl.StringSliceVar(&f.source.columns, "columns", nil, "`workloads` of the columns of an .npz, which does not name them")
	fl.BoolVar(&f.source.strict, "strict", false, "fail on the first bad record of --samples instead of leaving it out")
	fl.StringVar(&f.credit, "source", "", "`TEXT` for the policy's file: whose measurements these are, and their licence")
	fl.IntVar(&f.slots, "slots", 0, fmt.Sprintf("`N` slots a node (default: with --samples the most that were measured together, with --model %d)", modelSlots))
	fl.IntVar(&f.updates, "updates", 270, "make `N` updates")
	fl.DurationVar(&f.time, "time", 0, "stop when this `time` is up: the best so far is written, and --resume goes on")
	fl.Uint64Var(&f.seed, "seed", 1, "`S`, the seed of all that is drawn")
	fl.IntVar(&f.workers, "workers", 0, "episodes at the same time, `N` (default: one a core); the result is the same for any number")
	fl.StringVar(&f.out, "out", "", "write the policy to this `FILE`")
	fl.StringVar(&f.log, "log", "", "`DIR` of the checkpoint and the curves (default: FILE.log)")
	fl.StringVar(&f.resume, "resume", "", "go on with the run in `DIR`, which is the --log of then, with the flags of then")
	outputFlag(cmd, &f.output)
	return cmd
}

// check refuses flags that cannot be meant.
func (f *trainServicesFlags) check(cmd *cobra.Command) error {
	if err := checkOutput(f.output); err != nil {
		return err
	}
	given := f.source.samples != "" || f.source.model != ""
	switch {
	case f.out == "":
		return wrongUse("where does the policy go? give --out FILE, such as policy.safetensors")
	case f.source.samples != "" && f.source.model != "":
		return wrongUse("--samples and --model are both given; keep one")
	case !given && cmd.Flags().Changed("slots"):
		return wrongUse("--slots is of --samples or --model; without both, clusters of 4 to 10 slots a node are drawn")
	case !given && f.credit != "":
		return wrongUse("--source says whose --samples or --model are; without both, those that ship are learned from")
	case cmd.Flags().Changed("slots") && (f.slots < 2 || f.slots > maxTrainSlots):
		return wrongUse("--slots %d: give 2 to %d", f.slots, maxTrainSlots)
	case f.updates < 1 || f.updates > maxUpdates:
		return wrongUse("--updates %d: give 1 to %d", f.updates, maxUpdates)
	case f.time < 0:
		return wrongUse("--time %s: negative", f.time)
	case f.workers < 0 || f.workers > 1024:
		return wrongUse("--workers %d: give 1 to 1024", f.workers)
	case sameFile(f.out, f.source.samples) || sameFile(f.out, f.source.model):
		return wrongUse("--out %s: that is the file that is read, which would be lost; name another", f.out)
	}
	if bad := whole.Probe(f.out); bad != nil {
		return wrongUse("--out: %v", bad)
	}
	return nil
}

const (
	// maxTrainSlots is more than nodes have.
	maxTrainSlots = 64
	// modelSlots are those of a node where nobody says how many tasks were
	// measured together.
	modelSlots = 8
)

// servicesTraining is a run of `train services`.
type servicesTraining struct {
	*metis.Trainer
	*trainingRun
	flags *trainServicesFlags
	world trainServicesWorld
}

func (f *trainServicesFlags) run(cmd *cobra.Command) error {
	run, err := openTraining(cmd)
	if err != nil {
		return err
	}
	run.limit = f.time
	if err := f.check(cmd); err != nil {
		return err
	}
	ctx, log := cmd.Context(), cmd.ErrOrStderr()
	t := &servicesTraining{flags: f, trainingRun: run}
	in := &inputs{stdin: cmd.InOrStdin()}
	if run.before != nil && f.slots == 0 {
		// Of a version that did not keep it, which knew no other default.
		f.slots = cmp.Or(run.before.Slots, modelSlots)
	}
	if t.world, err = f.worlds(ctx, in, log); err != nil {
		return err
	}
	t.state.Slots = f.slots
	if err := t.settle(cmd, in, t.world.data); err != nil {
		return err
	}
	c := metis.Config{Worlds: t.world.list, Seed: f.seed, Updates: f.updates, Workers: f.workers}
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if t.Trainer, err = metis.NewTrainer(c); err != nil {
		return err
	}
	if err := t.start(t.Trainer, t.Config.Updates, log); err != nil {
		return err
	}
	train := func() error { return t.Run(ctx, t.tell) }
	if err := t.follow(ctx, log, "first look at the validation batches", train, func() error { return t.writePolicy(log) }); err != nil {
		return err
	}
	return t.write(cmd.OutOrStdout())
}

// tell notes a report.
func (t *servicesTraining) tell(r metis.Report) error {
	if r.Above != nil {
		var words []string
		for i, w := range t.Config.Worlds {
			words = append(words, fmt.Sprintf("%s %+.2f %%", w.Name, 100*r.Above[i]))
		}
		t.words = "above greedy: " + strings.Join(words, ", ")
	}
	return t.report(r.Update, r.Above, r.Scalars(t.Config.Worlds))
}

// writePolicy writes the best networks.
func (t *servicesTraining) writePolicy(log io.Writer) error {
	nets, at := t.Best()
	file := &place_metis.File{
		Nets:     nets,
		Training: place_metis.Training{Data: t.state.Data, Source: t.world.source, Command: t.state.Command},
		Notes:    fmt.Sprintf("after %d of %d updates", at, t.Config.Updates),
	}
	file.Training.Batches.First, file.Training.Batches.Last = metis.SeedRange()
	file.Training.Validation.First, file.Training.Validation.Last = t.ValidationSeeds()
	var b bytes.Buffer
	if err := place_metis.Save(&b, file); err != nil {
		return fmt.Errorf("--out %s: %w", t.flags.out, err)
	}
	if err := writeFile(t.flags.out, b.Bytes()); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	fmt.Fprintf(log, "wrote %s: %d bytes, the networks after update %d\n", t.flags.out, b.Len(), at)
	return nil
}
