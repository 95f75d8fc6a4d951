package place

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Objective is what to optimise: weights of the five measures, each at least
// 0. The value of a placement is
//
//	Mean*mean + Worst*worst - P99*p99 - Nodes*used + Traffic*near
//
// where mean and worst are over the performance of all tasks, p99 is the mean
// over tasks of p99/p99 alone (workloads without measured latency left out),
// used is the number of nodes with at least one task, and near is the sum of
// the tasks' near shares over the number of all tasks: a task all of whose
// traffic stays on its node is worth Traffic more, in units of the performance
// of a task alone. The zero value means Mean alone.
//
// A task of a workload with edges (cluster.Workload.Edges) exchanges its
// traffic with the tasks of the workloads that they lead to, by the edges'
// weights, and with all tasks of such a workload evenly, running and pending
// ones. Its near share is the part that stays on its node and half of the part
// that leaves it for another node of its rack (cluster.RackKey; a node without
// the label, or with an empty one, is in no rack), so 0 to 1. An edge to the task's own workload
// leads to the other tasks of it. An edge counts for the tasks of the workload
// that has it, not for those at its other end. An edge to a workload without
// tasks keeps its part of the traffic, which is then never near; tasks without
// edges, or all of whose edges lead nowhere, count 0.
type Objective struct {
	Mean  float64 `json:"mean,omitempty"`
	Worst float64 `json:"worst,omitempty"`
	P99   float64 `json:"p99,omitempty"`
	Nodes float64 `json:"nodes,omitempty"`
	// Traffic is the weight of traffic between workloads.
	Traffic float64 `json:"traffic,omitempty"`
}

// The objectives of a single measure.
var (
	MeanPerformance  = Objective{Mean: 1}
	WorstPerformance = Objective{Worst: 1}
	TailLatency      = Objective{P99: 1}
	NodesUsed        = Objective{Nodes: 1}
	NearTraffic      = Objective{Traffic: 1}
)

// Measures lists the names of the measures that ParseObjective reads.
func Measures() []string { return []string{"mean", "worst", "p99", "nodes", "traffic"} }

// ParseObjective reads "mean", "worst", "p99", "nodes", "traffic" or a
// weighted sum such as "mean=1,nodes=0.002".
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
		case "traffic":
			o.Traffic += weight
		default:
			return o, fmt.Errorf("objective %q: %q is none of %s", s, name, strings.Join(Measures(), ", "))
		}
	}
	if o == (Objective{}) {
		return o, fmt.Errorf("objective %q: all weights are 0", s)
	}
	if math.IsInf(o.Mean+o.Worst+o.P99+o.Nodes+o.Traffic, 0) {
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
	return o.Mean == 0 && o.Worst == 0 && o.Traffic == 0 && (o.P99 == 0) != (o.Nodes == 0)
}

// String is the form that ParseObjective reads.
func (o Objective) String() string {
	o = o.Or()
	var parts []string
	for _, m := range []struct {
		name   string
		weight float64
	}{{"mean", o.Mean}, {"worst", o.Worst}, {"p99", o.P99}, {"nodes", o.Nodes}, {"traffic", o.Traffic}} {
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
