package main

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/profile"
)

// profileRow is a cell in -o json: a sample and what it means.
type profileRow struct {
	history.Sample
	// Performance is value / alone and its standard error; null where the rate
	// alone is not on record.
	Performance number `json:"performance"`
	Error       number `json:"performance_error"`
	// WithinNoise: the performance differs from 1 by less than two standard errors.
	WithinNoise bool `json:"within_noise"`
}

func (f *profileFlags) print(w io.Writer, raw []history.Sample) error {
	var rows []profileRow
	for _, c := range profile.Cells(history.Aggregate(raw)) {
		r := profileRow{c.Sample, number(c.Performance), number(c.Error), c.WithinNoise}
		if c.Alone == 0 {
			r.Performance, r.Error = number(math.NaN()), number(math.NaN())
		}
		rows = append(rows, r)
	}
	switch f.output {
	case "json":
		return writeJSON(w, rows)
	case "yaml":
		return writeYAML(w, rows)
	}
	header := []string{"colocation", "workload", "metric", " value", " spread", " repeats", " performance", " error", "note"}
	var table [][]string
	for _, r := range rows {
		note := ""
		if r.WithinNoise && !r.Colocation.Alone() {
			note = "within noise"
		}
		if f.output == "csv" {
			table = append(table, []string{
				r.Colocation.Key(), r.Workload, string(r.Metric), number(r.Value).exact(), number(r.Spread).exact(),
				strconv.Itoa(r.Repeats), r.Performance.exact(), r.Error.exact(), note,
			})
			continue
		}
		table = append(table, []string{
			r.Colocation.Key(), r.Workload, string(r.Metric), fmt.Sprintf("%.4g", r.Value), percent(r.Spread, r.Value),
			strconv.Itoa(r.Repeats), r.Performance.text(3), r.Error.text(3), note,
		})
	}
	if f.output == "csv" {
		for i := range header {
			header[i] = trimmed(header[i])
		}
		return writeCSV(w, header, table)
	}
	if err := writeTable(w, header, table); err != nil {
		return err
	}
	fmt.Fprintln(w)
	table = nil
	for _, n := range profile.NoiseOf(raw) {
		table = append(table, []string{
			n.Workload, string(n.Metric), fmt.Sprintf("%.4g", n.Alone), strconv.Itoa(n.Repeats),
			percent(n.Spread, 1), fmt.Sprintf("%+.1f%%", 100*n.Drift), percent(n.Together, 1),
		})
	}
	return writeTable(w, []string{"noise of", "metric", " alone", " repeats", " spread alone", " drift", " spread together"}, table)
}

// trimmed is a header without writeTable's mark for numbers.
func trimmed(s string) string {
	if s[0] == ' ' {
		return s[1:]
	}
	return s
}

func percent(part, whole float64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*part/whole)
}

// checkRow is a re-measured cell in -o json.
type checkRow struct {
	profile.Check
	// Tolerance is null where one repeat alone states no spread.
	Tolerance number `json:"tolerance"`
}

func (f *profileFlags) printChecks(w io.Writer, checks []profile.Check) error {
	outside := 0
	var rows []checkRow
	for _, c := range checks {
		if !c.Within {
			outside++
		}
		rows = append(rows, checkRow{c, number(c.Tolerance)})
	}
	allowed := profile.Allowed(len(checks))
	var err error
	switch f.output {
	case "json":
		err = writeJSON(w, rows)
	case "yaml":
		err = writeYAML(w, rows)
	default:
		err = f.printCheckTable(w, checks)
		if err == nil && f.output == "table" {
			_, err = fmt.Fprintf(w, "\n%d of %d cells outside; chance allows %d\n", outside, len(checks), allowed)
		}
	}
	if err != nil {
		return err
	}
	if outside > 0 && outside <= allowed {
		return &outsideError{fmt.Sprintf("verify: %d of %d cells lie outside their stated spread; chance allows %d, so measure again before you doubt the record", outside, len(checks), allowed)}
	}
	if outside > allowed {
		return fmt.Errorf("verify: %d of %d cells lie outside their stated spread, more than the %d that chance allows: the machine, its load or the programs changed; measure again", outside, len(checks), allowed)
	}
	return nil
}

func (f *profileFlags) printCheckTable(w io.Writer, checks []profile.Check) error {
	header := []string{"colocation", "workload", "metric", " recorded", " spread", " repeats", " now", " difference", " tolerance", "verdict"}
	var table [][]string
	for _, c := range checks {
		verdict := "within"
		if !c.Within {
			verdict = "OUTSIDE"
		}
		tolerance := percent(c.Tolerance, c.Recorded)
		if math.IsInf(c.Tolerance, 1) {
			tolerance = "-"
		}
		table = append(table, []string{
			c.Colocation.Key(), c.Workload, string(c.Metric), fmt.Sprintf("%.4g", c.Recorded), percent(c.Spread, c.Recorded), strconv.Itoa(c.Repeats),
			fmt.Sprintf("%.4g", c.Now), fmt.Sprintf("%+.1f%%", 100*(c.Now/c.Recorded-1)), tolerance, verdict,
		})
	}
	if f.output == "csv" {
		for i := range header {
			header[i] = trimmed(header[i])
		}
		return writeCSV(w, header, table)
	}
	return writeTable(w, header, table)
}
