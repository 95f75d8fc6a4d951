package compare

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/measured"
)

// World is a cluster, how fast jobs truly run on it, and what anybody may know
// of that beforehand. It is safe for concurrent use once made.
type World struct {
	Nodes []cluster.Node
	// Declared are workloads with their requests; others request nothing.
	Declared []cluster.Workload
	// Scope is what tasks that slow each other share.
	Scope history.Scope
	// Alone and Misfits are always known. Misfits may be nil.
	Alone   *history.AloneRates
	Misfits *history.Misfits
	// Unmeasured counts pairs that nobody measured; they count as not fitting
	// together, so that no policy has to guess what the truth does not know.
	Unmeasured int
	// Samples are what was measured of co-locations: a part of it is shown to
	// those who learn.
	Samples []history.Sample
	// Table answers what is true about co-locations, exactly; nil where no table
	// can say it. A policy of which Spec.Truth is set believes it.
	Table interference.Model
	// Generate draws a stream of jobs of the world.
	Generate func(Load, uint64) ([]sim.Job, error)
	// TraceTasks makes the tasks of a job of a trace; nil makes workers alone.
	TraceTasks func(formats.TraceJob) []cluster.Task

	truth func() sim.Truth
	calls atomic.Int64
}

// Measured is the world that samples describe (Gavel's tables: rates alone and
// of pairs on a device). share is how many tasks a device of nodes takes: 1
// or 2, since what was measured is pairs.
func Measured(samples []history.Sample, nodes []cluster.Node, share int) (*World, error) {
	if share < 1 || share > 2 {
		return nil, fmt.Errorf("share %d: tasks that share a device; what was measured is single tasks and pairs, so 1 or 2", share)
	}
	classes := deviceClasses(nodes)
	if len(classes) == 0 {
		return nil, errors.New("the nodes have no devices; jobs need some")
	}
	for _, class := range classes {
		if known := history.NewAloneRates(samples).Classes(); !slices.Contains(known, class) {
			return nil, fmt.Errorf("class %q has no rates; there are those of %v", class, known)
		}
	}
	nodes = slices.Clone(nodes)
	for i := range nodes {
		nodes[i].Devices = slices.Clone(nodes[i].Devices)
		for d := range nodes[i].Devices {
			nodes[i].Devices[d].Slots = share
		}
	}
	here := slices.DeleteFunc(slices.Clone(samples), func(s history.Sample) bool { return !slices.Contains(classes, s.Class) })
	gaps := unmeasured(here)
	here = append(here, gaps...)
	truth, err := measured.New(here, classes...)
	if err != nil {
		return nil, err
	}
	fit, misfits := history.SplitMisfits(here)
	alone := history.NewAloneRates(fit)
	// Jobs of several workers tell nothing about a co-location.
	fit = slices.DeleteFunc(fit, func(s history.Sample) bool { return s.Workers > 1 || s.Metric != history.Rate })
	w := &World{
		Nodes: nodes, Scope: history.ScopeDevice, Alone: alone, Misfits: misfits, Samples: fit,
		Unmeasured: len(gaps), truth: func() sim.Truth { return truth.Fork() },
	}
	if w.Table, err = interference.Fit(interference.KindTable, fit, interference.Options{Metrics: rateOnly}); err != nil {
		return nil, err
	}
	w.Generate = w.stream
	return w, nil
}

// unmeasured makes a sample that says "does not fit" of each pair of single
// workers that has none, on each class on which both have a rate alone.
func unmeasured(samples []history.Sample) []history.Sample {
	met := map[string]bool{}
	for _, s := range samples {
		if s.Scope == history.ScopeDevice && s.Workers <= 1 && s.Metric == history.Rate {
			met[s.Class+"\x00"+s.Colocation.Key()] = true
		}
	}
	alone := history.NewAloneRates(samples)
	var gaps []history.Sample
	for _, class := range alone.Classes() {
		for i, a := range alone.Workloads() {
			for _, b := range alone.Workloads()[i:] {
				rate, _, ok := alone.Rate(class, a, 1, "")
				_, _, other := alone.Rate(class, b, 1, "")
				pair := cluster.Colocation{a: 1}
				pair[b]++
				if !ok || !other || met[class+"\x00"+pair.Key()] {
					continue
				}
				gaps = append(gaps, history.Sample{
					Class: class, Scope: history.ScopeDevice, Colocation: pair, Workload: a, Metric: history.Rate, Alone: rate,
				})
			}
		}
	}
	return gaps
}

// Known is a world without a truth: a cluster, and what samples tell about
// jobs on it. Tasks that slow each other share a device where the samples are
// of devices, and a node otherwise.
func Known(samples []history.Sample, nodes []cluster.Node, declared []cluster.Workload) (*World, error) {
	w := &World{Nodes: nodes, Declared: declared, Scope: history.ScopeNode}
	w.Generate = w.stream
	for _, s := range samples {
		if s.Scope == history.ScopeDevice && !s.Colocation.Alone() {
			w.Scope = history.ScopeDevice
		}
	}
	fit, misfits := history.SplitMisfits(samples)
	w.Alone, w.Misfits = history.NewAloneRates(fit), misfits
	w.Samples = slices.DeleteFunc(fit, func(s history.Sample) bool { return s.Workers > 1 || s.Metric != history.Rate })
	var err error
	w.Table, err = interference.Fit(interference.KindTable, w.Samples, interference.Options{Metrics: rateOnly})
	return w, err
}

// Speeds are what a policy believes whose model is m; nil believes in no
// interference. Values that were predicted are lowered by pessimism standard
// deviations.
func (w *World) Speeds(m interference.Model, pessimism float64) *jobs.Speeds {
	return jobs.NewSpeeds(m, w.options(pessimism))
}

var rateOnly = []history.Metric{history.Rate}

// deviceClasses lists the classes of the nodes' devices, sorted.
func deviceClasses(nodes []cluster.Node) []string {
	var classes []string
	for i := range nodes {
		for _, d := range nodes[i].Devices {
			classes = append(classes, d.Class)
		}
	}
	slices.Sort(classes)
	return slices.Compact(classes)
}

// Classes lists the classes that jobs can run on, sorted.
func (w *World) Classes() []string {
	if w.Scope == history.ScopeDevice {
		return deviceClasses(w.Nodes)
	}
	var classes []string
	for i := range w.Nodes {
		classes = append(classes, w.Nodes[i].Class)
	}
	slices.Sort(classes)
	return slices.Compact(classes)
}

// Truth is what really happens, for one run. Calls to it are counted.
func (w *World) Truth() sim.Truth {
	t := w.truth()
	if s, ok := t.(sim.Scaler); ok {
		return countedScaler{counted{t, &w.calls}, s}
	}
	return counted{t, &w.calls}
}

// Calls is how often all truths of the world were asked so far.
func (w *World) Calls() int64 { return w.calls.Load() }

type counted struct {
	sim.Truth
	calls *atomic.Int64
}

func (c counted) Rates(s *cluster.Snapshot, touched []cluster.TaskID) map[cluster.TaskID]float64 {
	c.calls.Add(1)
	return c.Truth.Rates(s, touched)
}

type countedScaler struct {
	counted
	sim.Scaler
}

// options is what Speeds of this world are made with.
func (w *World) options(pessimism float64) jobs.Options {
	o := jobs.Options{Scope: w.Scope, Alone: w.Alone, Pessimism: pessimism}
	if w.Misfits != nil {
		o.Misfits = w.Misfits
	}
	return o
}
