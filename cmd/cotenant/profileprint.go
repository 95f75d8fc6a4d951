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
	// Spread is null where one repeat states none.
	Spread number `json:"spread"`
	// Performance is value / alone and its standard error; null where the rate
	// alone is not on record, the error also where no spread is.
	Performance number `json:"performance"`
	Error       number `json:"performance_error"`
	// WithinNoise: the performance differs from 1 by less than two standard
	// errors; null where those are unknown.
	WithinNoise *bool `json:"within_noise"`
}

func (f *profileFlags) print(w io.Writer, raw []history.Sample) error {
	var rows []profileRow
	for _, c := range profile.Cells(history.Aggregate(raw)) {
		r := profileRow{c.Sample, number(c.Spread), number(c.Performance), number(c.Error), nil}
		if !profile.States(c.Sample) {
			r.Spread = number(math.NaN())
		}
		if c.Alone == 0 {
			r.Performance, r.Error = number(math.NaN()), number(math.NaN())
		}
		if r.Error.known() {
			r.WithinNoise = &c.WithinNoise
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
		if r.WithinNoise != nil && *r.WithinNoise && !r.Colocation.Alone() {
			note = "within noise"
		}
		if f.output == "csv" {
			table = append(table, []string{
				r.Colocation.Key(), r.Workload, string(r.Metric), number(r.Value).exact(), r.Spread.exact(),
				strconv.Itoa(r.Repeats), r.Performance.exact(), r.Error.exact(), note,
			})
			continue
		}
		table = append(table, []string{
			r.Colocation.Key(), r.Workload, string(r.Metric), fmt.Sprintf("%.4g", r.Value), percent(float64(r.Spread), r.Value),
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
			percent(n.Spread, 1), change(n.Drift), percent(n.Together, 1),
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
	if whole == 0 || !number(part).known() {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*part/whole)
}

// change is a relative difference with its sign.
func change(by float64) string {
	if !number(by).known() {
		return "-"
	}
	return fmt.Sprintf("%+.1f%%", 100*by)
}

// checkRow is a re-measured cell in -o json.
type checkRow struct {
	profile.Check
	// All three are null where no spread is known.
	Spread    number `json:"spread"`
	Tolerance number `json:"tolerance"`
	Within    *bool  `json:"within"`
}

func checkRowOf(c profile.Check) checkRow {
	r := checkRow{c, number(c.Spread), number(c.Tolerance), &c.Within}
	if c.Unknown {
		r.Spread, r.Tolerance, r.Within = number(math.NaN()), number(math.NaN()), nil
	}
	return r
}

func (f *profileFlags) printChecks(w io.Writer, checks []profile.Check) error {
	outside, unknown := 0, 0
	var rows []checkRow
	for _, c := range checks {
		switch {
		case c.Unknown:
			unknown++
		case !c.Within:
			outside++
		}
		rows = append(rows, checkRowOf(c))
	}
	judged := len(checks) - unknown
	allowed := profile.Allowed(judged)
	var err error
	switch f.output {
	case "json":
		err = writeJSON(w, rows)
	case "yaml":
		err = writeYAML(w, rows)
	default:
		err = f.printCheckTable(w, rows)
		if err == nil && f.output == "table" {
			text := fmt.Sprintf("%d of %d cells outside; chance allows %d", outside, judged, allowed)
			if unknown > 0 {
				text += fmt.Sprintf("; %d more could not be judged, as nothing was repeated that would tell their spread", unknown)
			}
			_, err = fmt.Fprintf(w, "\n%s\n", text)
		}
	}
	if err != nil {
		return err
	}
	if judged == 0 && unknown > 0 {
		return fmt.Errorf("verify: none of %d cells could be judged: the record repeats nothing that would tell their spread; profile with --repeats 2 or more", unknown)
	}
	if outside > 0 && outside <= allowed {
		return &outsideError{fmt.Sprintf("verify: %d of %d cells lie outside their stated spread; chance allows %d, so measure again before you doubt the record", outside, judged, allowed)}
	}
	if outside > allowed {
		return fmt.Errorf("verify: %d of %d cells lie outside their stated spread, more than the %d that chance allows: the machine, its load or the programs changed; measure again", outside, judged, allowed)
	}
	return nil
}

func (f *profileFlags) printCheckTable(w io.Writer, rows []checkRow) error {
	header := []string{"colocation", "workload", "metric", " recorded", " spread", " repeats", " now", " difference", " tolerance", "verdict"}
	var table [][]string
	for _, c := range rows {
		verdict := "within"
		switch {
		case c.Unknown:
			verdict = "spread unknown"
		case !*c.Within:
			verdict = "OUTSIDE"
		}
		spread := percent(float64(c.Spread), c.Recorded)
		if c.Borrowed {
			spread = "(" + spread + ")" // not the cell's own
		}
		table = append(table, []string{
			c.Colocation.Key(), c.Workload, string(c.Metric), fmt.Sprintf("%.4g", c.Recorded), spread, strconv.Itoa(c.Repeats),
			fmt.Sprintf("%.4g", c.Now), change(c.Now/c.Recorded - 1), percent(float64(c.Tolerance), c.Recorded), verdict,
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
