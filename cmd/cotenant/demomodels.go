package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/report"
)

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
	points      []report.Point
}

// modelTrial is every kind of model fitted on half of the co-locations, drawn
// by each seed.
type modelTrial struct {
	train, held int // co-locations
	rows        []fitRow
	// belief is the neural model of the first seed, with what it learned from
	// as measured.
	belief interference.Model
}

func fitModels(ctx context.Context, log io.Writer, samples []history.Sample, f *demoFlags) (*modelTrial, error) {
	all := colocations(samples)
	t := &modelTrial{train: (all + 1) / 2}
	t.held = all - t.train
	kinds := interference.Kinds()
	bar := newProgress(log, "fit models", len(kinds)*f.seeds)
	defer bar.end()
	for i, kind := range kinds {
		for j := range f.seeds {
			if ctx.Err() != nil {
				return nil, errors.New("interrupted; no report was written")
			}
			seed := f.seed + uint64(j)
			bar.at(i*f.seeds+j, fmt.Sprintf("%s, seed %d", kind, seed))
			fit, held, err := interference.Split(samples, t.train, seed)
			if err != nil {
				return nil, err
			}
			begin := time.Now()
			m, err := interference.Fit(kind, fit, interference.Options{Seed: seed, Metrics: []history.Metric{history.Rate}})
			if err != nil {
				return nil, err
			}
			row := fitRow{Model: kind, Train: t.train, HeldOut: t.held, Seed: seed, Seconds: number(time.Since(begin).Seconds())}
			if err := row.compare(m, held); err != nil {
				return nil, err
			}
			if j == 0 {
				row.points = points(m, held)
				if kind == interference.KindNeural {
					t.belief = m
				}
			}
			t.rows = append(t.rows, row)
		}
	}
	return t, nil
}

func (r *fitRow) compare(m interference.Model, held []history.Sample) error {
	e, err := interference.Evaluate(m, history.Rate, held)
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

func colocations(samples []history.Sample) int {
	seen := map[string]bool{}
	for _, s := range samples {
		seen[s.Class+" "+s.Colocation.Key()] = true
	}
	return len(seen)
}

// points pairs each held-out cell with what the model says of it.
func points(m interference.Model, held []history.Sample) []report.Point {
	var out []report.Point
	for _, s := range history.Summarise(held).Samples {
		v, ok := s.Performance()
		if !ok || s.Metric != history.Rate || s.Colocation.Alone() {
			continue
		}
		row := m.Predict(s.Class, history.Rate, []cluster.Colocation{s.Colocation})[0]
		for i, w := range s.Colocation.Workloads() {
			if w == s.Workload && row[i].Known {
				out = append(out, report.Point{Colocation: s.Colocation, Workload: w, Measured: v, Predicted: row[i].Value})
			}
		}
	}
	return out
}

func (t *modelTrial) words() string {
	return fmt.Sprintf("Each model learned from %d co-locations drawn at random, each workload alone among them; the other %d were held out.", t.train, t.held)
}

// write prints a line a kind.
func (t *modelTrial) write(w io.Writer) error {
	fmt.Fprintf(w, "\nerror on %d co-locations held out, learned from %d; mean +- standard deviation over seeds\n", t.held, t.train)
	var rows [][]string
	for _, m := range t.report() {
		row := []string{m.Kind}
		for _, of := range []func(report.Run) float64{
			func(r report.Run) float64 { return 100 * r.Mean },
			func(r report.Run) float64 { return 100 * r.Median },
			func(r report.Run) float64 { return 100 * r.P95 },
			func(r report.Run) float64 { return 100 * r.Coverage },
		} {
			row = append(row, runText(m.Runs, of, 1))
		}
		rows = append(rows, append(row, runText(m.Runs, func(r report.Run) float64 { return r.Seconds }, 2)))
	}
	return writeTable(w, []string{"model", " error %", " median %", " p95 %", " in 90 % interval %", " seconds"}, rows)
}

func runText(runs []report.Run, of func(report.Run) float64, decimals int) string {
	values := make([]plan, len(runs))
	for i, r := range runs {
		values[i].Share = number(of(r))
	}
	return spreadOf(values, func(p plan) number { return p.Share }, decimals)
}

// report groups the rows by kind.
func (t *modelTrial) report() []report.Model {
	var out []report.Model
	for _, r := range t.rows {
		if len(out) == 0 || out[len(out)-1].Kind != r.Model {
			out = append(out, report.Model{Kind: r.Model, Points: r.points})
		}
		m := &out[len(out)-1]
		m.Runs = append(m.Runs, report.Run{
			Seed: r.Seed, Train: r.Train, HeldOut: r.HeldOut, Mean: float64(r.MeanError), Median: float64(r.MedianError), P95: float64(r.P95Error),
			Answered: float64(r.Answered), Coverage: float64(r.Coverage), Seconds: float64(r.Seconds),
		})
	}
	return out
}

// writeMeasured prints what was measured and the pairs.
func writeMeasured(w io.Writer, m report.Measured) error {
	fmt.Fprintf(w, "measured: %d co-locations", m.Colocations)
	if !m.From.IsZero() {
		fmt.Fprintf(w, ", %s", m.From.UTC().Format("2006-01-02"))
	}
	if !math.IsNaN(m.Spread) {
		fmt.Fprintf(w, "; repeats differ by %.1f %% (median standard deviation of a rate)", 100*m.Spread)
	}
	fmt.Fprintln(w)
	for _, c := range m.Classes {
		if c.Name != "" {
			fmt.Fprintf(w, "class %s: ", c.Name)
		}
		fmt.Fprintln(w, "performance (1 = alone) of the row beside one task of the column")
		header := []string{""}
		var rows [][]string
		for i, from := range c.Workloads {
			header = append(header, " "+from.Name)
			row := []string{from.Name}
			for _, cell := range c.Pairs[i] {
				row = append(row, number(cell.Value).text(2))
			}
			rows = append(rows, row)
		}
		if err := writeTable(w, header, rows); err != nil {
			return err
		}
		fmt.Fprint(w, "mean performance by tasks on the node: alone ")
		for k, s := range c.Sizes {
			if k > 0 {
				fmt.Fprint(w, ", "+strconv.Itoa(s.Tasks)+": ")
			}
			fmt.Fprint(w, number(s.All.Mean).text(2))
		}
		fmt.Fprintln(w)
	}
	return nil
}
