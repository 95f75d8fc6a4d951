package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/internal/whole"
	place_metis "github.com/cotenant/cotenant/place/metis"
	"github.com/cotenant/cotenant/train/curves"
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
the best are those that are written, after Ctrl-C too. The same flags give the
same file.

--log gets the curves: scalars.jsonl, and event files (tensorboard --logdir DIR);
and a checkpoint, from which --resume DIR goes on to the same bytes as a run that
was not interrupted.`,
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
	fl.IntVar(&f.slots, "slots", 8, "`N` slots a node, with --samples or --model")
	fl.IntVar(&f.updates, "updates", 270, "make `N` updates")
	fl.DurationVar(&f.time, "time", 0, "stop after this `time`, with the best so far; --resume goes on")
	fl.Uint64Var(&f.seed, "seed", 1, "`S`, the seed of all that is drawn")
	fl.IntVar(&f.workers, "workers", 0, "episodes at the same time, `N` (default: one a core); the result is the same for any number")
	fl.StringVar(&f.out, "out", "", "write the policy to this `FILE`")
	fl.StringVar(&f.log, "log", "", "`DIR` of the curves and of a checkpoint")
	fl.StringVar(&f.resume, "resume", "", "go on from the checkpoint in `DIR`, with the flags of then")
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
	case f.resume != "" && f.log != "" && filepath.Clean(f.resume) != filepath.Clean(f.log):
		return wrongUse("--resume %s and --log %s: a run goes on in its own folder; leave --log out", f.resume, f.log)
	case f.slots < 2 || f.slots > maxTrainSlots:
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

// maxTrainSlots is more than nodes have.
const maxTrainSlots = 64

// servicesTraining is a run of `train services`.
type servicesTraining struct {
	*metis.Trainer
	flags *trainServicesFlags
	dir   string // of the curves and the checkpoint; empty for none
	line  string // the command that goes on, but for --resume
	state servicesState
	world trainServicesWorld
	curve *curves.Log
	bar   *progress
	begin time.Time
	saved time.Time
	last  string // the last look in words
}

// servicesState says what a checkpoint in --log belongs to.
type servicesState struct {
	Command string `json:"command"`
	Version string `json:"version"`
	// Data is the hash of what is learned from.
	Data string `json:"data"`
	// Seconds of training so far; Looks are by how much each world is above
	// greedy, by update.
	Seconds float64           `json:"seconds"`
	Looks   map[int][]float64 `json:"looks"`
}

func (f *trainServicesFlags) run(cmd *cobra.Command) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	ctx, log := cmd.Context(), cmd.ErrOrStderr()
	t := &servicesTraining{flags: f, dir: cmp.Or(f.resume, f.log), begin: time.Now()}
	t.line = commandLine(cmd, "time", "workers", "log", "resume", "output")
	t.state = servicesState{Command: f.portable(t.line), Version: version(), Looks: map[int][]float64{}}
	if f.resume == "" && t.dir != "" {
		if _, err := os.Stat(filepath.Join(t.dir, checkpointFile)); err == nil {
			return fmt.Errorf("%s holds a run already: go on with --resume %s, or remove the folder", t.dir, t.dir)
		}
	}
	var err error
	if t.world, err = f.worlds(ctx, &inputs{stdin: cmd.InOrStdin()}, log); err != nil {
		return err
	}
	c := metis.Config{Worlds: t.world.list, Seed: f.seed, Updates: f.updates, Workers: f.workers}
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if t.Trainer, err = metis.NewTrainer(c); err != nil {
		return err
	}
	t.state.Data = t.world.data
	if f.resume != "" {
		if err := t.resume(log); err != nil {
			return fmt.Errorf("--resume %s: %w", f.resume, err)
		}
	}
	if err := t.train(ctx, log); err != nil {
		return err
	}
	return t.write(cmd.OutOrStdout())
}

// resume goes on with the run in a folder.
func (t *servicesTraining) resume(log io.Writer) error {
	text, err := os.ReadFile(filepath.Join(t.dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is no run to go on with; give the --log of one")
	}
	if err != nil {
		return err
	}
	var before servicesState
	if err := json.Unmarshal(text, &before); err != nil {
		return fmt.Errorf("%s: %w", stateFile, err)
	}
	if before.Data != t.state.Data {
		return fmt.Errorf("the measurements are not those that the run began with: it was %s", before.Command)
	}
	file, err := os.Open(filepath.Join(t.dir, checkpointFile))
	if err != nil {
		return err
	}
	defer file.Close()
	if err := t.Restore(file); err != nil {
		return err
	}
	t.state.Command, t.state.Seconds = before.Command, before.Seconds
	maps.Copy(t.state.Looks, before.Looks)
	fmt.Fprintf(log, "going on after %d of %d updates\n", t.Updates(), t.Config.Updates)
	return nil
}

// save writes the checkpoint where there is a folder for it.
func (t *servicesTraining) save() error {
	if t.dir == "" {
		return nil
	}
	t.saved = time.Now()
	state := t.state
	state.Seconds = t.seconds()
	return saveRun(t.dir, state, t.Save)
}

func (t *servicesTraining) seconds() float64 { return t.state.Seconds + time.Since(t.begin).Seconds() }

// train trains, and writes the best networks also where it is interrupted.
func (t *servicesTraining) train(ctx context.Context, log io.Writer) (err error) {
	if t.dir != "" {
		if t.curve, err = curves.Open(t.dir, t.Updates()+1, time.Now()); err != nil {
			return fmt.Errorf("--log: %w", err)
		}
	}
	t.bar = newProgress(log, "train", t.Config.Updates-t.Updates())
	from := t.Updates()
	t.bar.at(0, "first look at the validation batches")
	err = t.Run(ctx, func(r metis.Report) error { return t.report(r, from) })
	t.bar.end()
	if t.curve != nil {
		if closed := t.curve.Close(); err == nil && closed != nil {
			err = closed
		}
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, errTime) {
		return err
	}
	// What was done is done: the state is that after the last update.
	if saved := t.save(); saved != nil {
		return saved
	}
	if len(t.state.Looks) == 0 {
		return errors.New("interrupted before the first look at the validation batches; no policy was written")
	}
	if wrote := t.writePolicy(log); wrote != nil {
		return wrote
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted after %d of %d updates; the best so far is written%s", t.Updates(), t.Config.Updates, t.again())
	case err != nil:
		fmt.Fprintf(log, "%s after %d of %d updates%s\n", err, t.Updates(), t.Config.Updates, t.again())
	}
	return nil
}

// again says how to go on.
func (t *servicesTraining) again() string {
	if t.dir == "" {
		return ""
	}
	return "; go on with: " + t.line + " --resume=" + t.dir
}

func (t *servicesTraining) report(r metis.Report, from int) error {
	if r.Above != nil {
		t.state.Looks[r.Update] = r.Above
		var words []string
		for i, w := range t.Config.Worlds {
			words = append(words, fmt.Sprintf("%s %+.2f %%", w.Name, 100*r.Above[i]))
		}
		t.last = "above greedy: " + strings.Join(words, ", ")
	}
	if t.curve != nil {
		if err := t.curve.Add(r.Update, time.Now(), r.Scalars(t.Config.Worlds)); err != nil {
			return err
		}
	}
	t.bar.at(r.Update-from, t.last)
	if t.dir != "" && time.Since(t.saved) > saveEvery {
		if err := t.save(); err != nil {
			return err
		}
	}
	if t.flags.time > 0 && time.Since(t.begin) > t.flags.time && !t.Done() {
		return errTime
	}
	return nil
}

// portable is a command with nothing in it of this machine: of a path from the
// root the last part stays.
func (f *trainServicesFlags) portable(line string) string {
	for _, path := range []string{f.source.samples, f.source.model, f.out} {
		if filepath.IsAbs(path) {
			line = strings.ReplaceAll(line, path, filepath.Base(path))
		}
	}
	return line
}

// writePolicy writes the best networks.
func (t *servicesTraining) writePolicy(log io.Writer) error {
	nets, at := t.Best()
	file := &place_metis.File{
		Nets:     nets,
		Training: place_metis.Training{Data: t.world.data, Source: t.world.source, Command: t.state.Command},
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
