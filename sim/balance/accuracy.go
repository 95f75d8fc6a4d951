package balance

import (
	"math"
	"time"

	core "github.com/cotenant/cotenant/balance"
)

// Accuracy is how well each of the shipped predictors foretells the speeds of
// traces, a report for each value: the root of the mean squared error, of
// speeds relative to the worker's mean, from the value of index warm on.
// "auto" is what a Balancer by default goes by.
func Accuracy(traces []Trace, warm int, seed uint64) (map[string]float64, error) {
	const batch = 1000 // per worker, so that its rounding is no error
	var workers []core.Worker
	means := make([]float64, len(traces))
	length := math.MaxInt
	for i, t := range traces {
		workers = append(workers, core.Worker{Name: t.Worker})
		for _, v := range t.Speed {
			means[i] += v / float64(len(t.Speed))
		}
		length = min(length, len(t.Speed))
	}
	b, err := core.New(workers, core.Options{GlobalBatch: batch * max(len(traces), 1), Seed: seed})
	if err != nil {
		return nil, err
	}
	squares, n := map[string]float64{}, 0.0
	for k := range length {
		forecasts := b.Forecasts()
		var reports []core.Report
		for i, t := range traces {
			if k >= max(warm, 1) {
				for name, v := range forecasts[i].Speeds {
					e := (v - t.Speed[k]) / means[i]
					squares[name] += e * e
					if name == forecasts[i].Chosen {
						squares[core.Auto] += e * e
					}
				}
				n++
			}
			reports = append(reports, core.Report{
				Worker: t.Worker, Generation: b.Generation(), Iteration: int64(k), BatchSize: batch,
				Compute: time.Duration(batch / t.Speed[k] * float64(time.Second)), CPU: t.CPU[k], Memory: t.Memory[k],
			})
		}
		if err := b.Observe(reports); err != nil {
			return nil, err
		}
	}
	for name := range squares {
		squares[name] = math.Sqrt(squares[name] / max(n, 1))
	}
	return squares, nil
}
