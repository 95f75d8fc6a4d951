package interference

import (
	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// Estimate is what a model says about one workload in one co-location.
type Estimate struct {
	// Value is the ratio value/alone on the same class. For history.Rate it is
	// the performance (1 = alone, higher is better); for P50 and P99 the
	// slowdown of the latency (1 = alone, lower is better).
	Value float64
	// Std is the standard deviation of the error that the model expects of
	// Value; 0 for what was measured without spread.
	Std float64
	// Known is false where the model is silent: it was asked about a workload or
	// co-location that it knows nothing of, and Value means nothing.
	Known bool
	// Measured says that Value was measured, not predicted.
	Measured bool
}

// Model predicts the performance of co-located tasks. Implementations are
// immutable after Fit or Load, deterministic, and safe for concurrent use.
type Model interface {
	// Kind is "table", "linear", "forest" or "neural".
	Kind() string
	// Classes lists the classes of nodes it was fitted on, sorted.
	Classes() []string
	// Workloads lists the workloads it knows on a class, sorted.
	Workloads(class string) []string
	// Predict answers for many co-locations at once, which is much cheaper than
	// one by one. Row i has an Estimate per workload of cs[i], in the order of
	// cs[i].Workloads() (sorted by name). Unknown classes, workloads or metrics
	// give Estimates that are not Known; it never fails.
	Predict(class string, metric history.Metric, cs []cluster.Colocation) [][]Estimate
}

// Most is the number of tasks in the largest co-location of a class that a model
// was fitted on: beyond it, what it says is a guess whose error nobody measured.
// 0 is unknown.
func Most(m Model, class string) int {
	if x, ok := m.(interface{ Most(class string) int }); ok {
		return x.Most(class)
	}
	return 0
}
