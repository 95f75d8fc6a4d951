package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// outcome is what a scenario reached.
type outcome struct {
	Scenario string `json:"scenario"`
	File     string `json:"file"`
	// Skipped says why it was not run; empty where it was.
	Skipped string `json:"skipped,omitempty"`
	// Error says why it failed other than by a bound.
	Error string `json:"error,omitempty"`
	// Metrics has a value a seed, also for those that no check bounds.
	Metrics map[string][]number `json:"metrics,omitempty"`
	Checks  []verdict           `json:"checks,omitempty"`
}

// verdict is one check, held against what was reached.
type verdict struct {
	Metric  string `json:"metric"`
	Bound   string `json:"bound"`
	Reached number `json:"reached"`
	Held    bool   `json:"held"`
}

// number is a float64 that JSON can hold: NaN and infinities are null.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

func floats(values []number) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}

// meanAndSpread is the mean and the sample standard deviation.
func meanAndSpread(values []float64) (mean, sd float64) {
	for _, v := range values {
		mean += v
	}
	mean /= float64(len(values))
	for _, v := range values {
		sd += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(sd / float64(max(1, len(values)-1)))
}

// judge fills in the checks of a scenario from its metrics.
func (o *outcome) judge(s *scenario) {
	for _, c := range s.Checks {
		values := floats(o.Metrics[c.Metric])
		if len(values) == 0 {
			o.Checks = append(o.Checks, verdict{Metric: c.Metric, Bound: c.bound(), Reached: number(math.NaN())})
			continue
		}
		o.Checks = append(o.Checks, verdict{c.Metric, c.bound(), number(c.statistic(values)), c.holds(values)})
	}
}

// failed tells whether the scenario ran and did not keep its bounds.
func (o *outcome) failed() bool {
	return o.Error != "" || slices.ContainsFunc(o.Checks, func(v verdict) bool { return !v.Held })
}

// printRow writes an outcome as rows of a table: one a metric, the bounded
// ones first, each with mean, spread, extremes, bound and verdict.
func printRow(w io.Writer, s *scenario, o *outcome) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer func() { _ = t.Flush() }() // a failed print has nobody left to be told
	switch {
	case o.Skipped != "":
		fmt.Fprintf(t, "%s\tskipped: %s\n", s.Name, o.Skipped)
		return
	case o.Error != "":
		fmt.Fprintf(t, "%s\tFAILED: %s\n", s.Name, o.Error)
		return
	}
	fmt.Fprintln(t, s.Name)
	bounded := map[string]bool{}
	for i, v := range o.Checks {
		bounded[v.Metric] = true
		word := "ok"
		if !v.Held {
			word = "MISSED"
		}
		m := s.Checks[i].Measured
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\twas %s +- %s (%s)\n", v.Metric, describe(floats(o.Metrics[v.Metric])), v.Bound, word,
			digits(m.Mean), digits(m.Spread), m.Date)
	}
	var rest []string
	for name := range o.Metrics {
		if !bounded[name] {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	for _, name := range rest {
		fmt.Fprintf(t, "  %s\t%s\t\t\t\n", name, describe(floats(o.Metrics[name])))
	}
}

// describe is mean +- spread [min, max], or the value where there is one.
func describe(values []float64) string {
	switch len(values) {
	case 0:
		return "none"
	case 1:
		return digits(values[0])
	}
	mean, sd := meanAndSpread(values)
	return fmt.Sprintf("%s +- %s [%s, %s] n=%d", digits(mean), digits(sd), digits(slices.Min(values)), digits(slices.Max(values)), len(values))
}

// digits writes a number so that a share shows four decimals and a count none.
func digits(v float64) string {
	if math.Abs(v) >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	s := fmt.Sprintf("%.4f", v)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}
