package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/report"
)

// modelTrial is every kind of model fitted on half of the co-locations, drawn
// by each seed.
type modelTrial struct {
	fit         fitFlags
	train, held int // co-locations
	rows        []fitRow
	points      map[string][]report.Point // by kind, of the first seed
	// belief is the neural model of the first seed, with what it learned from
	// as measured.
	belief interference.Model
}

func fitModels(ctx context.Context, log io.Writer, samples []history.Sample, f *demoFlags) (*modelTrial, error) {
	t := &modelTrial{points: map[string][]report.Point{}}
	t.fit = fitFlags{models: interference.Kinds(), metric: string(history.Rate), seed: f.seed, seeds: f.seeds}
	t.fit.keep = func(r *fitRow, m interference.Model, held []history.Sample) {
		if r.Seed != f.seed {
			return
		}
		t.train, t.held = r.Train, r.HeldOut
		t.points[r.Model] = points(m, held)
		if r.Model == interference.KindNeural {
			t.belief = m
		}
	}
	var err error
	t.rows, err = t.fit.evaluate(ctx, log, samples, []int{(colocations(samples) + 1) / 2})
	return t, err
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

// report groups the rows by kind.
func (t *modelTrial) report() []report.Model {
	var out []report.Model
	for _, kind := range t.fit.models {
		m := report.Model{Kind: kind, Points: t.points[kind]}
		for _, r := range t.rows {
			if r.Model == kind {
				m.Runs = append(m.Runs, report.Run{
					Seed: r.Seed, Train: r.Train, HeldOut: r.HeldOut, Mean: float64(r.MeanError), Median: float64(r.MedianError), P95: float64(r.P95Error),
					Answered: float64(r.Answered), Coverage: float64(r.Coverage), Seconds: float64(r.Seconds),
				})
			}
		}
		out = append(out, m)
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
	if !math.IsNaN(m.Noise) {
		fmt.Fprintf(w, "; the mean of a co-located rate is known to +- %.1f %%", 100*m.Noise)
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
