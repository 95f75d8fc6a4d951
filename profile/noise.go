package profile

import (
	"math"

	"github.com/cotenant/cotenant/history"
)

// Cell is an aggregated measurement with what can be said of it.
type Cell struct {
	history.Sample
	// Performance is Value/Alone, 0 where no alone-run is on record. Error is
	// its standard error, from the spreads of both.
	Performance float64 `json:"performance"`
	Error       float64 `json:"performance_error"`
	// WithinNoise is true where the performance differs from 1 by less than two
	// standard errors: no effect was shown.
	WithinNoise bool `json:"within_noise"`
}

// Cells judges aggregated samples (history.Aggregate).
func Cells(aggregated []history.Sample) []Cell {
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
		out[i].Error = p * math.Hypot(relativeError(s), relativeError(a))
		out[i].WithinNoise = math.Abs(p-1) < 2*out[i].Error
	}
	return out
}

// relativeError is the standard error of the mean over the mean.
func relativeError(s history.Sample) float64 {
	if s.Value == 0 {
		return 0
	}
	return s.Spread / math.Sqrt(float64(max(1, s.Repeats))) / s.Value
}

// Noise is how much one workload's alone-runs differ over the session.
type Noise struct {
	Class    string         `json:"class,omitempty"`
	Workload string         `json:"workload"`
	Metric   history.Metric `json:"metric"`
	Alone    float64        `json:"alone"`
	Repeats  int            `json:"repeats"`
	// Spread is the standard deviation of the alone repeats over their mean.
	Spread float64 `json:"relative_spread"`
	// Drift is the mean of the later half over that of the earlier half, less 1.
	Drift float64 `json:"drift"`
	// Together is the mean over co-locations of the relative spread of repeats.
	Together float64 `json:"relative_spread_together"`
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
		n := Noise{Class: a.Class, Workload: a.Workload, Metric: a.Metric, Alone: a.Value, Repeats: a.Repeats, Spread: a.Spread / a.Value}
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

func average(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
