package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
	"github.com/cotenant/cotenant/train/tune"
)

// maxJobs bounds --jobs: more is a slip of the keyboard.
const maxJobs = 10_000_000

// simulation is all that was read and drawn up for `simulate jobs`.
type simulation struct {
	compare.Setting
	draw    compare.Load
	trace   *compare.Trace // nil where jobs are drawn
	skipped int            // records of the trace that were left out
	tune    tune.Options
	tuned   []tune.Tuned
}

func (f *simulateFlags) run(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		if f.world.contention != shippedWorld {
			return wrongUse("unexpected argument %q", args[0])
		}
		f.world.contention = args[0]
	}
	in := &inputs{stdin: cmd.InOrStdin()}
	ctx, log := cmd.Context(), cmd.ErrOrStderr()
	s, err := f.read(cmd, in, log)
	if err != nil {
		return err
	}
	w := &watched{page: f.report != "", decisions: f.out != "", first: s.Seeds[0], runs: map[runKey]*watchedRun{}}
	s.Hook = w.hook
	outcomes, err := s.runAll(ctx, log)
	if err != nil {
		return err
	}
	all := len(s.Specs) * len(s.Seeds)
	left := all - len(outcomes)
	if f.report != "" && left == 0 {
		if err := f.writeReport(cmd, s, w, outcomes); err != nil {
			return err
		}
		fmt.Fprintf(log, "wrote %s: open it in a browser\n", f.report)
	}
	// What is whole is not given away for a part.
	write := f.out != "" && (left == 0 || !holdsRun(f.out))
	if write {
		files, err := w.files(outcomes)
		if err != nil {
			return err
		}
		m := newManifest(cmd, s.Seeds, in)
		m.Unfinished = left
		if err := writeRun(f.out, m, files); err != nil {
			return err
		}
	}
	if err := f.write(cmd, s, outcomes); err != nil {
		return err
	}
	switch err := s.verdict(log, outcomes); {
	case left == 0:
		return err
	case write:
		return stopped("%d of %d runs finished and are in %s", all-left, all, f.out)
	}
	return stopped("%d of %d runs finished and are shown, not written", all-left, all)
}

// read checks the flags and reads what they name.
func (f *simulateFlags) read(cmd *cobra.Command, in *inputs, log io.Writer) (*simulation, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	s := &simulation{}
	s.Options = sim.Config{
		Interval: f.interval, Backfill: f.backfill, Priorities: f.priorities, Stale: f.stale,
		Migrate: sim.Price{On: cmd.Flags().Changed("migrate"), Cost: f.migrate},
		Scale:   sim.Price{On: cmd.Flags().Changed("scale"), Cost: f.scale},
		MTBF:    f.mtbf, Repair: f.repair, JobFailure: f.jobFailures, Observe: f.online,
	}
	s.Belief = compare.Belief{Observed: f.observed, Kind: f.modelKind, Seed: f.modelSeed}
	s.FixedBelief = cmd.Flags().Changed("model-seed")
	s.ProgramLimit, s.Parallel = f.limit, parallel
	if f.online {
		s.Learner = learner
	}
	for i := range f.seeds {
		s.Seeds = append(s.Seeds, f.seed+uint64(i))
	}
	var err error
	if s.Specs, err = parseJobPolicies(in, f.policies); err != nil {
		return nil, err
	}
	if s.draw, err = f.drawn(); err != nil {
		return nil, err
	}
	if !s.Options.Scale.On {
		if cmd.Flags().Changed("elastic") {
			return nil, wrongUse("--elastic %s: bounds of what? give --scale COST too", f.elastic)
		}
		s.draw.Elastic = compare.Elastic{}
	}
	if s.World, err = f.world.load(in, log, f.strict, f.exclude); err != nil {
		return nil, err
	}
	if f.trace != "" {
		if err := f.readTrace(in, log, s); err != nil {
			return nil, err
		}
	} else {
		s.Jobs = func(seed uint64) ([]sim.Job, error) { return s.World.Generate(s.draw, seed) }
	}
	if err := s.Check(); err != nil {
		return nil, wrongUse("--policy %v", err)
	}
	return s, f.readTuning(s)
}

