package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
)

// fitMetrics are what a fit can be held to. Errors are relative, over the
// held-out cells (a workload in a co-location) of at least two tasks.
//
//	error         mean relative error
//	median_error  median relative error
//	p95_error     95th percentile of the relative error
//	coverage      share of held-out values inside the 90 % interval
//	coverage_50   the same of the 50 % interval; so coverage_80, _95 and _99
//	silent        held-out cells that the model does not answer
//	seconds       training alone
//	peak_mib      most memory that the process held meanwhile; 0 where unknown
var fitMetrics = []string{"error", "median_error", "p95_error", "coverage", "coverage_50", "coverage_80", "coverage_95", "coverage_99", "silent", "seconds", "peak_mib"}

// fitted is a model of a part of the truth that the seed draws. What was
// measured overrides what is predicted.
func (b *bench) fitted(m *modelSpec, t *truth, slots int, seed uint64) (interference.Model, error) {
	var samples []history.Sample
	if t.generated != nil {
		samples = t.generated.Samples(m.Train, slots, seed)
	} else {
		var err error
		if samples, _, err = interference.Split(t.samples, m.Train, seed); err != nil {
			return nil, err
		}
	}
	return interference.Fit(m.Kind, samples, interference.Options{Seed: seed, Metrics: []history.Metric{history.Rate}, Parallel: parallel})
}

// parallel runs every f(i) in a goroutine of its own.
func parallel(n int, f func(int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// fit runs a fit scenario with one seed.
func (b *bench) fit(f *fitSpec, seed uint64) (map[string]float64, error) {
	t, err := b.truthOf(f.Truth)
	if err != nil {
		return nil, err
	}
	in, held, err := interference.Split(t.samples, f.Train, seed)
	if err != nil {
		return nil, err
	}
	resetPeak()
	begin := time.Now()
	model, err := interference.Fit(f.Kind, in, interference.Options{
		Seed: seed, Metrics: []history.Metric{history.Rate}, PredictedOnly: true, Parallel: parallel,
	})
	if err != nil {
		return nil, err
	}
	took, peak := time.Since(begin).Seconds(), peakMiB()
	e, err := interference.Evaluate(model, history.Rate, held)
	if err != nil {
		return nil, err
	}
	if e.Cells == 0 {
		return nil, fmt.Errorf("the %s model is silent about all of %d held-out cells", f.Kind, e.Silent)
	}
	m := map[string]float64{
		"error": e.Mean, "median_error": e.Median, "p95_error": e.P95, "coverage": e.Coverage, "silent": float64(e.Silent),
		"seconds": took, "peak_mib": peak,
	}
	for _, c := range e.Calibration {
		m[fmt.Sprintf("coverage_%.0f", 100*c.Nominal)] = c.Held
	}
	return m, nil
}
