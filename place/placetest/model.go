package placetest

import (
	"hash/fnv"
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
)

// Model answers from a hash of the question: performance from 0.1 to 1.1,
// slowdown from 1 to 3. The zero value knows every workload on one class.
type Model struct {
	// Names are the classes; one class "any" where empty. Other classes are
	// unknown, but "" where there is one.
	Names []string
	// Silence is one in how many co-locations of at least two tasks it is silent
	// about; 0 for none.
	Silence uint64
	// Apart: no two co-locations are worth the same.
	Apart bool
	// NoLatency lists workloads without p99.
	NoLatency []string
}

// Kind implements interference.Model.
func (Model) Kind() string { return "hash" }

// Classes implements interference.Model.
func (m Model) Classes() []string {
	if len(m.Names) == 0 {
		return []string{"any"}
	}
	return m.Names
}

// Workloads implements interference.Model.
func (Model) Workloads(string) []string { return nil }

// Predict implements interference.Model.
func (m Model) Predict(class string, metric history.Metric, cs []cluster.Colocation) [][]interference.Estimate {
	rows := make([][]interference.Estimate, len(cs))
	for i, c := range cs {
		for _, w := range c.Workloads() {
			rows[i] = append(rows[i], m.estimate(class, metric, c, w))
		}
	}
	return rows
}

func (m Model) estimate(class string, metric history.Metric, c cluster.Colocation, w string) interference.Estimate {
	known := slices.Contains(m.Classes(), class)
	if m.Silence > 0 && c.Tasks() > 1 && hash(c.Key())%m.Silence == 0 {
		known = false
	}
	if metric == history.P99 && slices.Contains(m.NoLatency, w) {
		known = false
	}
	if !known {
		return interference.Estimate{}
	}
	share := float64(hash(class+"|"+string(metric)+"|"+c.Key()+"|"+w)%1000) / 1000
	e := interference.Estimate{Known: true, Value: 0.1 + share, Measured: hash(c.Key())%3 == 0}
	if metric != history.Rate {
		e.Value = 1 + 2*share
	}
	if c.Alone() {
		e.Value = 1
	}
	if m.Apart {
		e.Value += 0.05 * float64(hash("apart|"+class+"|"+c.Key()+"|"+w)) / math.MaxUint64
	}
	if !e.Measured {
		e.Std = share / 4
	}
	return e
}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}
