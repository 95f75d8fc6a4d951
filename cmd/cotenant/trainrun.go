package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/internal/whole"
	place_harmony "github.com/cotenant/cotenant/place/harmony"
	"github.com/cotenant/cotenant/sim/compare"
	"github.com/cotenant/cotenant/train/curves"
	"github.com/cotenant/cotenant/train/harmony"
	"github.com/cotenant/cotenant/train/worlds"
)

// The files of --log beside the curves.
const (
	checkpointFile = "checkpoint"
	stateFile      = "run.json"
)

// Bounds of flags: more is a slip of the keyboard.
const (
	maxUpdates  = 1_000_000
	maxEpisodes = 100_000
	maxBeliefs  = 100
)

// trainRow is the result.
type trainRow struct {
	Policy     string `json:"policy"`
	Seed       uint64 `json:"seed"`
	Updates    int    `json:"updates"`
	Planned    int    `json:"updates_planned"`
	BestUpdate int    `json:"best_update"`
	// The ratios are of the best network, on validation seeds in the worlds
	// believed; Untrained are those of the network before the first update.
	Spread              number `json:"jct_over_spread"`
	GreedyWait          number `json:"jct_over_greedy_wait"`
	UntrainedSpread     number `json:"untrained_over_spread"`
	UntrainedGreedyWait number `json:"untrained_over_greedy_wait"`
	Seconds             number `json:"seconds"`
	TruthCalls          int64  `json:"truth_calls"`
}

// runState says how a run in --log began, so that it goes on only as what it
// was.
type runState struct {
	Command string      `json:"command"`
	Version string      `json:"version"`
	Updates int         `json:"updates"`
	Inputs  []inputHash `json:"inputs"`
	// Seconds of training so far, and the ratios before the first update.
	Seconds   float64   `json:"seconds"`
	Untrained []float64 `json:"untrained"`
}

// training is a run of `train jobs`.
type training struct {
	*harmony.Trainer
	flags *trainFlags
	dir   string
	state runState
	data  string // hash of what is learned from
	world *compare.World
	curve *curves.Log
	bar   *progress
	begin time.Time
	saved time.Time
	last  []float64 // ratios of the last look
}

func (f *trainFlags) run(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		if f.world.contention != shippedWorld {
			return wrongUse("unexpected argument %q", args[0])
		}
		f.world.contention = args[0]
	}
	loads, err := f.check()
	if err != nil {
		return err
	}
	ctx, log := cmd.Context(), cmd.ErrOrStderr()
	t := &training{flags: f, dir: cmp.Or(f.resume, f.log, f.out+".log"), begin: time.Now()}
	in := &inputs{stdin: cmd.InOrStdin()}
	if err := t.prepare(cmd, in, log, loads); err != nil {
		return err
	}
	if err := t.run(ctx, log); err != nil {
		return err
	}
	row, err := t.result(ctx)
	if err != nil {
		return err
	}
	if err := t.writePolicy(log); err != nil {
		return err
	}
	return f.write(cmd.OutOrStdout(), row)
}

// check refuses flags that cannot be meant.
func (f *trainFlags) check() (loads [2]float64, err error) {
	if err := errors.Join(checkOutput(f.output), oneOf("model-kind", f.modelKind, interference.Kinds()[1:])); err != nil {
		return loads, err
	}
	switch {
	case f.out == "":
		return loads, wrongUse("where does the policy go? give --out FILE, such as policy.safetensors")
	case f.resume != "" && f.log != "" && filepath.Clean(f.resume) != filepath.Clean(f.log):
		return loads, wrongUse("--resume %s and --log %s: a run goes on in its own folder; leave --log out", f.resume, f.log)
	case !(f.observed >= 0 && f.observed <= 1):
		return loads, wrongUse("--observed %g: give a share, 0 to 1", f.observed)
	case !(f.noted > 0 && f.noted <= 1):
		return loads, wrongUse("--noted %g: give a share, above 0 and at most 1", f.noted)
	case f.maxWait < 0:
		return loads, wrongUse("--max-wait %s: negative", f.maxWait)
	case f.time < 0:
		return loads, wrongUse("--time %s: negative", f.time)
	case f.workers < 0 || f.workers > 1024:
		return loads, wrongUse("--workers %d: give 1 to 1024", f.workers)
	case f.modelSeed > math.MaxUint64-maxBeliefs:
		return loads, wrongUse("--model-seed %d: too large", f.modelSeed)
	}
	for _, n := range []struct {
		flag            string
		value, min, max int
	}{
		{"updates", f.updates, 0, maxUpdates},
		{"episodes", f.episodes, 0, maxEpisodes},
		{"imitate", f.warm, 0, maxUpdates},
		{"beliefs", f.beliefs, 0, maxBeliefs},
		{"jobs", f.jobs, 1, maxJobs},
	} {
		if n.value < n.min || n.value > n.max {
			return loads, wrongUse("--%s %d: give %d to %d", n.flag, n.value, max(1, n.min), n.max)
		}
	}
	if bad := whole.Probe(f.out); bad != nil {
		return loads, wrongUse("--out: %v", bad)
	}
	return f.readLoads()
}