func (f *simulateFlags) check() error {
	err := errors.Join(checkOutput(f.output), oneOf("model-kind", f.modelKind, interference.Kinds()[1:]))
	switch {
	case err != nil:
		return err
	case f.seeds < 1 || f.seeds > maxSeeds:
		return wrongUse("--seeds %d: give 1 to %d", f.seeds, maxSeeds)
	case f.seed > math.MaxUint64-maxSeeds:
		return wrongUse("--seed %d: too large", f.seed)
	case !(f.observed >= 0 && f.observed <= 1):
		return wrongUse("--observed %g: give a share, 0 to 1", f.observed)
	case !(f.load > 0 && f.load <= 100):
		return wrongUse("--load %g: give a number above 0; 1 is as much as the devices can do", f.load)
	case f.jobs < 1 || f.jobs > maxJobs:
		return wrongUse("--jobs %d: give 1 to %d", f.jobs, maxJobs)
	case !(f.jobFailures >= 0 && f.jobFailures < 1):
		return wrongUse("--job-failures %g: give a probability, at least 0 and less than 1", f.jobFailures)
	}
	if f.report != "" {
		// Better now than after an hour of work.
		if _, err := os.Stat(filepath.Dir(f.report)); err != nil {
			return fmt.Errorf("--report: %w; create the folder", err)
		}
	}
	for _, d := range []struct {
		flag string
		time time.Duration
	}{
		{"interval", f.interval}, {"stale", f.stale}, {"migrate", f.migrate}, {"scale", f.scale}, {"mtbf", f.mtbf}, {"repair", f.repair}, {"time-limit", f.limit},
	} {
		if d.time < 0 {
			return wrongUse("--%s %s: negative", d.flag, d.time)
		}
	}
	return nil
}

func (f *simulateFlags) readTrace(in *inputs, log io.Writer, s *simulation) error {
	data, err := in.read("trace", f.trace)
	if err != nil {
		return err
	}
	o := formats.Options{Name: f.trace, Strict: f.strict, Exclude: f.exclude}
	list, report, err := formats.ReadTrace(bytes.NewReader(data), o)
	warn(log, "trace", report)
	if err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	t, err := s.World.FromTrace(list, compare.TraceOptions{Options: o, Draw: f.drawNames, Seed: f.seed, Elastic: s.draw.Elastic})
	warn(log, "trace", t.Report)
	if err != nil {
		return fmt.Errorf("--trace %s: %w", f.trace, err)
	}
	s.skipped = report.Skipped + t.Report.Skipped
	s.trace = &t
	s.Jobs = func(uint64) ([]sim.Job, error) { return t.Jobs, nil }
	return nil
}

// parseJobPolicies reads --policy, and puts spread in front where it is not
// named: all others are held against it.
func parseJobPolicies(in *inputs, values []string) ([]compare.Spec, error) {
	if len(values) == 0 {
		values = []string{strings.Join(compare.Names(), ",")}
	}
	var specs []compare.Spec
	for _, value := range values {
		for _, part := range splitPolicies(value) {
			spec, err := parseJobPolicy(in, part)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(specs, func(s compare.Spec) bool { return s.Text == spec.Text }) {
				return nil, wrongUse("--policy %s: named twice", spec.Text)
			}
			specs = append(specs, spec)
		}
	}
	if !slices.ContainsFunc(specs, func(s compare.Spec) bool { return s.Text == compare.Spread }) {
		specs = slices.Insert(specs, 0, compare.Spec{Text: compare.Spread, Name: compare.Spread})
	}
	return specs, nil
}

// parseJobPolicy reads one policy, and the file that it names.
func parseJobPolicy(in *inputs, part string) (compare.Spec, error) {
	if strings.HasPrefix(strings.TrimSpace(part), execPrefix) {
		spec, err := parsePolicy(part)
		return compare.Spec{Text: spec.text, Name: spec.name, Argv: spec.argv}, err
	}
	name, _, _ := strings.Cut(strings.TrimSpace(part), ":")
	name, _, _ = strings.Cut(name, "@")
	if known := compare.Names(); !slices.Contains(known, name) {
		return compare.Spec{Text: part}, unknownPolicy(name, known, "jobs", policyNames(), "services", compare.Harmony)
	}
	spec, err := compare.ParseSpec(part)
	if err != nil {
		return spec, wrongUse("--policy %v", err)
	}
	if spec.File == "" {
		return spec, nil
	}
	data, err := in.read("policy", spec.File)
	if err != nil {
		return spec, err
	}
	if err := spec.Load(bytes.NewReader(data)); err != nil {
		return spec, fmt.Errorf("--policy %w", err)
	}
	return spec, nil
}

// runAll tunes the policies where asked to, and runs each with every seed. When
// interrupted, it returns the runs that finished.
func (s *simulation) runAll(ctx context.Context, log io.Writer) ([]compare.Outcome, error) {
	stage := &stages{log: log}
	defer stage.end()
	s.Fitted = func(done, total int) { stage.at("fit models", done, total, "the next") }
	if err := s.tuneAll(ctx, stage); err != nil {
		return nil, err
	}
	var done atomic.Int64
	s.Done = func(spec compare.Spec, seed uint64) {
		stage.at("simulate", int(done.Add(1)), len(s.Specs)*len(s.Seeds), fmt.Sprintf("%s, seed %d", spec.Text, seed))
	}
	outcomes, err := s.Run(ctx)
	if ctx.Err() == nil {
		return outcomes, err
	}
	outcomes = slices.DeleteFunc(outcomes, func(o compare.Outcome) bool { return o.Err != nil })
	if len(outcomes) == 0 {
		return nil, stopped("nothing was written")
	}
	return outcomes, nil
}

