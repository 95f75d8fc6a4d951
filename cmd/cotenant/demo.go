package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/internal/whole"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/report"
)

type demoFlags struct {
	source sourceFlags
	report string
	nodes  int
	seed   uint64
	seeds  int
	jobs   int
	output string
}

// demoForms leaves out csv: what models and policies reach are two tables.
var demoForms = []string{"table", "json", "yaml"}

func demoCommand() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show it all on what ships: interference, models, plans, jobs, report.html",
		Long: `Show what Cotenant does, on the measurements and the trace that ship with it:

  what was measured, and who slows whom;
  how well each kind of model, fitted on half of it, predicts the other half;
  what every policy makes of a batch of tasks when it sees only the neural
  model, judged by what was measured and held against a proven bound;
  how long training jobs take when policies place them: a trace replayed on a
  simulated cluster, with the policy that was trained among them.

It writes all of it as one page, which loads nothing from anywhere.`,
		Example: `  cotenant demo
  cotenant demo --samples mine.jsonl --report mine.html
  cotenant demo -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return demo(cmd, &f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.report, "report", "report.html", "`FILE` to write the page to")
	fl.StringVar(&f.source.samples, "samples", "", "`FILE` of measurements instead of those that ship: .jsonl, .csv (ours or Metis's), .npz; gzip too")
	fl.StringSliceVar(&f.source.columns, "columns", nil, "`workloads` of the columns of an .npz, which does not name them")
	fl.BoolVar(&f.source.strict, "strict", false, "fail on the first bad record of --samples instead of leaving it out")
	fl.IntVar(&f.nodes, "nodes", 20, "`N` nodes to place on")
	fl.Uint64Var(&f.seed, "seed", 1, "`S`, the seed of all that is drawn")
	fl.IntVar(&f.seeds, "seeds", 3, "fit each model with `N` seeds: S, S+1, ...")
	fl.IntVar(&f.jobs, "jobs", 300, "replay the first `N` jobs of the example trace; 0 for none")
	fl.StringVarP(&f.output, "output", "o", "table", "form of the results: "+strings.Join(demoForms, ", "))
	return cmd
}

func (f *demoFlags) check() error {
	switch {
	case f.report == "":
		return wrongUse("--report: the file name is empty")
	case f.nodes < 1 || f.nodes > maxNodes:
		return wrongUse("--nodes %d: give 1 to %d", f.nodes, maxNodes)
	case f.seeds < 1 || f.seeds > maxSeeds:
		return wrongUse("--seeds %d: give 1 to %d", f.seeds, maxSeeds)
	case f.jobs < 0:
		return wrongUse("--jobs %d: negative", f.jobs)
	case f.seed > math.MaxUint64-maxSeeds:
		return wrongUse("--seed %d: too large", f.seed)
	}
	if err := oneOf("output", f.output, demoForms); err != nil {
		return err
	}
	// Better now than after a minute of work.
	if err := whole.Probe(f.report); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}

func demo(cmd *cobra.Command, f *demoFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	ctx, log := cmd.Context(), cmd.ErrOrStderr()
	samples, name, err := f.source.given(&inputs{stdin: cmd.InOrStdin()}, log)
	if err != nil {
		return err
	}
	truth, err := interference.Fit(interference.KindTable, samples, interference.Options{})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	measured := report.Measure(samples)
	measured.Source = name
	if f.source.samples == "" {
		describeShipped(&measured)
	}
	tables := cmd.OutOrStdout()
	if f.output != "table" {
		tables = io.Discard
	}
	if err := writeMeasured(tables, measured); err != nil {
		return err
	}

	measurable, err := wholePart(samples, name)
	if err != nil {
		return err
	}
	trial, err := fitModels(ctx, log, samples, f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Fprintln(tables)
	if err := trial.fit.writeTables(tables, trial.rows); err != nil {
		return err
	}

	p, err := measurable.input(f, truth, name, trial.belief)
	if err != nil {
		return err
	}
	limit, plans, failures, err := p.placeAll(ctx, log)
	if err != nil {
		return err
	}
	fmt.Fprintln(tables)
	if err := p.writeTables(tables, plans, false); err != nil {
		return err
	}
	fmt.Fprintln(tables, p.whyCareful(plans))

	replay, err := f.replay(ctx, log, tables)
	if err != nil {
		return err
	}

	data := report.Data{
		Title: "Cotenant: what " + name + " show", Created: time.Now(), Command: "cotenant demo", Measured: measured,
		Split: trial.words(), Models: trial.report(), Plan: p.report(limit, plans, failures),
	}
	data.Plan.Sees = fmt.Sprintf("a neural model that learned from %d of the co-locations; the policy measured uses only those that it learned from. %s", trial.train, p.whyCareful(plans))
	if replay != nil {
		data.Jobs = replay.report()
	}
	var page bytes.Buffer
	if err := report.Write(&page, data); err != nil {
		return err
	}
	if err := writeFile(f.report, page.Bytes()); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	fmt.Fprintf(log, "wrote %s: open it in a browser\n", f.report)
	if err := f.writeRows(cmd.OutOrStdout(), trial.rows, plans, replay); err != nil {
		return err
	}
	if err := p.outcome(log, plans, failures); err != nil || replay == nil {
		return err
	}
	return replay.verdict(log, replay.outcomes)
}

// replay replays the example trace and prints what came of it; nil where it is
// not asked for.
func (f *demoFlags) replay(ctx context.Context, log, tables io.Writer) (*jobsTrial, error) {
	if f.jobs == 0 {
		return nil, nil
	}
	t, err := replayJobs(ctx, log, f)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(tables)
	return t, t.writeDemo(tables)
}

// writeRows writes what models and policies reach as one array.
func (f *demoFlags) writeRows(w io.Writer, models []fitRow, plans []plan, replay *jobsTrial) error {
	var rows []any
	for _, m := range models {
		rows = append(rows, m)
	}
	for _, p := range plans {
		rows = append(rows, p)
	}
	if replay != nil {
		for _, r := range jobRows(replay.outcomes) {
			rows = append(rows, r)
		}
	}
	switch f.output {
	case "json":
		return writeJSON(w, rows)
	case "yaml":
		return writeYAML(w, rows)
	}
	return nil
}

// trusting are the policies that search as they would be if they took every
// prediction as it is: on noisy measurements they find first what the model
// merely over-predicts.
var trusting = []string{"metis:pessimism=0", "greedy-search:pessimism=0", "bound:pessimism=0"}

// placeAll computes the bound and asks every policy.
func (p *planInput) placeAll(ctx context.Context, log io.Writer) (limitOf, []plan, []failure, error) {
	f := &planFlags{order: "random"}
	var err error
	if f.specs, err = parsePolicies(append(shownPolicies(), trusting...)); err != nil {
		return limitOf{}, nil, nil, err
	}
	if err := p.open(ctx, f, log); err != nil {
		return limitOf{}, nil, nil, err
	}
	bar := newProgress(log, "place", len(p.policies)+1)
	defer bar.end()
	bar.at(0, "the bound")
	limit, infeasible, err := p.bound(ctx)
	if err = errors.Join(infeasible, err); err != nil {
		return limit, nil, nil, err
	}
	plans, failures := p.run(ctx, f, limit, bar)
	if ctx.Err() != nil {
		return limit, nil, nil, stopped("no report was written")
	}
	return limit, plans, failures, nil
}

// part is workloads and a number of tasks up to which every co-location of
// them was measured: there every plan can be judged.
type part struct {
	class     string
	workloads []string
	slots     int
}

// wholePart looks for the part with the most tasks on a node, of at least
// three workloads where that is possible; fewer workloads make a poor puzzle.
func wholePart(samples []history.Sample, name string) (part, error) {
	byClass := map[string][]cluster.Colocation{}
	cells := map[string]map[string]bool{} // measured workloads by class and co-location
	most := 0
	for _, s := range samples {
		if s.Metric != history.Rate || s.Scope != "" && s.Scope != history.ScopeNode {
			continue
		}
		key := s.Class + " " + s.Colocation.Key()
		if cells[key] == nil {
			cells[key] = map[string]bool{}
			byClass[s.Class] = append(byClass[s.Class], s.Colocation)
		}
		cells[key][s.Workload] = true
		most = max(most, s.Colocation.Tasks())
	}
	var classes []string
	for class := range byClass {
		byClass[class] = slices.DeleteFunc(byClass[class], func(c cluster.Colocation) bool {
			return len(cells[class+" "+c.Key()]) < len(c)
		})
		classes = append(classes, class)
	}
	slices.Sort(classes)
	for _, fewest := range []int{3, 2} {
		for slots := most; slots > 1; slots-- {
			for _, class := range classes {
				if w := completeOver(byClass[class], slots); len(w) >= fewest {
					return part{class, w, slots}, nil
				}
			}
		}
	}
	return part{}, fmt.Errorf("%s: no two workloads have all their co-locations measured, so no plan could be judged; measure each pair of them", name)
}

// completeOver lists workloads of which every co-location of up to slots tasks
// is among those given. Where not all are, it leaves out the workload with the
// fewest and looks again.
func completeOver(colocations []cluster.Colocation, slots int) []string {
	var workloads []string
	for _, c := range colocations {
		workloads = append(workloads, c.Workloads()...)
	}
	slices.Sort(workloads)
	workloads = slices.Compact(workloads)
	for len(workloads) > 0 {
		have := 0
		share := make([]int, len(workloads))
		for _, c := range colocations {
			if c.Tasks() > slots || slices.ContainsFunc(c.Workloads(), func(w string) bool { return !slices.Contains(workloads, w) }) {
				continue
			}
			have++
			for i, w := range workloads {
				if c[w] > 0 {
					share[i]++
				}
			}
		}
		if have == multisets(len(workloads), slots) {
			return workloads
		}
		least := slices.Index(share, slices.Min(share))
		workloads = slices.Delete(workloads, least, least+1)
	}
	return nil
}

// multisets is the number of co-locations of 1 to slots tasks of n workloads:
// (n+slots choose slots) - 1.
func multisets(n, slots int) int {
	product := 1
	for i := 1; i <= slots; i++ {
		product = product * (n + i) / i
	}
	return product - 1
}

// fullness is the share of slots that the batch takes: enough that tasks must
// share nodes, little enough that there is a choice.
const fullness = .75

// input is a batch with as many tasks of every workload, for the nodes.
func (w part) input(f *demoFlags, truth interference.Model, name string, belief interference.Model) (*planInput, error) {
	snapshot, err := cluster.NewSnapshot(cluster.Spec{Nodes: cluster.Nodes(w.class, f.nodes, 1, w.slots)})
	if err != nil {
		return nil, err
	}
	each := max(1, int(math.Round(fullness*float64(f.nodes*w.slots)/float64(len(w.workloads)))))
	if each*len(w.workloads) > f.nodes*w.slots {
		return nil, wrongUse("--nodes %d: a task of each of %d workloads needs more nodes of %d slots", f.nodes, len(w.workloads), w.slots)
	}
	return &planInput{
		source:   &source{belief: belief, beliefName: "the neural model", truth: truth, truthName: name, most: w.slots},
		snapshot: snapshot, objective: place.MeanPerformance, seeds: []uint64{f.seed},
		batch: &batch{name: "the batch", workloads: w.workloads, counts: slices.Repeat([]int{each}, len(w.workloads))},
	}, nil
}
