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
	"time"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/internal/whole"
)

// fitFlags are the flags of `cotenant fit`.
type fitFlags struct {
	source        sourceFlags
	models, train []string
	metric, class string
	seeds         int
	seed          uint64
	out, onnx     string
	predictedOnly bool
	output        string
	// keep, where given, sees every model and what was held out from it.
	keep func(r *fitRow, m interference.Model, held []history.Sample)
}

// fitRow is how well one fitted model predicts what was held out from it.
type fitRow struct {
	Model       string `json:"model"`
	Train       int    `json:"train"`
	HeldOut     int    `json:"held_out"`
	Seed        uint64 `json:"seed"`
	MeanError   number `json:"mean_relative_error"`
	MedianError number `json:"median_relative_error"`
	P95Error    number `json:"p95_relative_error"`
	Coverage    number `json:"coverage_90"`
	Answered    number `json:"answered"`
	Seconds     number `json:"seconds"`
}

// fitCost is about how long each kind takes to fit, for the time left to mean
// something: a neural model takes nearly all of it.
var fitCost = map[string]int{
	interference.KindTable: 1, interference.KindLinear: 1, interference.KindForest: 10, interference.KindNeural: 400,
}

func fitCommand() *cobra.Command {
	f := &fitFlags{}
	cmd := &cobra.Command{
		Use:   "fit",
		Short: "Learn from measurements how co-located workloads perform, and say how well",
		Long: `Fits models of interference on a part of the measured co-locations, drawn at
random by seed (each workload alone is always in it), and compares what they
predict with the rest: the mean relative error over cells, a cell being one
workload in one co-location of at least two tasks. Training on several sizes
shows what more measurements would bring.

With --out the model is then fitted on all samples and all their metrics, and
written for cotenant plan services --model. What was measured overrides what
is predicted, unless --predicted-only.`,
		Example: `  cotenant fit --samples samples.jsonl
  cotenant fit --samples colocation.csv --train 322,643,2008 --seeds 5 -o json
  cotenant fit --samples samples.jsonl --model neural --out model.safetensors`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.source.samples, "samples", "", "`FILE` of measurements: .jsonl, .csv (ours or Metis's), .npz, SQLite; gzip too (default: those that ship)")
	fl.StringSliceVar(&f.source.columns, "columns", nil, "`workloads` of the columns of an .npz, which does not name them")
	fl.BoolVar(&f.source.strict, "strict", false, "fail on the first bad record of --samples instead of leaving it out")
	fl.StringSliceVar(&f.models, "model", interference.Kinds(), "`kinds` of model, a comma list")
	fl.StringSliceVar(&f.train, "train", nil, "`sizes` of the training part in co-locations, a comma list (default: nine tenths)")
	fl.IntVar(&f.seeds, "seeds", 1, "number of seeds: S, S+1, ...")
	fl.Uint64Var(&f.seed, "seed", 1, "first seed S")
	fl.StringVar(&f.metric, "metric", "rate", "what to predict: rate, p50, p99")
	fl.StringVar(&f.class, "class", "", "only the samples of this class (default: all)")
	fl.StringVar(&f.out, "out", "", "write the model, fitted on all samples, to this `FILE`: neural, where --model names it, else the one kind that it names")
	fl.StringVar(&f.onnx, "onnx", "", "write the same model as ONNX to this `FILE`, with its inputs and constants in FILE.json (neural and linear)")
	fl.BoolVar(&f.predictedOnly, "predicted-only", false, "leave the measured values out of the model")
	outputFlag(cmd, &f.output)
	return cmd
}

func (f *fitFlags) run(cmd *cobra.Command) error {
	sizes, err := f.check()
	if err != nil {
		return err
	}
	log := cmd.ErrOrStderr()
	samples, name, err := f.source.given(&inputs{stdin: cmd.InOrStdin()}, log)
	if err != nil {
		return err
	}
	if samples, err = f.ofClass(samples, name); err != nil {
		return err
	}
	rows, err := f.evaluate(cmd.Context(), log, samples, sizes)
	if err != nil {
		return fmt.Errorf("%s: %w", name, f.source.located(err))
	}
	if f.out != "" || f.onnx != "" {
		if err := f.save(cmd.Context(), log, samples, name); err != nil {
			return err
		}
	}
	return f.write(cmd.OutOrStdout(), rows)
}

