package history

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cotenant/cotenant/cluster"
)

// Metric names what a sample measured.
type Metric string

// The metrics a sample can carry. Rates are higher-is-better in any unit the
// workload counts (requests/s, samples/s); latencies are in seconds.
const (
	Rate Metric = "rate"
	P50  Metric = "p50"
	P99  Metric = "p99"
)

// Scope is the extent of hardware whose tasks the co-location lists.
type Scope string

// The scopes of a co-location, from the narrowest.
const (
	ScopeDevice Scope = "device"
	ScopeNode   Scope = "node"
	ScopeRack   Scope = "rack"
)

// Sample is one measurement of one workload in one co-location. The JSON
// form, one object a line, is the project's own file format (".jsonl").
type Sample struct {
	// Source says who measured: "profile", "metis", a file, a job's balancer.
	Source string `json:"source,omitempty"`
	// Start and End bound the time window; both zero where unknown.
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`
	// Class is the class of node or device; "" is the only class there is.
	Class string `json:"class,omitempty"`
	// Scope defaults to ScopeNode when empty.
	Scope Scope `json:"scope,omitempty"`
	// Colocation lists all tasks present, the measured one among them.
	Colocation cluster.Colocation `json:"colocation"`
	// Workload is the measured one; it is in Colocation.
	Workload string       `json:"workload"`
	Role     cluster.Role `json:"role,omitempty"`
	// Job and Span name the job the task belonged to and the extent over which
	// that job's tasks were spread, where there is one.
	Job  string       `json:"job,omitempty"`
	Span cluster.Span `json:"span,omitempty"`
	// Workers is how many workers the job of the measured task had; 0 means 1.
	// Where the co-location lists one of them, standing for all, Value is the
	// rate of the whole job.
	Workers int `json:"workers,omitempty"`
	// BatchSize is the task's training batch size; 0 where it has none.
	BatchSize int `json:"batch_size,omitempty"`
	// Metric, Value and Alone: what was measured, together and alone on the same
	// class, in the same unit. With several tasks of the workload in the
	// co-location, Value is the mean over them. Alone is 0 where unknown.
	Metric Metric  `json:"metric"`
	Value  float64 `json:"value"`
	Alone  float64 `json:"alone,omitempty"`
	// Repeats is how many measurements Value is the mean of (0 means 1);
	// Spread is their standard deviation, in Value's unit.
	Repeats int     `json:"repeats,omitempty"`
	Spread  float64 `json:"spread,omitempty"`
}

// Performance is Value/Alone for a rate: 1 = alone. For a latency it is the
// same ratio, where above 1 means slower. ok is false where Alone is unknown.
func (s Sample) Performance() (v float64, ok bool) {
	if s.Alone == 0 {
		return 0, false
	}
	return s.Value / s.Alone, true
}

// What no measurement reaches: beyond it a unit was taken for another, or a
// digit slipped, and the mean of any plan with it in would be nonsense.
const (
	// MostRate bounds Value/Alone of a rate. Neighbours can help, such as a cache
	// its client, but no program waits alone for 999 of 1000 parts of its time.
	MostRate = 1000
	// MostLatency bounds Value/Alone of a latency, which a full queue can raise
	// from 100 microseconds to the 100 seconds of a timeout.
	MostLatency = 1e6
	// mostValue bounds Value and Alone. It is more than any unit counts to, and its
	// square is still a number.
	mostValue = 1e30
)

// Validate reports the first field that cannot be right.
func (s Sample) Validate() error {
	switch {
	case s.Workload == "":
		return fmt.Errorf("workload: empty; name the measured workload")
	case len(s.Colocation) == 0:
		return fmt.Errorf("colocation: empty; list the tasks present, %q among them", s.Workload)
	case s.Colocation[s.Workload] < 1:
		return fmt.Errorf("colocation: %q does not contain the measured workload %q", s.Colocation.Key(), s.Workload)
	case s.Metric != Rate && s.Metric != P50 && s.Metric != P99:
		return fmt.Errorf("metric: %q is none of rate, p50, p99", s.Metric)
	case s.Scope != "" && s.Scope != ScopeDevice && s.Scope != ScopeNode && s.Scope != ScopeRack:
		return fmt.Errorf("scope: %q is none of device, node, rack", s.Scope)
	case s.Workers < 0:
		return fmt.Errorf("workers: %d is negative", s.Workers)
	case s.BatchSize < 0:
		return fmt.Errorf("batch_size: %d is negative", s.BatchSize)
	case s.Repeats < 0:
		return fmt.Errorf("repeats: %d is negative", s.Repeats)
	case !s.End.IsZero() && s.End.Before(s.Start):
		return fmt.Errorf("end: %s is before start %s", s.End.Format(time.RFC3339), s.Start.Format(time.RFC3339))
	}
	for w, n := range s.Colocation {
		if n < 1 {
			return fmt.Errorf("colocation: %d tasks of workload %q; counts are positive", n, w)
		}
		if err := checkName(w); err != nil {
			return fmt.Errorf("colocation: workload %w", err)
		}
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"value", s.Value}, {"alone", s.Alone}, {"spread", s.Spread}} {
		if math.IsNaN(f.value) || math.IsInf(f.value, 0) || f.value < 0 {
			return fmt.Errorf("%s: %g; must be finite and not negative", f.name, f.value)
		}
		if f.name != "spread" && f.value > mostValue {
			return fmt.Errorf("%s: %g is more than anything counts to, %g; correct it", f.name, f.value, mostValue)
		}
	}
	return s.CheckAgainst(s.Alone)
}

// CheckAgainst reports a value that can't be beside what was measured alone,
// here or in another sample; 0 says that this is unknown.
func (s Sample) CheckAgainst(alone float64) error {
	most := float64(MostRate)
	if s.Metric != Rate {
		most = MostLatency
	}
	switch {
	case alone == 0, s.Metric != Rate && s.Value == 0: // a latency of 0 was not measured
	case s.Colocation.Alone() && !s.elsewhere() && apart(min(s.Value, alone), max(s.Value, alone), s.Spread):
		return fmt.Errorf("value: %g of a single task, where its %s alone is given as %g: both are what it does alone, and must be the same; correct one, or leave alone out",
			s.Value, s.Metric, alone)
	case s.Value/alone > most:
		return fmt.Errorf("value: %g is %.4g times the %s alone, %g; more than %g times is a mistake, perhaps of the unit: correct one of them",
			s.Value, s.Value/alone, s.Metric, alone, most)
	}
	return nil
}

// elsewhere tells that tasks in other places set the value, too: a worker alone
// on its node waits for those on others.
func (s Sample) elsewhere() bool {
	return s.Scope == ScopeRack || s.Span == cluster.SpanRack || s.Span == cluster.SpanApart || s.Workers > 1
}

// checkName refuses the names that would make a co-location's key ambiguous
// ("a+b", "a*2") or break the line of a file.
func checkName(name string) error {
	if name == "" {
		return errors.New("name is empty")
	}
	if name != strings.TrimSpace(name) {
		return fmt.Errorf("%q: name begins or ends with a space; rename the workload", name)
	}
	for _, r := range name {
		if r == '+' || r == '*' || unicode.IsControl(r) || r == utf8.RuneError {
			return fmt.Errorf("%q: name contains %q; rename the workload", name, r)
		}
	}
	return nil
}

// Store keeps samples. Implementations: Memory here, SQLite in sqlstore.
type Store interface {
	// Append adds samples in order; none is kept if any is invalid.
	Append(samples ...Sample) error
	// All returns every sample in the order of appending.
	All() ([]Sample, error)
}

// Memory is a Store that lives and dies with the process. It is not safe for
// concurrent use.
type Memory struct{ samples []Sample }

// Append validates and adds samples; on an error none of them is kept.
func (m *Memory) Append(samples ...Sample) error {
	for i, s := range samples {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("sample %d: %w", i, err)
		}
	}
	m.samples = append(m.samples, samples...)
	return nil
}

// All returns a copy of what was appended.
func (m *Memory) All() ([]Sample, error) { return append([]Sample(nil), m.samples...), nil }
