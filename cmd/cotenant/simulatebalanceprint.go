package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	balancesim "github.com/cotenant/cotenant/sim/balance"
)

func (f *simulateBalanceFlags) onTraces(cmd *cobra.Command, in *inputs, batches []int) ([]balanceRow, error) {
	policies, err := f.policiesOf(balancesim.Schemes())
	if err != nil {
		return nil, err
	}
	if err := errors.Join(oneOf("problem", f.problem, []string{"logistic", "perceptron"}), f.checkTraining()); err != nil {
		return nil, err
	}
	var given []balancesim.Trace
	if f.traces != "" {
		text, err := in.text("traces", f.traces)
		if err != nil {
			return nil, err
		}
		if given, err = balancesim.ReadTraces(bytes.NewReader(text), f.traces); err != nil {
			return nil, fmt.Errorf("--traces: %w", err)
		}
	}
	var rows []balanceRow
	for _, x := range batches {
		for s := range f.seeds {
			seed := f.seed + uint64(s)
			traces := given
			if traces == nil {
				if traces, err = balancesim.DrawTraces(f.kind, f.workers, 600, seed); err != nil {
					return nil, wrongUse("--kind, --workers: %s", err)
				}
			}
			t := balancesim.Training{
				Traces: traces, Step: f.step, GlobalBatch: x, Rate: f.rate, Communicate: f.upload, Overhead: f.overhead,
				Staleness: f.slack, Samples: f.samples, Predictor: f.predict, Seed: seed,
			}
			if f.problem == "logistic" {
				t.Problem = balancesim.NewLogistic(2000, 20, seed)
			} else {
				t.Problem = balancesim.NewPerceptron(2000, 16, seed)
			}
			some, err := trainRows(t, policies)
			if err != nil {
				return nil, err
			}
			rows = append(rows, some...)
		}
	}
	f.sayDiverged(cmd, rows)
	return rows, nil
}

// sayDiverged tells of runs whose losses say nothing about the policies.
func (f *simulateBalanceFlags) sayDiverged(cmd *cobra.Command, rows []balanceRow) {
	var policies []string
	n := 0
	for _, r := range rows {
		if r.diverged {
			n++
			if !slices.Contains(policies, r.Policy) {
				policies = append(policies, r.Policy)
			}
		}
	}
	if n > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%d of %d runs diverged (%s): their last loss is no number, or above the one they began with, and they have no time to a loss; give a lower --rate than %g\n",
			n, len(rows), strings.Join(policies, ", "), f.rate)
	}
}

// trainRows trains by each scheme. The loss that all are timed to is the worst
// of their final ones, so that each reaches it; all but those that diverged.
func trainRows(t balancesim.Training, schemes []string) ([]balanceRow, error) {
	results, failed := make([]balancesim.TrainResult, len(schemes)), make([]error, len(schemes))
	parallel(len(schemes), func(i int) {
		t := t
		t.Scheme = schemes[i]
		results[i], failed[i] = balancesim.Train(t)
	})
	target := 0.0
	for i, r := range results {
		if failed[i] != nil {
			return nil, failed[i]
		}
		if !r.Diverged() {
			target = max(target, r.Curve[len(r.Curve)-1].Loss)
		}
	}
	rows := make([]balanceRow, len(schemes))
	for i, r := range results {
		toLoss := 1000 * r.TimeTo(target)
		if r.Diverged() {
			toLoss = math.NaN()
		}
		rows[i] = balanceRow{
			Policy: r.Scheme, GlobalBatch: t.GlobalBatch, Seed: t.Seed,
			IterationMs: number(1000 * r.Seconds / float64(t.Samples) * float64(t.GlobalBatch)), OptimalMs: number(math.NaN()),
			TotalMs: number(1000 * r.Seconds), Shares: r.Shares,
			Loss: ptr(r.Curve[len(r.Curve)-1].Loss), ToLoss: ptr(toLoss), Idle: ptr(r.Idle), curve: r.Curve,
			diverged: r.Diverged(),
		}
	}
	return rows, nil
}

var balanceColumns = []string{
	"policy", "global_batch", "seed", "iteration_ms", "optimal_ms", "total_ms", "shares", "iterations_to_converge",
	"first_30_ratio", "settled_ratio", "back_ratio", "after_ratio", "loss", "to_loss_ms", "idle_share",
}

func (r balanceRow) fields() []string {
	var shares []string
	for _, s := range r.Shares {
		shares = append(shares, strconv.Itoa(s))
	}
	out := []string{
		r.Policy, strconv.Itoa(r.GlobalBatch), strconv.FormatUint(r.Seed, 10), r.IterationMs.exact(), r.OptimalMs.exact(), r.TotalMs.exact(),
		strings.Join(shares, " "), "",
	}
	if r.Converge != nil {
		out[len(out)-1] = strconv.Itoa(*r.Converge)
	}
	for _, v := range []*number{r.First, r.Settled, r.Back, r.After, r.Loss, r.ToLoss, r.Idle} {
		if v == nil {
			out = append(out, "")
		} else {
			out = append(out, v.exact())
		}
	}
	return out
}