// prepare reads everything, and makes the trainer: a new one, or one that goes
// on.
func (t *training) prepare(cmd *cobra.Command, in *inputs, log io.Writer, loads [2]float64) error {
	f, ctx := t.flags, cmd.Context()
	var before *runState
	if f.resume != "" {
		s, err := readState(f.resume)
		if err != nil {
			return err
		}
		before = &s
	} else if _, err := os.Stat(filepath.Join(t.dir, checkpointFile)); err == nil {
		return fmt.Errorf("%s holds a run already: go on with --resume %s, or remove the folder", t.dir, t.dir)
	}
	var err error
	if t.world, err = f.readWorld(in, log); err != nil {
		return err
	}
	like, err := f.readLike(in, log, t.world)
	if err != nil {
		return err
	}
	if before != nil && !slices.EqualFunc(before.Inputs, in.hashes, func(a, b inputHash) bool { return a.SHA256 == b.SHA256 }) {
		return fmt.Errorf("--resume %s: the input files are not those that the run began with: it was %s", f.resume, before.Command)
	}
	if t.data, err = dataHash(t.world); err != nil {
		return err
	}
	list, err := f.convert(ctx, log, t.world, worlds.Options{Jobs: f.jobs, Load: loads, Like: like})
	if err != nil {
		return err
	}
	c := harmony.Config{
		Worlds: list, Seed: f.seed, Updates: f.updates, Episodes: f.episodes, Workers: f.workers, Warm: f.warm,
		Unaware: f.noExperts, Forget: f.noReplay, MaxWait: f.maxWait, Noted: f.noted,
	}
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	switch {
	case before != nil && c.Updates == 0:
		c.Updates = before.Updates
	case c.Updates == 0 && f.time > 0:
		if c.Updates, err = t.affordable(ctx, log, c); err != nil {
			return err
		}
	}
	if t.Trainer, err = harmony.NewTrainer(c); err != nil {
		return err
	}
	t.state = runState{Command: t.command(cmd), Version: version(), Updates: t.Config.Updates, Inputs: in.hashes}
	if before == nil {
		return nil
	}
	t.state.Command, t.state.Seconds, t.state.Untrained = before.Command, before.Seconds, before.Untrained
	file, err := os.Open(filepath.Join(f.resume, checkpointFile))
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	defer file.Close()
	if err := t.Restore(file); err != nil {
		return fmt.Errorf("--resume %s: %w", f.resume, err)
	}
	fmt.Fprintf(log, "going on after %d of %d updates\n", t.Updates(), t.Config.Updates)
	return nil
}

func readState(dir string) (s runState, err error) {
	text, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("--resume %s: there is no run to go on with; give the --log of one", dir)
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return s, fmt.Errorf("--resume %s: %w", dir, err)
	}
	return s, nil
}