// check refuses flags that cannot be meant, and reads the sizes.
func (f *fitFlags) check() ([]int, error) {
	known := []string{string(history.Rate), string(history.P50), string(history.P99)}
	err := errors.Join(checkOutput(f.output), oneOf("metric", f.metric, known))
	for i, m := range f.models {
		err = errors.Join(err, oneOf("model", m, interference.Kinds()))
		if slices.Contains(f.models[:i], m) {
			err = errors.Join(err, wrongUse("--model: %s is there twice", m))
		}
	}
	if len(f.models) == 0 {
		err = errors.Join(err, wrongUse("--model is empty: give one of %s", strings.Join(interference.Kinds(), ", ")))
	}
	if f.seeds < 1 {
		err = errors.Join(err, wrongUse("--seeds %d: at least 1", f.seeds))
	}
	switch {
	case f.out == "" && f.onnx == "" || len(f.models) == 0:
	case f.kept() == "":
		// The least error would be a choice by one draw and one metric.
		err = errors.Join(err, wrongUse("--model %s: --out and --onnx write one model, and neural is not among these; compare first, then name the kind to write", strings.Join(f.models, ",")))
	case f.onnx != "" && !slices.Contains([]string{interference.KindNeural, interference.KindLinear}, f.kept()):
		err = errors.Join(err, wrongUse("--onnx: a %s model has no ONNX form; give --model neural or linear", f.kept()))
	}
	// Found out now, not after the fitting.
	for _, o := range []struct{ flag, path string }{{"out", f.out}, {"onnx", f.onnx}} {
		if o.path == "" {
			continue
		}
		switch {
		case sameFile(o.path, f.source.samples):
			err = errors.Join(err, wrongUse("--%s %s: that is the file of --samples, which would be lost; name another", o.flag, o.path))
			continue
		case o.flag == "onnx" && f.out != "" && (sameFile(o.path, f.out) || sameFile(o.path+".json", f.out)):
			err = errors.Join(err, wrongUse("--out %s and --onnx %s, with its notes in %s.json, are the same file; name two", f.out, o.path, o.path))
			continue
		}
		if bad := whole.Probe(o.path); bad != nil {
			err = errors.Join(err, wrongUse("--%s: %v", o.flag, bad))
		}
	}
	var sizes []int
	for _, text := range f.train {
		n, bad := strconv.Atoi(strings.TrimSpace(text))
		if bad != nil || n < 1 {
			err = errors.Join(err, wrongUse("--train %s: a positive number of co-locations", text))
		}
		sizes = append(sizes, n)
	}
	return sizes, err
}

// sameFile reports whether two names, the second perhaps empty, are of one
// file, which need not be there.
func sameFile(a, b string) bool {
	if b == "" {
		return false
	}
	first, err := os.Stat(a)
	second, bad := os.Stat(b)
	return filepath.Clean(a) == filepath.Clean(b) || err == nil && bad == nil && os.SameFile(first, second)
}

// kept is the kind that --out and --onnx write; "" where several are named, and
// neural is not.
func (f *fitFlags) kept() string {
	switch {
	case len(f.models) == 1:
		return f.models[0]
	case slices.Contains(f.models, interference.KindNeural):
		return interference.KindNeural
	}
	return ""
}

func (f *fitFlags) ofClass(samples []history.Sample, name string) ([]history.Sample, error) {
	if f.class == "" {
		return samples, nil
	}
	var kept []history.Sample
	var classes []string
	for _, s := range samples {
		if s.Class == f.class {
			kept = append(kept, s)
		} else if !slices.Contains(classes, s.Class) {
			classes = append(classes, s.Class)
		}
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("--class %s: %s holds no sample of it, only of %s", f.class, name, quotedList(classes))
	}
	return kept, nil
}

