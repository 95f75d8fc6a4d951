package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func (d *dynamic) write(cmd *cobra.Command, form string, runs []*servicesRun) error {
	w := cmd.OutOrStdout()
	rows := d.rows(runs)
	switch form {
	case "json":
		return writeJSON(w, rows)
	case "yaml":
		return writeYAML(w, rows)
	case "csv":
		header, cells := servicesCells(rows)
		return writeCSV(w, header, cells)
	}
	return d.writeTable(w, rows)
}

func servicesCells(rows []servicesRow) (header []string, cells [][]string) {
	header = []string{
		"policy", "seed", "nodes", "slots", "load", "performance", "performance_wanted", "value", "bound", "bound_on", "proven", "share", "share_wanted",
		"share_replanned", "mean_running", "mean_waiting", "most_waiting", "tasks_arrived", "tasks_waited", "mean_wait_s", "max_wait_s",
		"decisions", "placed", "moved", "failures", "displaced", "skewed", "violations", "seconds", "error",
	}
	for _, r := range rows {
		cells = append(cells, []string{
			r.Policy, strconv.FormatUint(r.Seed, 10), strconv.Itoa(r.Nodes), strconv.Itoa(r.Slots), number(r.Load).exact(),
			r.Performance.exact(), r.Wanted.exact(), r.Value.exact(), r.Bound.exact(), r.BoundOn, strconv.FormatBool(r.Proven), r.Share.exact(), r.Served.exact(),
			r.Replanned.exact(), r.Running.exact(), r.Waiting.exact(), strconv.Itoa(r.MostWaiting), strconv.Itoa(r.Arrived), strconv.Itoa(r.Waited),
			r.MeanWait.exact(), r.MaxWait.exact(), strconv.Itoa(r.Decisions), strconv.Itoa(r.Placed), strconv.Itoa(r.Moved),
			strconv.Itoa(r.Failures), strconv.Itoa(r.Displaced), r.Skewed.exact(), strconv.Itoa(r.Violations), r.SecondsPlacing.exact(), r.Error,
		})
	}
	if len(rows) > 0 && rows[0].Traffic != nil {
		header = append(header, "traffic")
		for i := range cells {
			cells[i] = append(cells[i], rows[i].Traffic.exact())
		}
	}
	return header, cells
}

