package place

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Objective is what to optimise: weights of the four measures, each at least
// 0. The value of a placement is
//
//	Mean*mean + Worst*worst - P99*p99 - Nodes*used
//
// where mean and worst are over the performance of all tasks, p99 is the mean
// over tasks of p99/p99 alone (workloads without measured latency left out),
// and used is the number of nodes with at least one task. The zero value
// means Mean alone.
type Objective struct {
	Mean  float64 `json:"mean,omitempty"`
	Worst float64 `json:"worst,omitempty"`
	P99   float64 `json:"p99,omitempty"`
	Nodes float64 `json:"nodes,omitempty"`
}

// The objectives of a single measure.
var (
	MeanPerformance  = Objective{Mean: 1}
	WorstPerformance = Objective{Worst: 1}
	TailLatency      = Objective{P99: 1}
	NodesUsed        = Objective{Nodes: 1}
)

// ParseObjective reads "mean", "worst", "p99", "nodes" or a weighted sum
// such as "mean=1,nodes=0.002".
func ParseObjective(s string) (Objective, error) {
	var o Objective
	for part := range strings.SplitSeq(s, ",") {
		name, text, weighted := strings.Cut(part, "=")
		weight := 1.0
		if weighted {
			w, err := strconv.ParseFloat(text, 64)
			if err != nil || !(w >= 0) || math.IsInf(w, 0) {
				return o, fmt.Errorf("objective %q: weight %q of %s is not a finite number >= 0", s, text, name)
			}
			weight = w
		}
		switch name {
		case "mean":
			o.Mean += weight
		case "worst":
			o.Worst += weight
		case "p99":
			o.P99 += weight
		case "nodes":
			o.Nodes += weight
		default:
			return o, fmt.Errorf("objective %q: %q is none of mean, worst, p99, nodes", s, name)
		}
	}
	if o == (Objective{}) {
		return o, fmt.Errorf("objective %q: all weights are 0", s)
	}
	if math.IsInf(o.Mean+o.Worst+o.P99+o.Nodes, 0) {
		return o, fmt.Errorf("objective %q: the weights add up to more than a number can hold", s)
	}
	return o, nil
}

// Or is o, or Mean alone where o is zero.
func (o Objective) Or() Objective {
	if o == (Objective{}) {
		return MeanPerformance
	}
	return o
}

// Minimises reports whether the objective is a single measure that is better
// the lower it is (p99, nodes): it is then printed without the minus sign.
func (o Objective) Minimises() bool {
	o = o.Or()
	return o.Mean == 0 && o.Worst == 0 && (o.P99 == 0) != (o.Nodes == 0)
}

// String is the form that ParseObjective reads.
func (o Objective) String() string {
	o = o.Or()
	var parts []string
	for _, m := range []struct {
		name   string
		weight float64
	}{{"mean", o.Mean}, {"worst", o.Worst}, {"p99", o.P99}, {"nodes", o.Nodes}} {
		switch m.weight {
		case 0:
		case 1:
			parts = append(parts, m.name)
		default:
			parts = append(parts, fmt.Sprintf("%s=%g", m.name, m.weight))
		}
	}
	return strings.Join(parts, ",")
}

// Share is value/bound when maximising and bound/value when minimising, at
// most 1 for a valid bound; NaN where it has no meaning (a bound or value that
// is not positive).
func (o Objective) Share(value, bound float64) float64 {
	if o.Minimises() {
		value, bound = bound, value
	}
	if !(bound > 0) || !(value >= 0) {
		return math.NaN()
	}
	return value / bound
}