// stages shows the progress of one kind of work after the other. Safe for
// concurrent use.
type stages struct {
	log  io.Writer
	mu   sync.Mutex
	what string
	bar  *progress
}

func (s *stages) at(what string, done, total int, next string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar == nil || s.what != what {
		if s.bar != nil {
			s.bar.end()
		}
		s.what, s.bar = what, newProgress(s.log, what, total)
	}
	s.bar.at(done, next)
}

func (s *stages) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar != nil {
		s.bar.end()
	}
}

// verdict says on log what went wrong, and is an error if anything did.
func (s *simulation) verdict(log io.Writer, outcomes []compare.Outcome) error {
	failed, left := 0, 0
	for _, o := range outcomes {
		switch {
		case o.Err != nil:
			failed++
			fmt.Fprintf(log, "%s, seed %d: failed: %s\n", o.Spec.Text, o.Seed, o.Err)
		case len(o.Result.Unfinished) > 0:
			left++
			fmt.Fprintf(log, "%s, seed %d: %d jobs unfinished (%s): %s\n", o.Spec.Text, o.Seed, len(o.Result.Unfinished), some(o.Result.Unfinished, 3), o.Result.Why)
		}
	}
	switch {
	case failed > 0:
		return fmt.Errorf("%d of %d runs failed", failed, len(outcomes))
	case left > 0:
		return fmt.Errorf("%d of %d runs left jobs unfinished; their completion times cannot be compared", left, len(outcomes))
	}
	return nil
}

// jobRow is what one policy did with one seed.
type jobRow struct {
	Policy        string `json:"policy"`
	Seed          uint64 `json:"seed"`
	Jobs          int    `json:"jobs"`
	MeanJCT       number `json:"mean_jct_s"`
	MedianJCT     number `json:"median_jct_s"`
	P95JCT        number `json:"p95_jct_s"`
	MaxWait       number `json:"max_wait_s"`
	Makespan      number `json:"makespan_s"`
	LowerBound    number `json:"lower_bound_s"`
	SpreadMeanJCT number `json:"spread_mean_jct_s"`
	Refused       int    `json:"refused"`
	Unfinished    int    `json:"unfinished"`
	Restarts      int    `json:"restarts"`
	Moves         int    `json:"moves"`
	// Resizes are those of running jobs; left out where there were none.
	Resizes   int `json:"resizes,omitempty"`
	Decisions int `json:"decisions"`
	// Tuned are the values that tuning found; nil where it was not asked for.
	Tuned map[string]float64 `json:"tuned,omitempty"`
	Error string             `json:"error,omitempty"`
}

func jobRows(outcomes []compare.Outcome) []jobRow {
	spread := map[uint64]number{}
	for _, o := range outcomes {
		if o.Spec.Text == compare.Spread && o.Err == nil {
			spread[o.Seed] = number(o.Result.MeanJCT)
		}
	}
	none := number(math.NaN())
	rows := make([]jobRow, len(outcomes))
	for i, o := range outcomes {
		r := &o.Result
		row := jobRow{
			Policy: o.Spec.Text, Seed: o.Seed, Jobs: len(r.Jobs),
			MeanJCT: number(r.MeanJCT), MedianJCT: number(r.MedianJCT), P95JCT: number(r.P95JCT), MaxWait: number(r.MaxWait),
			Makespan: number(r.Makespan), LowerBound: number(r.LowerBound), SpreadMeanJCT: none,
			Refused: len(r.Refused), Unfinished: len(r.Unfinished), Restarts: r.Restarts, Moves: r.Moves, Resizes: r.Resizes, Decisions: r.Decisions,
		}
		if s, ok := spread[o.Seed]; ok {
			row.SpreadMeanJCT = s
		}
		if o.Err != nil {
			row.Error = o.Err.Error()
			row.MeanJCT, row.MedianJCT, row.P95JCT, row.MaxWait, row.Makespan, row.LowerBound = none, none, none, none, none, none
		}
		rows[i] = row
	}
	return rows
}

func (f *simulateFlags) write(cmd *cobra.Command, s *simulation, outcomes []compare.Outcome) error {
	w := cmd.OutOrStdout()
	rows := jobRows(outcomes)
	for i := range rows {
		rows[i].Tuned = s.Tuned[rows[i].Policy]
	}
	switch f.output {
	case "json":
		return writeJSON(w, rows)
	case "yaml":
		return writeYAML(w, rows)
	case "csv":
		header, cells := jobCells(rows)
		return writeCSV(w, header, cells)
	}
	return s.writeTable(w, outcomes)
}

