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
	// Steps of training for each network of a neural model; 0 chooses by the
	// number of co-locations. Fewer are quicker and less accurate.
	Steps int
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

func (o Options) parallel(n int, f func(i int)) {
	if o.Parallel != nil {
		o.Parallel(n, f)
		return
	}
	for i := range n {
		f(i)
	}
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
	f := &fitted{space: d.space, data: d, seed: o.Seed, fingerprint: d.fingerprint()}
	switch kind {
	case KindTable:
		f.core = table{d}
	case KindLinear:
		f.core = fitLinear(d, d.measured())
	case KindForest:
		f.core = fitForest(d, o)
	case KindNeural:
		f.core = fitNeural(d, d.measured(), o)
	}
	f.override = kind != KindTable && !o.PredictedOnly
	return f, nil
}

// core is one kind of model, in indices instead of names. answer fills the
// estimates of co-locations of known workloads.
type core interface {
	kind() string
	answer(class, metric int, rows [][]member, out [][]Estimate)
}

// fitted is what Fit and Load return: a core, what it was fitted on, and
// whether that overrides what the core predicts.
type fitted struct {
	space
	core
	data        *dataset // nil where a file holds no measurements
	override    bool
	seed        uint64
	fingerprint string // of the data
}

// Kind implements Model.
func (f *fitted) Kind() string { return f.core.kind() }

// Predict implements Model.
func (f *fitted) Predict(class string, metric history.Metric, cs []cluster.Colocation) [][]Estimate {
	return f.space.predict(class, metric, cs, func(c, m int, rows [][]member, out [][]Estimate) {
		f.core.answer(c, m, rows, out)
		if f.override {
			table{f.data}.answer(c, m, rows, out)
		}
	})
}

// overridden is a model whose answers give way to the measurements of another
// set of samples.
type overridden struct {
	Model
	measured Model
}

// Override returns a model that answers like m, except where the samples hold
// a measurement of the very cell: there it answers the measurement. Fit does
// this with what it is given; Override serves measurements made since.
func Override(m Model, samples []history.Sample) (Model, error) {
	measured, err := Fit(KindTable, samples, Options{})
	if err != nil {
		return nil, err
	}
	return overridden{m, measured}, nil
}

// Most implements what interference.Most asks for.
func (o overridden) Most(class string) int {
	return max(Most(o.Model, class), Most(o.measured, class))
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
