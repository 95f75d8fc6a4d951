package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/internal/whole"
	place_harmony "github.com/cotenant/cotenant/place/harmony"
	"github.com/cotenant/cotenant/sim/compare"
	"github.com/cotenant/cotenant/train/harmony"
	"github.com/cotenant/cotenant/train/worlds"
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

// training is a run of `train jobs`.
type training struct {
	*harmony.Trainer
	*trainingRun
	flags *trainFlags
	world *compare.World
}

func (f *trainFlags) run(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		if f.world.contention != shippedWorld {
			return wrongUse("unexpected argument %q", args[0])
		}
		f.world.contention = args[0]
	}
	run, err := openTraining(cmd)
	if err != nil {
		return err
	}
	run.limit = f.time
	loads, err := f.check()
	if err != nil {
		return err
	}
	ctx, log := cmd.Context(), cmd.ErrOrStderr()
	t := &training{flags: f, trainingRun: run}
	in := &inputs{stdin: cmd.InOrStdin()}
	if err := t.prepare(cmd, in, log, loads); err != nil {
		return err
	}
	train := func() error { return t.Run(ctx, t.tell) }
	if err := t.follow(ctx, log, "first look at the validation seeds", train, func() error { return t.writePolicy(log) }); err != nil {
		return err
	}
	row, err := t.result(ctx)
	if err != nil {
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
	var err error
	if t.world, err = f.readWorld(in, log); err != nil {
		return err
	}
	like, err := f.readLike(in, log, t.world)
	if err != nil {
		return err
	}
	data, err := samplesHash(t.world.Samples)
	if err != nil {
		return err
	}
	if err := t.settle(cmd, in, data); err != nil {
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
	case t.before != nil && c.Updates == 0:
		c.Updates = t.before.Updates
	case c.Updates == 0 && f.time > 0:
		if c.Updates, err = t.affordable(ctx, log, c); err != nil {
			return err
		}
	}
	if t.Trainer, err = harmony.NewTrainer(c); err != nil {
		return err
	}
	if f.updates == 0 && f.time > 0 {
		// The time decided how many: what trains the same again says how many.
		more := fmt.Sprintf(" --updates=%d", t.Config.Updates)
		t.line += more
		t.state.Command += more
	}
	return t.start(t.Trainer, t.Config.Updates, log)
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
			return 0, unlessStopped(ctx, err)
		}
	}
	look := time.Since(begin)
	begin = time.Now()
	for i := range steps {
		bar.at(2+i, "an update")
		if _, err := trial.Step(ctx); err != nil {
			return 0, unlessStopped(ctx, err)
		}
	}
	each := time.Since(begin)/steps + look/time.Duration(trial.Config.Every)
	left := t.flags.time - time.Since(t.begin) - 2*look // it is looked at the rivals once more
	n := max(10, int(left/max(1, each)))
	bar.say("--time %s: %d updates of %s", t.flags.time, n, each.Round(10*time.Millisecond))
	return n, nil
}

func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return stopped("nothing was written")
	}
	return err
}

// tell notes a report.
func (t *training) tell(r harmony.Report) error {
	t.words = cmp.Or(t.words, "imitates greedy-wait")
	if r.Ratios != nil {
		t.words = fmt.Sprintf("JCT / spread %.3f, / greedy-wait %.3f", r.Ratios[0], r.Ratios[1])
	}
	if r.Imitated {
		return t.report(r.Update, nil, nil)
	}
	return t.report(r.Update, r.Ratios, r.Scalars())
}

// result judges the network that is written.
func (t *training) result(ctx context.Context) (trainRow, error) {
	net, at := t.Best()
	ratios, err := t.Judge(ctx, net, harmony.Rivals...)
	if ctx.Err() != nil {
		return trainRow{}, stopped("%s", t.goOn(bestWritten))
	}
	if err != nil {
		return trainRow{}, fmt.Errorf("validation of the best network: %w", err)
	}
	r := trainRow{
		Policy: t.flags.out, Seed: t.flags.seed, Updates: t.Updates(), Planned: t.Config.Updates, BestUpdate: at,
		Spread: number(ratios[0]), GreedyWait: number(ratios[1]),
		UntrainedSpread: number(math.NaN()), UntrainedGreedyWait: number(math.NaN()),
		Seconds: number(t.seconds()), TruthCalls: t.world.Calls(),
	}
	if u := t.state.Looks[0]; len(u) == 2 {
		r.UntrainedSpread, r.UntrainedGreedyWait = number(u[0]), number(u[1])
	}
	return r, nil
}

// writePolicy writes the best network.
func (t *training) writePolicy(log io.Writer) error {
	net, at := t.Best()
	file := &place_harmony.File{
		Net: net, MaxWait: t.Config.MaxWait, Threshold: t.Config.Threshold,
		Training: place_harmony.Training{Data: t.state.Data, Seeds: []uint64{t.flags.seed}, Command: t.state.Command},
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
