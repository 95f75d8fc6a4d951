package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	balancesim "github.com/cotenant/cotenant/sim/balance"
)

// simulateBalanceFlags are the flags of `simulate balance`, as given.
type simulateBalanceFlags struct {
	curves      string
	globalBatch string
	policies    []string
	noise       float64
	changes     []string
	iterations  int
	delay       int

	traces   string
	step     float64
	workers  int
	kind     string
	problem  string
	samples  int
	rate     float64
	upload   float64
	overhead float64
	slack    int
	predict  string

	seed   uint64
	seeds  int
	output string
	out    string
}

func simulateBalanceCommand() *cobra.Command {
	var f simulateBalanceFlags
	cmd := &cobra.Command{
		Use:   "balance",
		Short: "Size the batches of a training job's workers, policy against policy",
		Long: "With --curves, plays iterations on measured times by batch size (CSV: worker,batch,ms). The\n" +
			"policies see only what they measure, with noise; times printed are those of the curves.\n" +
			"`cotenant` is what ships, `proportional` follows the speeds of the last iteration, and\n" +
			"`optimal` knows the curves.\n\n" +
			"Otherwise, trains a small problem by real SGD on workers whose speeds follow --traces or are\n" +
			"drawn: bsp, asp, ssp, flexrr and lb-bsp, in virtual time.",
		Example: "  cotenant simulate balance --curves batch-time.csv --global-batch 64:512:8 --noise 0.05 --change 200:gpu1=x1.5\n" +
			"  cotenant simulate balance --workers 8 --kind co-tenants --problem perceptron --seeds 5",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.curves, "curves", "", "`FILE` of times by batch size, CSV with the columns worker, batch, ms; gzip too")
	fl.StringVar(&f.globalBatch, "global-batch", "256", "sum of the batch sizes, `X`, a comma list, or FROM:TO:STEP, of which those out of the curves' reach are left out")
	fl.StringSliceVar(&f.policies, "policy", nil, "policies, a comma `list`: with --curves of equal, proportional, cotenant, optimal, else of bsp, asp, ssp, flexrr, lb-bsp (default: all)")
	fl.Float64Var(&f.noise, "noise", 0.05, "standard deviation of what is measured on curves, as a `share`")
	fl.StringArrayVar(&f.changes, "change", nil, "`ITERATION:WORKER=CURVE`: from there on the worker is as slow as CURVE, another worker or a factor such as x1.5; may be repeated")
	fl.IntVar(&f.iterations, "iterations", 300, "iterations on curves")
	fl.IntVar(&f.delay, "delay", 0, "iterations until reports are known: 0, those of one shape the next")

	fl.StringVar(&f.traces, "traces", "", "`FILE` of speeds over time, CSV with the columns worker, speed, cpu, memory; gzip too")
	fl.Float64Var(&f.step, "step", 1, "`seconds` between rows of a worker in --traces")
	fl.IntVar(&f.workers, "workers", 8, "draw traces for `N` workers")
	fl.StringVar(&f.kind, "kind", balancesim.Cotenants, "`kind` of traces to draw: "+strings.Join(balancesim.TraceKinds(), ", "))
	fl.StringVar(&f.problem, "problem", "logistic", "what to train: logistic (convex) or perceptron (not convex)")
	fl.IntVar(&f.samples, "samples", 100_000, "train on `N` samples")
	fl.Float64Var(&f.rate, "rate", 0.5, "learning `rate`")
	fl.Float64Var(&f.upload, "communicate", 0.02, "`seconds` for a worker to push and pull")
	fl.Float64Var(&f.overhead, "overhead", 0.01, "`seconds` of an iteration whatever its batch")
	fl.IntVar(&f.slack, "staleness", 3, "ssp: iterations that a worker may be ahead")
	fl.StringVar(&f.predict, "predictor", "auto", "lb-bsp: auto, last, ema, arima, rnn, narx")

	fl.Uint64Var(&f.seed, "seed", 1, "`S`, the seed of all that is drawn")
	fl.IntVar(&f.seeds, "seeds", 1, "run with `N` seeds: S, S+1, ...")
	fl.StringVar(&f.out, "out", "", "also write manifest.json and runs.csv (and loss.csv) into `DIR`")
	outputFlag(cmd, &f.output)
	return cmd
}

