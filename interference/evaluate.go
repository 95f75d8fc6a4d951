package interference

import (
	"fmt"
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/internal/num"
)

// Split draws train co-locations at random by seed and returns their samples,
// and those of all others. Single tasks are always in the training part and
// count towards train, so that it is never less than the number of those.
// Samples without Alone get the mean of the samples alone, for they may be
// parted from them.
func Split(samples []history.Sample, train int, seed uint64) (fit, held []history.Sample, err error) {
	known, err := cells(samples, nil)
	if err != nil {
		return nil, nil, err
	}
	alone := map[history.Cell]float64{}
	for _, s := range known {
		if s.Colocation.Alone() {
			alone[s.Cell()] = s.Value
		}
	}
	type place struct{ class, key string }
	var shared []place
	seen := map[place]bool{}
	singles := 0
	for _, s := range samples {
		p := place{s.Class, s.Colocation.Key()}
		if seen[p] {
			continue
		}
		seen[p] = true
		if s.Colocation.Alone() {
			singles++
		} else {
			shared = append(shared, p)
		}
	}
	if train > singles+len(shared) {
		return nil, nil, fmt.Errorf("cannot train on %d co-locations: the samples hold %d", train, singles+len(shared))
	}
	rng := num.Rand(seed, 3)
	rng.Shuffle(len(shared), func(i, j int) { shared[i], shared[j] = shared[j], shared[i] })
	in := map[place]bool{}
	for _, p := range shared[:max(train-singles, 0)] {
		in[p] = true
	}
	for _, s := range samples {
		if s.Alone == 0 {
			s.Alone = alone[(history.Sample{Class: s.Class, Colocation: cluster.Colocation{s.Workload: 1}, Workload: s.Workload, Metric: s.Metric}).Cell()]
		}
		if s.Colocation.Alone() || in[place{s.Class, s.Colocation.Key()}] {
			fit = append(fit, s)
		} else {
			held = append(held, s)
		}
	}
	return fit, held, nil
}

// Errors says how far a model is from what was measured: relative errors
// |predicted - measured| / measured over (co-location, workload) cells of at
// least two tasks.
type Errors struct {
	Cells  int // compared
	Silent int // the model does not answer
	Zero   int // measured as 0: no relative error exists
	// Mean, Median and P95 are NaN where no cell was compared.
	Mean, Median, P95 float64
	// Coverage is the share of cells inside Value +- 1.645 Std, the 90 %
	// interval of a normal distribution.
	Coverage float64
	// Calibration is the share held by intervals of other widths.
	Calibration []Interval
}

// Interval is the central interval of a normal distribution with a model's
// Value and Std that should hold Nominal of what is measured, and the share
// that it does hold.
type Interval struct{ Nominal, Held float64 }

// nominals are the widths of Errors.Calibration.
var nominals = []float64{0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99}

// Evaluate compares a model with samples that it was not fitted on.
func Evaluate(m Model, metric history.Metric, held []history.Sample) (Errors, error) {
	nan := math.NaN()
	e := Errors{Mean: nan, Median: nan, P95: nan, Coverage: nan}
	if !slices.ContainsFunc(held, func(s history.Sample) bool { return s.Metric == metric && usable(s) }) {
		return e, nil
	}
	d, err := gather(held, []history.Metric{metric})
	if err != nil {
		return e, err
	}
	var relative []float64
	inside := 0
	within := make([]int, len(nominals))
	k := slices.Index(metrics, metric)
	for c, class := range d.classes {
		var cs []cluster.Colocation
		var rows []row
		for _, r := range d.rows {
			if r.class == c && r.tasks() > 1 && r.obs[k] != nil {
				cs, rows = append(cs, d.colocation(r.members)), append(rows, r)
			}
		}
		for i, estimates := range m.Predict(class, metric, cs) {
			for j, p := range estimates {
				o := rows[i].obs[k][j]
				switch {
				case !o.measured:
				case !p.Known:
					e.Silent++
				case o.value == 0:
					e.Zero++
				default:
					relative = append(relative, math.Abs(p.Value-o.value)/o.value)
					off := math.Abs(p.Value - o.value)
					if off <= z90*p.Std {
						inside++
					}
					for i, nominal := range nominals {
						if off <= math.Sqrt2*math.Erfinv(nominal)*p.Std {
							within[i]++
						}
					}
				}
			}
		}
	}
	if e.Cells = len(relative); e.Cells == 0 {
		return e, nil
	}
	var sum float64
	for _, r := range relative {
		sum += r
	}
	slices.Sort(relative)
	e.Mean = sum / float64(e.Cells)
	e.Median = relative[(e.Cells-1)/2]
	e.P95 = relative[int(math.Ceil(0.95*float64(e.Cells)))-1]
	e.Coverage = float64(inside) / float64(e.Cells)
	for i, nominal := range nominals {
		e.Calibration = append(e.Calibration, Interval{nominal, float64(within[i]) / float64(e.Cells)})
	}
	return e, nil
}
