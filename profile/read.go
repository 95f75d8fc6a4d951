package profile

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cotenant/cotenant/history"
)

// Whose output a workload is read from.
const (
	FromDriver = "driver"
	FromServer = "server"
)

// Read says how rate and latencies stand in the output, line by line. A line
// that matches nothing is passed over.
type Read struct {
	From string `yaml:"from"`
	// Rate is required. With Each, every matching line means that many units
	// were finished, and the rate is counted over time; without, the first
	// group of Match is the rate itself.
	Rate Pattern `yaml:"rate"`
	// P50 and P99 are percentiles that the program computed itself.
	P50 Pattern `yaml:"p50"`
	P99 Pattern `yaml:"p99"`
	// Latency matches one latency a line; the percentiles are computed here.
	Latency Pattern `yaml:"latency"`
}

// Pattern finds a number in a line: the first group of Match, times Scale.
// A second group holds a unit suffix: ns, us, ms, s, m for times; k, M, G for
// rates.
type Pattern struct {
	Match string `yaml:"match"`
	// Scale turns the number into units/s or seconds; 0 means 1.
	Scale float64 `yaml:"scale"`
	// Each is the units that a matching line stands for (rate only).
	Each float64 `yaml:"each"`
	// Mean of several lines in a window: arithmetic (default; lines cover equal
	// times) or harmonic (lines cover equal amounts of work).
	Mean string `yaml:"mean"`
	// Unit is shown to people: requests/s.
	Unit string `yaml:"unit"`
	re   *regexp.Regexp
}

func (r *Read) compile() *fieldError {
	if r.Rate.Match == "" {
		return &fieldError{path: []any{"rate", "match"}, text: "empty; every workload has a rate"}
	}
	if r.Latency.Match != "" && (r.P50.Match != "" || r.P99.Match != "") {
		return &fieldError{path: []any{"latency"}, text: "given together with p50 or p99; use one way"}
	}
	for _, p := range []struct {
		name string
		*Pattern
	}{{"rate", &r.Rate}, {"p50", &r.P50}, {"p99", &r.P99}, {"latency", &r.Latency}} {
		if p.Match == "" {
			continue
		}
		var err error
		if p.re, err = regexp.Compile(p.Match); err != nil {
			return &fieldError{path: []any{p.name, "match"}, text: err.Error()}
		}
		if p.Scale == 0 {
			p.Scale = 1
		}
		switch {
		case p.Scale < 0 || p.Each < 0 || math.IsInf(p.Scale, 0) || math.IsNaN(p.Scale) || math.IsInf(p.Each, 0) || math.IsNaN(p.Each):
			return &fieldError{path: []any{p.name}, text: "scale and each must be positive and finite"}
		case p.name != "rate" && p.Each != 0:
			return &fieldError{path: []any{p.name, "each"}, text: "belongs to rate only"}
		case p.Each == 0 && (p.re.NumSubexp() < 1 || p.re.NumSubexp() > 2):
			return &fieldError{path: []any{p.name, "match"}, text: "needs one group for the number, and may have a second for its unit"}
		case p.Mean != "" && p.Mean != "arithmetic" && p.Mean != "harmonic":
			return &fieldError{path: []any{p.name, "mean"}, text: strconv.Quote(p.Mean) + " is none of arithmetic, harmonic"}
		}
	}
	return nil
}

var suffixes = map[string]float64{
	"": 1, "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "m": 60,
	"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9,
}

// value finds the pattern's number in a line. A number that is negative, not
// finite or of an unknown unit is no reading.
func (p *Pattern) value(line []byte) (float64, bool) {
	if p.re == nil {
		return 0, false
	}
	m := p.re.FindSubmatch(line)
	if m == nil {
		return 0, false
	}
	if p.Each > 0 {
		return p.Each, true
	}
	v, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		return 0, false
	}
	scale := p.Scale
	if len(m) > 2 {
		unit, ok := suffixes[string(m[2])]
		if !ok {
			return 0, false
		}
		scale *= unit
	}
	if v *= scale; v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false
	}
	return v, true
}

// reading is one number with the time at which its line arrived.
type reading struct {
	at    time.Time
	value float64
}

// reader collects the readings of one task's output. Safe for concurrent use.
type reader struct {
	read                    *Read
	mu                      sync.Mutex
	rate, p50, p99, latency []reading
}

// line takes one line of output that arrived at a time.
func (r *reader) line(at time.Time, text []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range []struct {
		p  *Pattern
		to *[]reading
	}{{&r.read.Rate, &r.rate}, {&r.read.P50, &r.p50}, {&r.read.P99, &r.p99}, {&r.read.Latency, &r.latency}} {
		if v, ok := x.p.value(text); ok {
			*x.to = append(*x.to, reading{at, v})
		}
	}
}

// count is the number of rate readings so far.
func (r *reader) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.rate)
}

// window computes the metrics over the lines that arrived in (from, to]; ok is
// false while a metric lacks readings.
func (r *reader) window(from, to time.Time) (values map[history.Metric]float64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	values = map[history.Metric]float64{}
	rate, ok := r.rateIn(from, to)
	if !ok || rate <= 0 || math.IsInf(rate, 0) {
		return nil, false
	}
	values[history.Rate] = rate
	for _, x := range []struct {
		metric history.Metric
		p      *Pattern
		all    []reading
		q      float64
	}{
		{history.P50, &r.read.P50, r.p50, 0},
		{history.P99, &r.read.P99, r.p99, 0},
		{history.P50, &r.read.Latency, r.latency, .50},
		{history.P99, &r.read.Latency, r.latency, .99},
	} {
		if x.p.re == nil {
			continue
		}
		in := between(x.all, from, to)
		if len(in) == 0 {
			return nil, false
		}
		if x.q == 0 {
			v := mean(in, x.p.Mean)
			if math.IsInf(v, 0) {
				return nil, false
			}
			values[x.metric] = v
			continue
		}
		sorted := make([]float64, len(in))
		for i, v := range in {
			sorted[i] = v.value
		}
		slices.Sort(sorted)
		values[x.metric] = sorted[int(x.q*float64(len(sorted)-1)+.5)]
	}
	return values, true
}

func (r *reader) rateIn(from, to time.Time) (float64, bool) {
	in := between(r.rate, from, to)
	if len(in) == 0 {
		return 0, false
	}
	if r.read.Rate.Each == 0 {
		return mean(in, r.read.Rate.Mean), true
	}
	// The clock runs from the last line before the window, or from the first
	// inside it, whose own units then don't count.
	var start time.Time
	if before := len(between(r.rate, time.Time{}, from)); before > 0 {
		start = r.rate[before-1].at
	} else {
		start, in = in[0].at, in[1:]
	}
	if len(in) == 0 {
		return 0, false
	}
	units := 0.0
	for _, x := range in {
		units += x.value
	}
	span := in[len(in)-1].at.Sub(start).Seconds()
	if span <= 0 {
		return 0, false
	}
	return units / span, true
}

// between selects the readings in (from, to]; all is in order of time.
func between(all []reading, from, to time.Time) []reading {
	after := func(t time.Time) int {
		i, _ := slices.BinarySearchFunc(all, t, func(r reading, t time.Time) int {
			if r.at.After(t) {
				return 1
			}
			return -1
		})
		return i
	}
	return all[after(from):after(to)]
}

func mean(in []reading, kind string) float64 {
	sum := 0.0
	for _, x := range in {
		if kind == "harmonic" {
			sum += 1 / x.value
		} else {
			sum += x.value
		}
	}
	if kind == "harmonic" {
		return float64(len(in)) / sum
	}
	return sum / float64(len(in))
}