// balanceRow is one run.
type balanceRow struct {
	Policy      string  `json:"policy"`
	GlobalBatch int     `json:"global_batch"`
	Seed        uint64  `json:"seed"`
	IterationMs number  `json:"iteration_ms"`
	OptimalMs   number  `json:"optimal_ms"`
	TotalMs     number  `json:"total_ms"`
	Shares      []int   `json:"shares"`
	Converge    *int    `json:"iterations_to_converge"`
	First       *number `json:"first_30_ratio,omitempty"`
	Settled     *number `json:"settled_ratio,omitempty"`
	Back        *number `json:"back_ratio,omitempty"`
	After       *number `json:"after_ratio,omitempty"`
	Loss        *number `json:"loss,omitempty"`
	ToLoss      *number `json:"to_loss_ms,omitempty"`
	Idle        *number `json:"idle_share,omitempty"`
	curve       []balancesim.Point
	windows     balancesim.Windows // that a run on curves was judged on
	diverged    bool
}

func (f *simulateBalanceFlags) run(cmd *cobra.Command) error {
	batches, ranged, err := f.batches()
	if err = errors.Join(checkOutput(f.output), err, f.ignored(cmd)); err != nil {
		return err
	}
	if f.seeds < 1 || f.seeds > maxSeeds {
		return wrongUse("--seeds %d: give 1 to %d", f.seeds, maxSeeds)
	}
	if f.out != "" {
		if err := checkRunFolder(f.out); err != nil {
			return err
		}
	}
	in := inputs{stdin: cmd.InOrStdin()}
	var rows []balanceRow
	if f.curves != "" {
		rows, err = f.onCurves(cmd, &in, batches, ranged)
	} else {
		rows, err = f.onTraces(cmd, &in, batches)
	}
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := f.writeRuns(cmd, &in, rows); err != nil {
			return err
		}
	}
	return f.print(cmd, rows)
}

// batches reads --global-batch; ranged says that it was a range.
func (f *simulateBalanceFlags) batches() (all []int, ranged bool, err error) {
	bad := wrongUse("--global-batch %s: give X, X,Y,... or FROM:TO:STEP, whole numbers above 0", f.globalBatch)
	parts := strings.Split(f.globalBatch, ":")
	ranged = len(parts) == 3
	if !ranged {
		parts = strings.Split(f.globalBatch, ",")
	}
	for _, p := range parts {
		v, err := strconv.Atoi(strings.TrimSpace(p))
		if err != nil || v < 1 || v > 1<<30 {
			return nil, false, bad
		}
		all = append(all, v)
	}
	if !ranged {
		return all, false, nil
	}
	from, to, step := all[0], all[1], all[2]
	if (to-from)/step > 100_000 {
		return nil, false, wrongUse("--global-batch %s: more than 100000 values", f.globalBatch)
	}
	all = nil
	for x := from; x <= to; x += step {
		all = append(all, x)
	}
	if len(all) == 0 {
		return nil, false, bad
	}
	return all, true, nil
}

// changesOf reads --change.
func (f *simulateBalanceFlags) changesOf() ([]balancesim.Change, error) {
	var out []balancesim.Change
	for _, text := range f.changes {
		at, rest, ok1 := strings.Cut(text, ":")
		worker, to, ok2 := strings.Cut(rest, "=")
		k, err := strconv.Atoi(at)
		if !ok1 || !ok2 || err != nil || k < 0 || worker == "" || to == "" {
			return nil, wrongUse("--change %s: give ITERATION:WORKER=CURVE, such as 200:gpu1=gpu3 or 200:gpu1=x1.5", text)
		}
		c := balancesim.Change{Iteration: k, Worker: worker, Like: to}
		if factor, isFactor := strings.CutPrefix(to, "x"); isFactor {
			if v, err := strconv.ParseFloat(factor, 64); err == nil {
				c.Like, c.Factor = "", v
			}
		}
		if k >= f.iterations {
			return nil, wrongUse("--change %s: the run ends after %d iterations (--iterations)", text, f.iterations)
		}
		out = append(out, c)
	}
	return out, nil
}

