package interference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// The kinds of models.
const (
	KindTable  = "table"
	KindLinear = "linear"
	KindForest = "forest"
	KindNeural = "neural"
)

// Kinds lists the kinds that Fit knows.
func Kinds() []string { return []string{KindTable, KindLinear, KindForest, KindNeural} }

// Options of Fit. The zero value is the default.
type Options struct {
	// Seed of everything that is drawn; the same seed and samples give the same
	// model, byte for byte, on the same architecture.
	Seed uint64
	// Metrics to learn; all that the samples hold when empty. Each costs its own
	// training.
	Metrics []history.Metric
	// PredictedOnly turns off the default that what was measured overrides what
	// is predicted (see Override).
	PredictedOnly bool
	// Progress, where given, is told how many of the equal steps of training are
	// done. Calls come from whichever goroutine Parallel uses, one at a time.
	Progress func(done, total int)
	// Parallel, where given, runs f(0) ... f(n-1), perhaps at the same time, and
	// returns when all are done. The result does not depend on the order.
	Parallel func(n int, f func(i int))
}

// Fit learns a model of a kind from samples. Errors name the sample or
// co-location at fault: no samples (ErrNoSamples), an invalid one, one without
// a value alone to compare with, two that contradict each other.
func Fit(kind string, samples []history.Sample, o Options) (Model, error) {
	if !slices.Contains(Kinds(), kind) {
		return nil, fmt.Errorf("model %q is none of %s", kind, strings.Join(Kinds(), ", "))
	}
	d, err := gather(samples, o.Metrics)
	if err != nil {
		return nil, err
	}
	want := d.measured()
	var m Model
	switch kind {
	case KindTable:
		return table{d}, nil
	case KindLinear:
		m = fitLinear(d, want)
	case KindForest:
		m = fitLinear(d, want)
	case KindNeural:
		m = fitNeural(d, want, o)
	}
	if o.PredictedOnly {
		return m, nil
	}
	return override(m, d), nil
}

// measured lists the metrics that any sample holds.
func (d *dataset) measured() []int {
	var ms []int
	for m := range metrics {
		if slices.ContainsFunc(d.known, func(of [][]bool) bool { return slices.Contains(of[m], true) }) {
			ms = append(ms, m)
		}
	}
	return ms
}

// overridden is a model whose predictions give way to what was measured.
type overridden struct {
	Model
	measured table
}

// Override returns a model that answers like m, except where the samples hold
// a measurement of the very cell: there it answers the measurement.
func Override(m Model, samples []history.Sample) (Model, error) {
	d, err := gather(samples, nil)
	if err != nil {
		return nil, err
	}
	return override(m, d), nil
}

func override(m Model, d *dataset) Model {
	if o, ok := m.(overridden); ok {
		m = o.Model
	}
	return overridden{m, table{d}}
}

// Predict implements Model.
func (o overridden) Predict(class string, metric history.Metric, cs []cluster.Colocation) [][]Estimate {
	out := o.Model.Predict(class, metric, cs)
	for i, row := range o.measured.Predict(class, metric, cs) {
		for j, e := range row {
			if e.Known {
				out[i][j] = e
			}
		}
	}
	return out
}
