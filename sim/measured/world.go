package measured

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
)

// world is what does not change: the speeds. Truths that Fork made share it.
type world struct {
	classes   []string // that jobs may use: their fastest is the reference
	alone     *history.AloneRates
	misfits   *history.Misfits
	class     map[string]int32
	workload  map[string]int32
	workloads []string
	// performance of workload w beside v on class c, at [(c*W+w)*W+v]; NaN where
	// unknown or where the two do not fit.
	performance []float64
}

// least is the lowest performance that a model is believed: a prediction of 0
// or less would let a job stand still for ever.
const least = 0.01

// New makes the world that samples describe: rates alone, and the performance
// of pairs of single workers at scope device. Pairs with a rate of 0 do not
// fit (history.SplitMisfits). A sample of a pair that does not know its rate
// alone takes that of its workload.
//
// classes are those that the jobs may use; none means all that have a rate.
// They set the reference of progress, so give those of the cluster.
func New(samples []history.Sample, classes ...string) (*Truth, error) {
	fit, misfits := history.SplitMisfits(samples)
	w, err := newWorld(history.NewAloneRates(fit), misfits, classes)
	if err != nil {
		return nil, err
	}
	sum, n := make([]float64, len(w.performance)), make([]float64, len(w.performance))
	for i := range fit {
		s := &fit[i]
		if s.Metric != history.Rate || s.Scope != history.ScopeDevice || s.Workers > 1 || s.Colocation.Tasks() != 2 {
			continue
		}
		alone := s.Alone
		if alone == 0 {
			alone, _, _ = w.alone.Rate(s.Class, s.Workload, 1, "")
		}
		at, ok := w.cell(s.Class, s.Workload, beside(s.Colocation, s.Workload))
		if !ok || alone == 0 {
			continue // of no use without a rate alone
		}
		repeats := float64(max(s.Repeats, 1))
		sum[at] += s.Value / alone * repeats
		n[at] += repeats
	}
	for at := range sum {
		if n[at] > 0 {
			w.performance[at] = sum[at] / n[at]
		}
	}
	return w.truth(), nil
}

// FromModel makes the world that a model predicts, from its performance of
// every pair that fits; what it predicts below 0.01 counts as 0.01. classes
// are as in New.
func FromModel(m interference.Model, alone *history.AloneRates, misfits *history.Misfits, classes ...string) (*Truth, error) {
	w, err := newWorld(alone, misfits, classes)
	if err != nil {
		return nil, err
	}
	for _, class := range alone.Classes() {
		var pairs []cluster.Colocation
		for i, a := range w.workloads {
			for _, b := range w.workloads[i:] {
				c := cluster.Colocation{a: 1}
				c[b]++
				if !misfits.Has(class, c.Key()) {
					pairs = append(pairs, c)
				}
			}
		}
		for i, row := range m.Predict(class, history.Rate, pairs) {
			for k, name := range pairs[i].Workloads() {
				if at, ok := w.cell(class, name, beside(pairs[i], name)); ok && row[k].Known && !math.IsNaN(row[k].Value) {
					w.performance[at] = max(least, row[k].Value)
				}
			}
		}
	}
	return w.truth(), nil
}

func newWorld(alone *history.AloneRates, misfits *history.Misfits, classes []string) (*world, error) {
	if len(alone.Classes()) == 0 {
		return nil, errors.New("no rate alone among the samples: progress is measured by it; import a table that has them (cotenant import gavel)")
	}
	if len(classes) == 0 {
		classes = alone.Classes()
	}
	for _, c := range classes {
		if !slices.Contains(alone.Classes(), c) {
			return nil, fmt.Errorf("class %q has no rates; there are those of %v", c, alone.Classes())
		}
	}
	w := &world{
		classes: slices.Clone(classes), alone: alone, misfits: misfits, workloads: alone.Workloads(),
		class: index(alone.Classes()), workload: index(alone.Workloads()),
	}
	w.performance = make([]float64, len(w.class)*len(w.workloads)*len(w.workloads))
	for i := range w.performance {
		w.performance[i] = math.NaN()
	}
	return w, nil
}

func index(names []string) map[string]int32 {
	out := make(map[string]int32, len(names))
	for i, n := range names {
		out[n] = int32(i)
	}
	return out
}

// beside is the workload that shares a pair with one.
func beside(pair cluster.Colocation, workload string) string {
	for other := range pair {
		if other != workload {
			return other
		}
	}
	return workload
}

func (w *world) cell(class, workload, other string) (at int, ok bool) {
	c, ok1 := w.class[class]
	a, ok2 := w.workload[workload]
	b, ok3 := w.workload[other]
	return w.at(c, a, b), ok1 && ok2 && ok3
}

func (w *world) at(class, workload, other int32) int {
	n := len(w.workloads)
	return (int(class)*n+int(workload))*n + int(other)
}

// reference is the rate of a job alone on its fastest class, on one node.
func (w *world) reference(workload string, workers int) float64 {
	var best float64
	for _, c := range w.classes {
		if r, _, ok := w.alone.Rate(c, workload, workers, cluster.SpanNode); ok {
			best = max(best, r)
		}
	}
	return best
}