func jobCells(rows []jobRow) (header []string, cells [][]string) {
	header = []string{
		"policy", "seed", "jobs", "mean_jct_s", "median_jct_s", "p95_jct_s", "max_wait_s", "makespan_s", "lower_bound_s", "spread_mean_jct_s",
		"refused", "unfinished", "restarts", "moves", "decisions", "error",
	}
	for _, r := range rows {
		cells = append(cells, []string{
			r.Policy, strconv.FormatUint(r.Seed, 10), strconv.Itoa(r.Jobs), r.MeanJCT.exact(), r.MedianJCT.exact(), r.P95JCT.exact(),
			r.MaxWait.exact(), r.Makespan.exact(), r.LowerBound.exact(), r.SpreadMeanJCT.exact(),
			strconv.Itoa(r.Refused), strconv.Itoa(r.Unfinished), strconv.Itoa(r.Restarts), strconv.Itoa(r.Moves), strconv.Itoa(r.Decisions), r.Error,
		})
	}
	return header, cells
}

// writeTable holds every policy against spread.
func (s *simulation) writeTable(w io.Writer, outcomes []compare.Outcome) error {
	rows := compare.Rows(outcomes)
	unit, per := timeUnit(rows)
	header := []string{
		"policy", " JCT / spread", " +-", " gap closed", " +-", " mean JCT " + unit, " median", " p95", " longest wait", " makespan",
	}
	var cells [][]string
	for _, r := range rows {
		times := func(v float64) string { return number(v / per).text(2) }
		cells = append(cells, []string{
			r.Spec.Text, number(r.Ratio).text(3), number(r.RatioError).text(3), percentOf(r.Closed), percentOf(r.ClosedError),
			times(r.MeanJCT), times(r.MedianJCT), times(r.P95JCT), times(r.MaxWait), times(r.Makespan),
		})
	}
	bound := slices.Repeat([]string{"-"}, len(header))
	bound[0], bound[1], bound[2], bound[3] = "(lower bound)", number(rows[0].Bound).text(3), number(rows[0].BoundError).text(3), percentOf(1)
	cells = append(cells, bound)
	if err := writeTable(w, header, cells); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := s.writeTuned(w); err != nil {
		return err
	}
	return s.writeNotes(w, rows)
}

// percentOf is a share in whole percent.
func percentOf(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return number(100*v).text(0) + " %"
}

// timeUnit is the unit in which times of that size read well.
func timeUnit(rows []compare.Row) (name string, seconds float64) {
	longest := 0.0
	for _, r := range rows {
		if r.MeanJCT > longest { // not NaN, which max would keep
			longest = r.MeanJCT
		}
	}
	switch {
	case longest >= 2*3600:
		return "h", 3600
	case longest >= 2*60:
		return "min", 60
	}
	return "s", 1
}

// writeNotes says what the numbers rest on.
func (s *simulation) writeNotes(w io.Writer, rows []compare.Row) error {
	var b strings.Builder
	if len(s.Seeds) > 1 {
		fmt.Fprintf(&b, "Seeds %d to %d; +- is the standard error over seeds, paired with spread.\n", s.Seeds[0], s.Seeds[len(s.Seeds)-1])
	} else {
		fmt.Fprintf(&b, "Seed %d.\n", s.Seeds[0])
	}
	runs := 0
	for _, r := range rows {
		runs += r.Runs
	}
	if all := len(s.Specs) * len(s.Seeds); runs < all {
		fmt.Fprintf(&b, "Interrupted: of %d of %d runs; a mean is over the seeds that finished.\n", runs, all)
	}
	if s.trace != nil {
		fmt.Fprintf(&b, "Trace: %d jobs; skipped: %d; of sizes that were not measured, scaled: %d", len(s.trace.Jobs), s.skipped, s.trace.Scaled)
		if s.trace.Drawn > 0 {
			fmt.Fprintf(&b, "; with drawn workloads: %d", s.trace.Drawn)
		}
		b.WriteString(".\n")
	}
	if e := s.draw.Elastic; s.Options.Scale.On {
		fmt.Fprintf(&b, "Jobs scale to %g to %g times their workers, at %s of standing still; the lower bound is at their own, and can be passed.\n", e.Min, e.Max, s.Options.Scale.Cost)
	}
	if rows[0].Refused > 0 {
		fmt.Fprintf(&b, "Jobs larger than the cluster, refused by every policy: %d over all seeds.\n", rows[0].Refused)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
