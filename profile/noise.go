package profile

import (
	"math"

	"github.com/cotenant/cotenant/history"
)

// Cell is an aggregated measurement with what can be said of it.
type Cell struct {
	history.Sample
	// Performance is Value/Alone, 0 where no alone-run is on record. Error is
	// its standard error, from the spreads of both; NaN where one of them is
	// unknown.
	Performance, Error float64
	// WithinNoise is true where the performance differs from 1 by less than two
	// standard errors: no effect was shown. Where Error is unknown, it says
	// nothing.
	WithinNoise bool
}

// States tells whether a sample has a spread of its own: one repeat has none,
// and its Spread of 0 must not be taken for one.
func States(s history.Sample) bool { return s.Repeats > 1 || s.Spread > 0 }

// scatter is a relative spread and how many degrees of freedom it rests on;
// with none it is unknown.
type scatter struct {
	relative float64
	df       int
}

func (s scatter) known() bool { return s.df > 0 }

// scatters pools the relative spreads of a record, for the cells that state
// none of their own.
type scatters map[history.Cell]scatter

// scatterKey is what spreads are pooled over: a workload's metric on a class,
// and with "" for the workload, all workloads'.
func scatterKey(s history.Sample, workload string) history.Cell {
	return history.Cell{Class: s.Class, Workload: workload, Metric: s.Metric}
}

func scattersOf(aggregated []history.Sample) scatters {
	out := scatters{}
	for _, s := range aggregated {
		if s.Repeats < 2 || s.Value == 0 {
			continue
		}
		df, relative := s.Repeats-1, s.Spread/s.Value
		for _, key := range []history.Cell{scatterKey(s, s.Workload), scatterKey(s, "")} {
			p := out[key]
			variance := (float64(p.df)*p.relative*p.relative + float64(df)*relative*relative) / float64(p.df+df)
			out[key] = scatter{math.Sqrt(variance), p.df + df}
		}
	}
	return out
}

// of is the relative spread of a sample's repeats: its own, else that of all
// repeated cells of the workload, its alone-runs mostly, else of all workloads;
// else unknown.
func (p scatters) of(s history.Sample) scatter {
	if States(s) && s.Value > 0 {
		return scatter{s.Spread / s.Value, max(s.Repeats-1, 1)}
	}
	if own := p[scatterKey(s, s.Workload)]; own.known() {
		return own
	}
	return p[scatterKey(s, "")]
}

// Cells judges aggregated samples (history.Aggregate).
func Cells(aggregated []history.Sample) []Cell {
	pooled := scattersOf(aggregated)
	alone := map[history.Cell]history.Sample{}
	for _, s := range aggregated {
		if s.Colocation.Alone() {
			alone[s.Cell()] = s
		}
	}
	out := make([]Cell, len(aggregated))
	for i, s := range aggregated {
		out[i].Sample = s
		p, ok := s.Performance()
		if !ok {
			continue
		}
		out[i].Performance = p
		a := alone[s.Cell().AloneCell()]
		out[i].Error = p * math.Hypot(pooled.errorOf(s), pooled.errorOf(a))
		out[i].WithinNoise = math.Abs(p-1) < 2*out[i].Error
	}
	return out
}

// errorOf is the standard error of the mean over the mean; NaN where unknown.
func (p scatters) errorOf(s history.Sample) float64 {
	if s.Value == 0 {
		return 0
	}
	of := p.of(s)
	if !of.known() {
		return math.NaN()
	}
	return of.relative / math.Sqrt(float64(max(1, s.Repeats)))
}

// Noise is how much one workload's alone-runs differ over the session.
//
// What too few repeats were made for is NaN.
type Noise struct {
	Class    string
	Workload string
	Metric   history.Metric
	Alone    float64
	Repeats  int
	// Spread is the standard deviation of the alone repeats over their mean.
	Spread float64
	// Drift is the mean of the later half over that of the earlier half, less 1.
	Drift float64
	// Together is the mean over co-locations of the relative spread of repeats.
	Together float64
}

// NoiseOf reports the noise of every workload and metric in the raw repeats,
// in the order of history.Aggregate.
func NoiseOf(raw []history.Sample) []Noise {
	aggregated := history.Aggregate(raw)
	var out []Noise
	for _, a := range aggregated {
		if !a.Colocation.Alone() || a.Value == 0 {
			continue
		}
		n := Noise{Class: a.Class, Workload: a.Workload, Metric: a.Metric, Alone: a.Value, Repeats: a.Repeats, Spread: math.NaN(), Drift: math.NaN()}
		if States(a) {
			n.Spread = a.Spread / a.Value
		}
		var values []float64
		for _, s := range raw {
			if s.Cell() == a.Cell() {
				values = append(values, s.Value)
			}
		}
		if half := len(values) / 2; half > 0 {
			if early := average(values[:half]); early > 0 {
				n.Drift = average(values[len(values)-half:])/early - 1
			}
		}
		var spreads []float64
		for _, s := range aggregated {
			if s.Class == a.Class && s.Workload == a.Workload && s.Metric == a.Metric && !s.Colocation.Alone() && s.Repeats > 1 && s.Value > 0 {
				spreads = append(spreads, s.Spread/s.Value)
			}
		}
		n.Together = average(spreads)
		out = append(out, n)
	}
	return out
}

// average is NaN of nothing.
func average(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