// evaluate fits every kind on every size with every seed.
func (f *fitFlags) evaluate(ctx context.Context, log io.Writer, samples []history.Sample, sizes []int) ([]fitRow, error) {
	metric := history.Metric(f.metric)
	samples = slices.DeleteFunc(slices.Clone(samples), func(s history.Sample) bool { return s.Metric != metric })
	if len(samples) == 0 {
		return nil, fmt.Errorf("metric %s: %w", f.metric, interference.ErrNoSamples)
	}
	all := colocations(samples)
	if len(sizes) == 0 {
		sizes = []int{max(1, all*9/10)}
	}
	work := 0
	for _, kind := range f.models {
		work += len(sizes) * f.seeds * fitCost[kind]
	}
	bar := newProgress(log, "fit", work)
	defer bar.end()
	spent := 0
	var rows []fitRow
	for _, size := range sizes {
		for j := range f.seeds {
			seed := f.seed + uint64(j)
			fit, held, err := interference.Split(samples, size, seed)
			if err != nil {
				return nil, err
			}
			// What was never drawn alone is always in, so that less may be held out.
			out := colocations(held)
			for _, kind := range f.models {
				if ctx.Err() != nil {
					return nil, stopped("nothing was written")
				}
				what := fmt.Sprintf("%s on %d, seed %d", kind, all-out, seed)
				bar.at(spent, what)
				begin := time.Now()
				m, err := interference.Fit(kind, fit, interference.Options{
					Seed: seed, Metrics: []history.Metric{metric}, PredictedOnly: f.predictedOnly, Parallel: parallel,
					Progress: func(done, total int) { bar.at(spent+fitCost[kind]*done/max(total, 1), what) },
				})
				if err != nil {
					return nil, err
				}
				row := fitRow{Model: kind, Train: all - out, HeldOut: out, Seed: seed, Seconds: number(time.Since(begin).Seconds())}
				if err := row.hold(m, metric, held); err != nil {
					return nil, err
				}
				if f.keep != nil {
					f.keep(&row, m, held)
				}
				rows = append(rows, row)
				spent += fitCost[kind]
			}
		}
	}
	return rows, nil
}

func colocations(samples []history.Sample) int {
	seen := map[string]bool{}
	for _, s := range samples {
		seen[s.Class+" "+s.Colocation.Key()] = true
	}
	return len(seen)
}

// hold fills in how far the model is from what was held out.
func (r *fitRow) hold(m interference.Model, metric history.Metric, held []history.Sample) error {
	e, err := interference.Evaluate(m, metric, held)
	if err != nil {
		return err
	}
	r.MeanError, r.MedianError, r.P95Error, r.Coverage = number(e.Mean), number(e.Median), number(e.P95), number(e.Coverage)
	r.Answered = number(math.NaN())
	if n := e.Cells + e.Silent; n > 0 {
		r.Answered = number(float64(e.Cells) / float64(n))
	}
	return nil
}

// save fits on everything and writes the files, each whole or not at all.
func (f *fitFlags) save(ctx context.Context, log io.Writer, samples []history.Sample, name string) error {
	if ctx.Err() != nil {
		return stopped("no model was written")
	}
	kind := f.kept()
	bar := newProgress(log, "fit "+kind+" on all", 100)
	m, err := interference.Fit(kind, samples, interference.Options{
		Seed: f.seed, PredictedOnly: f.predictedOnly, Parallel: parallel,
		Progress: func(done, total int) { bar.at(100*done/max(total, 1), "") },
	})
	bar.end()
	if err != nil {
		return fmt.Errorf("%s: %w", name, f.source.located(err))
	}
	files, err := f.files(m)
	if err != nil {
		return err
	}
	// All or none, though they may lie in different folders.
	staged, err := stage("", files)
	if err != nil {
		return err
	}
	if err := whole.Commit(staged...); err != nil {
		return err
	}
	for _, file := range files {
		fmt.Fprintf(log, "wrote %s: %s, %d bytes\n", file.name, kind, len(file.data))
		if file.name == f.out && len(file.data) > interference.MaxFileSize {
			fmt.Fprintf(log, "%s is larger than the %d bytes that a Kubernetes ConfigMap holds; --predicted-only leaves the measured values out of a neural or linear model\n",
				f.out, interference.MaxFileSize)
		}
	}
	return nil
}