// writeTable holds every policy against greedy, seed by seed.
func (d *dynamic) writeTable(w io.Writer, rows []servicesRow) error {
	header := []string{
		"policy", " of the bound", " points to " + heldAgainst, " +-", " served", " points", " +-", " performance", " waiting", " longest wait", " ms a decision",
	}
	if d.source.truth == nil {
		header[1] += " (of the model)"
	}
	counted := d.config.Objective.Traffic != 0
	if counted {
		header = append(header, " traffic")
	}
	n := len(d.seeds)
	against := map[uint64]*servicesRow{}
	for i := range rows {
		if rows[i].Policy == heldAgainst && rows[i].Error == "" {
			against[rows[i].Seed] = &rows[i]
		}
	}
	var cells [][]string
	var replanned []float64
	unproven, moved, displaced := 0, 0, 0
	to := 0
	for from := 0; from < len(rows); from = to {
		for to < len(rows) && rows[to].Policy == rows[from].Policy {
			to++
		}
		var share, points, served, servedPoints, performance, waiting, traffic []float64
		longest, seconds, decisions, failed := 0.0, 0.0, 0, false
		for i := from; i < to; i++ {
			r := &rows[i]
			if r.Error != "" {
				failed = true
				continue
			}
			share, served = append(share, float64(r.Share)), append(served, float64(r.Served))
			performance, waiting = append(performance, float64(r.Performance)), append(waiting, float64(r.Waiting))
			if counted {
				traffic = append(traffic, float64(*r.Traffic))
			}
			longest = max(longest, float64(r.MaxWait))
			seconds += float64(r.SecondsPlacing)
			decisions += r.Decisions
			moved += r.Moved
			displaced += r.Displaced
			if !r.Proven {
				unproven++
			}
			if g := against[r.Seed]; g != nil {
				points = append(points, 100*float64(r.Share-g.Share))
				servedPoints = append(servedPoints, 100*float64(r.Served-g.Served))
			}
			if r.Policy == heldAgainst && r.Replanned.known() {
				replanned = append(replanned, float64(r.Replanned))
			}
		}
		if failed {
			cells = append(cells, append([]string{rows[from].Policy, "failed"}, make([]string, len(header)-2)...))
			continue
		}
		mean := func(v []float64, decimals int) string { m, _ := meanError(v); return number(m).text(decimals) }
		differ := func(v []float64) (string, string) {
			m, e := meanError(v)
			if rows[from].Policy == heldAgainst || !number(m).known() {
				return "-", "-"
			}
			return fmt.Sprintf("%+.2f", m), number(e).text(2)
		}
		p, pe := differ(points)
		s, se := differ(servedPoints)
		cells = append(cells, []string{
			rows[from].Policy, mean(share, 4), p, pe, mean(served, 4), s, se, mean(performance, 4), mean(waiting, 2), durationText(longest),
			number(1000 * seconds / float64(max(1, decisions))).text(2),
		})
		if counted {
			cells[len(cells)-1] = append(cells[len(cells)-1], mean(traffic, 4))
		}
	}
	if len(replanned) > 0 {
		m, _ := meanError(replanned)
		row := make([]string, len(header))
		row[0], row[1] = "(re-planned by "+d.replan.text+")", number(m).text(4)
		cells = append(cells, row)
	}
	if err := writeTable(w, header, cells); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d nodes, %d slots, load %g; ", len(d.spec.Nodes), d.stream.Capacity, d.stream.Load)
	if n > 1 {
		fmt.Fprintf(&b, "seeds %d to %d; +- is the standard error over seeds, paired with %s.\n", d.seeds[0], d.seeds[n-1], heldAgainst)
	} else {
		fmt.Fprintf(&b, "seed %d.\n", d.seeds[0])
	}
	if all := len(d.specs) * n; len(rows) < all {
		fmt.Fprintf(&b, "Interrupted: of %d of %d runs; a mean is over the seeds that finished.\n", len(rows), all)
	}
	if unproven > 0 {
		fmt.Fprintf(&b, "The bound is not proven in %d of %d runs: too many co-locations to look at all.\n", unproven, len(rows))
	}
	if moved > 0 {
		fmt.Fprintf(&b, "Tasks moved, over all runs: %d.\n", moved)
	}
	if displaced > 0 {
		fmt.Fprintf(&b, "Tasks that a failed node put out, over all runs: %d.\n", displaced)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// durationText is a time in seconds as people write it.
func durationText(seconds float64) string {
	switch {
	case seconds == 0:
		return "0"
	case seconds < 120:
		return number(seconds).text(1) + " s"
	case seconds < 7200:
		return number(seconds/60).text(1) + " min"
	}
	return number(seconds/3600).text(1) + " h"
}

// meanError is the mean and its standard error: NaN without values, the latter
// also with one.
func meanError(values []float64) (mean, standard float64) {
	n := float64(len(values))
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	for _, v := range values {
		mean += v / n
	}
	if n == 1 {
		return mean, math.NaN()
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(squares / (n - 1) / n)
}

// servicesFiles are what --out gets.
func servicesFiles(d *dynamic, runs []*servicesRun) ([]outFile, error) {
	header, cells := servicesCells(d.rows(runs))
	all, err := csvFile("runs.csv", header, cells)
	if err != nil {
		return nil, err
	}
	var lines [][]string
	var decisions bytes.Buffer
	decisions.WriteString(strings.Join(decisionHeader, ",") + "\n")
	for _, r := range runs {
		decisions.Write(r.decisions.Bytes())
		if r.kept != nil {
			lines = append(lines, r.kept.moments...)
			continue
		}
		if r.err != nil {
			continue
		}
		for i := range r.result.Samples {
			s, at := &r.result.Samples[i], r.verdict.At[i]
			down := make([]string, len(s.Down))
			for k, n := range s.Down {
				down[k] = d.spec.Nodes[n].Name
			}
			lines = append(lines, []string{
				r.policy, strconv.FormatUint(r.seed, 10), strconv.FormatFloat(s.At.Seconds(), 'g', -1, 64), strconv.Itoa(s.Running), strconv.Itoa(s.Waiting),
				number(s.Sum).exact(), number(s.Worst).exact(), number(at.Bound).exact(), number(at.Replanned).exact(), strings.Join(down, ";"),
			})
		}
	}
	moments, err := csvFile("moments.csv", []string{"policy", "seed", "time_s", "running", "waiting", "value", "worst", "bound", "replanned", "down"}, lines)
	if err != nil {
		return nil, err
	}
	return []outFile{all, moments, {"decisions.csv", decisions.Bytes()}}, nil
}