// dataHash identifies what can be learned from.
func dataHash(w *compare.World) (string, error) {
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(w.Samples); err != nil {
		return "", fmt.Errorf("hash of the samples: %w", err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// affordable is how many updates --time allows, by a trial of two that are
// thrown away: the schedules of training end with the last one.
func (t *training) affordable(ctx context.Context, log io.Writer, c harmony.Config) (int, error) {
	bar := newProgress(log, "trial", 4)
	defer bar.end()
	c.Updates, c.Warm = 4, 0
	trial, err := harmony.NewTrainer(c)
	if err != nil {
		return 0, err
	}
	const steps = 2
	begin := time.Now()
	for i := range 2 { // the first look is at the rivals too
		bar.at(i, "a look at the validation seeds")
		begin = time.Now()
		if _, err := trial.Look(ctx); err != nil {
			return 0, t.stopped(ctx, err)
		}
	}
	look := time.Since(begin)
	begin = time.Now()
	for i := range steps {
		bar.at(2+i, "an update")
		if _, err := trial.Step(ctx); err != nil {
			return 0, t.stopped(ctx, err)
		}
	}
	each := time.Since(begin)/steps + look/time.Duration(trial.Config.Every)
	left := t.flags.time - time.Since(t.begin) - 2*look // it is looked at the rivals once more
	n := max(10, int(left/max(1, each)))
	bar.say("--time %s: %d updates of %s", t.flags.time, n, each.Round(10*time.Millisecond))
	return n, nil
}

func (t *training) stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted; nothing was written")
	}
	return err
}

// errTime ends a run whose time is up.
var errTime = errors.New("the time is up")

// run trains to the end, and saves now and then.
func (t *training) run(ctx context.Context, log io.Writer) (err error) {
	if t.curve, err = curves.Open(t.dir, t.Updates()+1, time.Now()); err != nil {
		return fmt.Errorf("--log: %w", err)
	}
	if err := t.save(); err != nil {
		return errors.Join(err, t.curve.Close())
	}
	t.bar = newProgress(log, "train", t.Config.Updates-t.Updates())
	from := t.Updates()
	t.bar.at(0, "first look at the validation seeds")
	err = t.Run(ctx, func(r harmony.Report) error { return t.report(r, from) })
	t.bar.end()
	if closed := t.curve.Close(); err == nil && closed != nil {
		err = closed
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, errTime) {
		return err
	}
	// What was done is done: the state is that after the last update.
	if saved := t.save(); saved != nil {
		return saved
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted; after %d of %d updates; go on with: %s", t.Updates(), t.Config.Updates, t.again())
	case err != nil:
		fmt.Fprintf(log, "%s after %d of %d updates; go on with: %s\n", err, t.Updates(), t.Config.Updates, t.again())
	}
	return nil
}

// command trains the same policy again, whatever was given of what does not
// matter to it; where --time decided how many updates, it says how many.
func (t *training) command(cmd *cobra.Command) string {
	line := commandLine(cmd, "time", "updates", "workers", "log", "resume", "output")
	if t.flags.updates > 0 || t.flags.time > 0 {
		line += fmt.Sprintf(" --updates=%d", t.Config.Updates)
	}
	return line
}

// again is the command that goes on.
func (t *training) again() string { return t.state.Command + " --resume=" + t.dir }

// saveEvery bounds what a crash costs.
const saveEvery = 30 * time.Second

func (t *training) report(r harmony.Report, from int) error {
	if r.Ratios != nil {
		t.last = r.Ratios
		if r.Update == 0 {
			t.state.Untrained = r.Ratios
		}
	}
	if !r.Imitated {
		if err := t.curve.Add(r.Update, time.Now(), r.Scalars()); err != nil {
			return err
		}
	}
	words := "imitates greedy-wait"
	if !r.Imitated && t.last != nil {
		words = fmt.Sprintf("JCT / spread %.3f, / greedy-wait %.3f", t.last[0], t.last[1])
	}
	t.bar.at(r.Update-from, words)
	if time.Since(t.saved) > saveEvery {
		if err := t.save(); err != nil {
			return err
		}
	}
	if t.flags.time > 0 && time.Since(t.begin) > t.flags.time && !t.Done() {
		return errTime
	}
	return nil
}

// save writes the checkpoint and what it belongs to.
func (t *training) save() error {
	t.saved = time.Now()
	state := t.state
	state.Seconds += time.Since(t.begin).Seconds()
	return saveRun(t.dir, state, t.Save)
}

// saveRun writes a checkpoint and what it belongs to, both or none.
func saveRun(dir string, state any, checkpoint func(io.Writer) error) error {
	text, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return fmt.Errorf("--log: %w", err)
	}
	check, err := whole.Stage(filepath.Join(dir, checkpointFile), checkpoint)
	if err != nil {
		return fmt.Errorf("--log: %w", err)
	}
	about, err := whole.Stage(filepath.Join(dir, stateFile), func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		check.Discard()
		return fmt.Errorf("--log: %w", err)
	}
	if err := whole.Commit(about, check); err != nil {
		return fmt.Errorf("--log: %w", err)
	}
	return nil
}

// result judges the network that is written.
func (t *training) result(ctx context.Context) (trainRow, error) {
	net, at := t.Best()
	ratios, err := t.Judge(ctx, net, harmony.Rivals...)
	if err != nil {
		return trainRow{}, fmt.Errorf("validation of the best network: %w", err)
	}
	r := trainRow{
		Policy: t.flags.out, Seed: t.flags.seed, Updates: t.Updates(), Planned: t.Config.Updates, BestUpdate: at,
		Spread: number(ratios[0]), GreedyWait: number(ratios[1]),
		UntrainedSpread: number(math.NaN()), UntrainedGreedyWait: number(math.NaN()),
		Seconds: number(t.state.Seconds + time.Since(t.begin).Seconds()), TruthCalls: t.world.Calls(),
	}
	if u := t.state.Untrained; len(u) == 2 {
		r.UntrainedSpread, r.UntrainedGreedyWait = number(u[0]), number(u[1])
	}
	return r, nil
}

// writePolicy writes the best network.
func (t *training) writePolicy(log io.Writer) error {
	net, at := t.Best()
	file := &place_harmony.File{
		Net: net, MaxWait: t.Config.MaxWait, Threshold: t.Config.Threshold,
		Training: place_harmony.Training{Data: t.data, Seeds: []uint64{t.flags.seed}, Command: t.state.Command},
		Notes:    fmt.Sprintf("after %d of %d updates", at, t.Config.Updates),
	}
	var b bytes.Buffer
	if err := place_harmony.Save(&b, file); err != nil {
		return fmt.Errorf("--out %s: %w", t.flags.out, err)
	}
	if err := writeFile(t.flags.out, b.Bytes()); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	fmt.Fprintf(log, "wrote %s: %d bytes; curves: tensorboard --logdir %s\n", t.flags.out, b.Len(), t.dir)
	return nil
}