// files is the model in the forms that were asked for.
func (f *fitFlags) files(m interference.Model) (files []outFile, err error) {
	if f.out != "" {
		var b bytes.Buffer
		if err := interference.Save(&b, m); err != nil {
			return nil, fmt.Errorf("--out %s: %w", f.out, err)
		}
		files = append(files, outFile{f.out, b.Bytes()})
	}
	if f.onnx != "" {
		model, notes, err := interference.ExportONNX(m)
		if err != nil {
			return nil, fmt.Errorf("--onnx %s: %w", f.onnx, err)
		}
		files = append(files, outFile{f.onnx, model}, outFile{f.onnx + ".json", notes})
	}
	return files, nil
}

func (f *fitFlags) write(w io.Writer, rows []fitRow) error {
	switch f.output {
	case "json":
		return writeJSON(w, rows)
	case "yaml":
		return writeYAML(w, rows)
	case "csv":
		return f.writeCSV(w, rows)
	}
	return f.writeTables(w, rows)
}

func (f *fitFlags) writeCSV(w io.Writer, rows []fitRow) error {
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, []string{
			r.Model, strconv.Itoa(r.Train), strconv.Itoa(r.HeldOut), strconv.FormatUint(r.Seed, 10),
			r.MeanError.exact(), r.MedianError.exact(), r.P95Error.exact(), r.Coverage.exact(), r.Answered.exact(), r.Seconds.exact(),
		})
	}
	return writeCSV(w, []string{
		"model", "train", "held_out", "seed", "mean_relative_error", "median_relative_error", "p95_relative_error",
		"coverage_90", "answered", "seconds",
	}, cells)
}

// writeTables prints the kinds side by side, then each by itself.
func (f *fitFlags) writeTables(w io.Writer, rows []fitRow) error {
	type place struct {
		train int
		model string
	}
	by := map[place][]fitRow{}
	var sizes []int
	for _, r := range rows {
		if !slices.Contains(sizes, r.Train) {
			sizes = append(sizes, r.Train)
		}
		by[place{r.Train, r.Model}] = append(by[place{r.Train, r.Model}], r)
	}
	percent := func(of func(fitRow) number) func(fitRow) number {
		return func(r fitRow) number { return 100 * of(r) }
	}
	mean := percent(func(r fitRow) number { return r.MeanError })
	header := []string{" train", " held out"}
	for _, m := range f.models {
		header = append(header, " "+m)
	}
	var side, each [][]string
	for _, size := range sizes {
		line := []string{strconv.Itoa(size), ""}
		for _, m := range f.models {
			of := by[place{size, m}]
			line[1] = strconv.Itoa(of[0].HeldOut)
			line = append(line, meanOf(of, mean, 2))
			each = append(each, []string{
				m, strconv.Itoa(size),
				meanOf(of, percent(func(r fitRow) number { return r.MedianError }), 2),
				meanOf(of, percent(func(r fitRow) number { return r.P95Error }), 1),
				meanOf(of, percent(func(r fitRow) number { return r.Coverage }), 1),
				meanOf(of, percent(func(r fitRow) number { return r.Answered }), 0),
				meanOf(of, func(r fitRow) number { return r.Seconds }, 1),
			})
		}
		side = append(side, line)
	}
	fmt.Fprintf(w, "mean relative error of the %s, %%, over held-out cells%s\n", f.metric, overSeeds(f.seeds))
	if err := writeTable(w, header, side); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return writeTable(w, []string{"model", " train", " median %", " p95 %", " in 90 % interval", " answered %", " seconds"}, each)
}

func overSeeds(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf("; mean +- standard deviation over %d seeds", n)
}

// meanOf is the mean, and with several seeds the standard deviation, in words.
func meanOf(rows []fitRow, of func(fitRow) number, decimals int) string {
	plans := make([]plan, len(rows))
	for i, r := range rows {
		plans[i].Share = of(r)
	}
	return spreadOf(plans, func(p plan) number { return p.Share }, decimals)
}