// policiesOf are those asked for, or all that are known.
func (f *simulateBalanceFlags) policiesOf(known []string) ([]string, error) {
	if len(f.policies) == 0 {
		return known, nil
	}
	for _, p := range f.policies {
		if !slices.Contains(known, p) {
			return nil, wrongUse("--policy %s: none of %s", p, strings.Join(known, ", "))
		}
	}
	return f.policies, nil
}

func (f *simulateBalanceFlags) onCurves(cmd *cobra.Command, in *inputs, batches []int, ranged bool) ([]balanceRow, error) {
	policies, err := f.policiesOf([]string{balancesim.Equal, balancesim.Proportional, balancesim.Cotenant, balancesim.Best})
	if err != nil {
		return nil, err
	}
	switch {
	case f.iterations < 1:
		return nil, wrongUse("--iterations %d: give at least 1", f.iterations)
	case f.delay < 0:
		return nil, wrongUse("--delay %d: give 0 or more iterations", f.delay)
	case !(f.noise >= 0 && f.noise <= 1):
		return nil, wrongUse("--noise %g: give a share from 0 to 1", f.noise)
	}
	changes, err := f.changesOf()
	if err != nil {
		return nil, err
	}
	text, err := in.text("curves", f.curves)
	if err != nil {
		return nil, err
	}
	curves, err := balancesim.ReadCurves(bytes.NewReader(text), f.curves)
	if err != nil {
		return nil, fmt.Errorf("--curves: %w", err)
	}
	for _, c := range changes {
		if !slices.ContainsFunc(curves, func(w balancesim.Curve) bool { return w.Worker == c.Worker }) {
			return nil, fmt.Errorf("--change %d:%s=...: --curves %s has no worker %s", c.Iteration, c.Worker, f.curves, c.Worker)
		}
	}
	var runs []balancesim.Curves
	left := 0
	for _, x := range batches {
		if _, _, err := balancesim.Optimal(curves, x); err != nil {
			if !ranged {
				return nil, fmt.Errorf("--global-batch %d: %w", x, err)
			}
			left++
			continue
		}
		for s := range f.seeds {
			for _, p := range policies {
				runs = append(runs, balancesim.Curves{
					Workers: curves, GlobalBatch: x, Policy: p, Iterations: f.iterations, Noise: f.noise, Changes: changes, Delay: f.delay, Seed: f.seed + uint64(s),
				})
			}
		}
	}
	if left > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "left out %d global batch sizes that the curves do not reach\n", left)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("--global-batch %s: the curves of %s reach none of them", f.globalBatch, f.curves)
	}
	rows, failed := make([]balanceRow, len(runs)), make([]error, len(runs))
	parallel(len(runs), func(i int) { rows[i], failed[i] = curvesRow(runs[i]) })
	for _, err := range failed {
		if err != nil {
			return rows, err // what is wrong with one is wrong with all
		}
	}
	return rows, nil
}

func curvesRow(c balancesim.Curves) (balanceRow, error) {
	r, err := balancesim.RunCurves(c)
	if err != nil {
		return balanceRow{}, err
	}
	j := c.Judge(r)
	row := balanceRow{
		Policy: c.Policy, GlobalBatch: c.GlobalBatch, Seed: c.Seed, IterationMs: number(j.MeanMs), OptimalMs: number(j.OptimalMs),
		Shares: r.Settled, First: ptr(j.First), Settled: ptr(j.Settled), windows: c.Windows(),
	}
	for _, ms := range r.Ms {
		row.TotalMs += number(ms)
	}
	if r.Converged >= 0 {
		row.Converge = &r.Converged
	}
	if j.Back > 0 {
		row.Back = ptr(j.Back)
	}
	if j.After > 0 {
		row.After = ptr(j.After)
	}
	return row, nil
}

func ptr(v float64) *number {
	n := number(v)
	return &n
}