func (f *simulateBalanceFlags) writeRuns(cmd *cobra.Command, in *inputs, rows []balanceRow) error {
	var fields, losses [][]string
	var seeds []uint64
	for _, r := range rows {
		fields = append(fields, r.fields())
		if !slices.Contains(seeds, r.Seed) {
			seeds = append(seeds, r.Seed)
		}
		for _, p := range r.curve {
			losses = append(losses, []string{
				r.Policy, strconv.Itoa(r.GlobalBatch), strconv.FormatUint(r.Seed, 10), number(p.Seconds).exact(), strconv.Itoa(p.Samples), number(p.Loss).exact(),
			})
		}
	}
	runs, err := csvFile("runs.csv", balanceColumns, fields)
	if err != nil {
		return err
	}
	files := []outFile{runs}
	if losses != nil {
		loss, err := csvFile("loss.csv", []string{"policy", "global_batch", "seed", "seconds", "samples", "loss"}, losses)
		if err != nil {
			return err
		}
		files = append(files, loss)
	}
	return writeRun(f.out, newManifest(cmd, seeds, in), files)
}

func (f *simulateBalanceFlags) print(cmd *cobra.Command, rows []balanceRow) error {
	out := cmd.OutOrStdout()
	switch f.output {
	case "json":
		return writeJSON(out, rows)
	case "yaml":
		return writeYAML(out, rows)
	case "csv":
		var fields [][]string
		for _, r := range rows {
			fields = append(fields, r.fields())
		}
		return writeCSV(out, balanceColumns, fields)
	}
	return f.table(cmd, rows)
}

// windowsNote says which iterations, counted from 0, the ratios are of.
func windowsNote(w balancesim.Windows) string {
	of := func(w balancesim.Window) string {
		if w.From == w.To {
			return "none, the run is too short"
		}
		return fmt.Sprintf("%d to %d", w.From, w.To-1)
	}
	if w.Back == (balancesim.Window{}) {
		return fmt.Sprintf("Settled: iterations %s. Back and after: none, nothing changes.", of(w.Settled))
	}
	return fmt.Sprintf("Settled: iterations %s, before any change. Back: %s, from the 30th after the last one. After: %s.",
		of(w.Settled), of(w.Back), of(w.After))
}

// table prints the mean over runs, and the worst, of each policy.
func (f *simulateBalanceFlags) table(cmd *cobra.Command, rows []balanceRow) error {
	var policies []string
	for _, r := range rows {
		if !slices.Contains(policies, r.Policy) {
			policies = append(policies, r.Policy)
		}
	}
	of := func(policy string, value func(balanceRow) *number) (mean, worst number) {
		n, sum, most := 0, 0.0, math.Inf(-1)
		for _, r := range rows {
			if v := value(r); r.Policy == policy && v != nil && v.known() {
				n++
				sum += float64(*v)
				most = max(most, float64(*v))
			}
		}
		if n == 0 {
			return number(math.NaN()), number(math.NaN())
		}
		return number(sum / float64(n)), number(most)
	}
	type column struct {
		name     string
		value    func(balanceRow) *number
		decimals int
		worst    bool
	}
	columns := []column{{" iteration ms", func(r balanceRow) *number { return &r.IterationMs }, 2, false}}
	note := "Means over runs. To loss: the time to the worst of the policies' final losses."
	if f.curves != "" {
		w := rows[0].windows // all have as many iterations and the same changes
		columns = append(columns,
			column{" settled", func(r balanceRow) *number { return r.Settled }, 3, true},
			column{fmt.Sprint(" first ", w.First.To), func(r balanceRow) *number { return r.First }, 3, true},
			column{" back", func(r balanceRow) *number { return r.Back }, 3, true},
			column{" after", func(r balanceRow) *number { return r.After }, 3, true})
		note = "Times of the curves, as ratios to the least possible; worst of all runs in brackets.\n" + windowsNote(w)
	} else {
		columns = append(columns,
			column{" total s", func(r balanceRow) *number { return ptr(float64(r.TotalMs) / 1000) }, 1, false},
			column{" to loss s", func(r balanceRow) *number { return ptr(float64(*r.ToLoss) / 1000) }, 1, false},
			column{" loss", func(r balanceRow) *number { return r.Loss }, 4, false},
			column{" idle", func(r balanceRow) *number { return r.Idle }, 3, false})
	}
	header := []string{"policy", " runs"}
	for _, c := range columns {
		header = append(header, c.name)
	}
	var cells [][]string
	for _, p := range policies {
		n := 0
		for _, r := range rows {
			if r.Policy == p {
				n++
			}
		}
		line := []string{p, strconv.Itoa(n)}
		for _, c := range columns {
			mean, worst := of(p, c.value)
			text := mean.text(c.decimals)
			if c.worst && worst.known() {
				text += " (" + worst.text(c.decimals) + ")"
			}
			line = append(line, text)
		}
		cells = append(cells, line)
	}
	if err := writeTable(cmd.OutOrStdout(), header, cells); err != nil {
		return err
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), note)
	return err
}
