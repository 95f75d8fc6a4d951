package generated

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
)

// The contended resources of a generated node. Requests name none of them.
var contended = []string{"cores", "cache", "memory bandwidth", "disk", "network"}

// Model is a made-up truth over any number of workloads, for questions
// that no measured table can ask: every co-location has an answer.
//
// A task of workload w presses on resource r with pressure[w][r], as a share
// of what the node has. A resource bears a total of 1 and saturates beyond
// it: the excess x slows a task down by the factor 1 + sensitivity[w][r]*x,
// and what slows it down on several resources multiplies. No workload
// saturates a resource alone, so the performance alone is 1. A few ordered
// pairs are friends, as a client and its cache: with at least one friend
// beside it a task gains the factor 1 + bonus, so that performances above 1
// happen, as they do in measurements. The p99 grows with the square of the
// slowdown: queues build up faster than rates fall.
type Model struct {
	workloads   []string // sorted
	pressure    [][]float64
	sensitivity [][]float64
	friend      []int // by workload: whose presence helps it; -1 for nobody
	bonus       []float64
}

// New makes a truth of n workloads. Each has one resource that it mostly
// presses on and one or two that it is sensitive to; the two need not agree.
func New(n int, seed uint64) *Model {
	r := rand.New(rand.NewPCG(seed, 0x30))
	g := &Model{}
	for w := range n {
		g.workloads = append(g.workloads, fmt.Sprintf("w%02d", w))
		pressure := make([]float64, len(contended))
		sensitivity := make([]float64, len(contended))
		for i := range contended {
			pressure[i] = 0.08 * r.Float64()
			sensitivity[i] = 0.1 * r.Float64()
		}
		pressure[r.IntN(len(contended))] = 0.15 + 0.35*r.Float64()
		for range 1 + r.IntN(2) {
			sensitivity[r.IntN(len(contended))] = 0.5 + 1.5*r.Float64()
		}
		g.pressure = append(g.pressure, pressure)
		g.sensitivity = append(g.sensitivity, sensitivity)
		friend, bonus := -1, 0.0
		if r.IntN(5) == 0 {
			friend, bonus = r.IntN(n), 0.05+0.15*r.Float64()
		}
		if friend == w {
			friend = -1
		}
		g.friend = append(g.friend, friend)
		g.bonus = append(g.bonus, bonus)
	}
	return g
}

// Kind implements interference.Model. A rule is none of the kinds that Fit
// knows.
func (g *Model) Kind() string { return "generated" }

// Classes implements interference.Model: one, without a name.
func (g *Model) Classes() []string { return []string{""} }

// Workloads implements interference.Model.
func (g *Model) Workloads(string) []string { return slices.Clone(g.workloads) }

// Predict implements interference.Model, exactly.
func (g *Model) Predict(_ string, metric history.Metric, cs []cluster.Colocation) [][]interference.Estimate {
	out := make([][]interference.Estimate, len(cs))
	excess := make([]float64, len(contended))
	for i, c := range cs {
		names := c.Workloads()
		out[i] = make([]interference.Estimate, len(names))
		for r := range excess {
			load := 0.0
			for _, name := range names {
				if w, ok := g.number(name); ok {
					load += float64(c[name]) * g.pressure[w][r]
				}
			}
			excess[r] = max(0, load-1)
		}
		for j, name := range names {
			w, ok := g.number(name)
			if !ok {
				continue
			}
			v := g.performance(w, excess, c)
			if metric != history.Rate {
				v = math.Pow(v, -2)
			}
			out[i][j] = interference.Estimate{Value: v, Known: true, Measured: true}
		}
	}
	return out
}

func (g *Model) number(name string) (int, bool) { return slices.BinarySearch(g.workloads, name) }

func (g *Model) performance(w int, excess []float64, c cluster.Colocation) float64 {
	v := 1.0
	for r, x := range excess {
		v /= 1 + g.sensitivity[w][r]*x
	}
	if f := g.friend[w]; f >= 0 && c[g.workloads[f]] > 0 {
		v *= 1 + g.bonus[w]
	}
	return v
}

// Samples draws n co-locations of 2 to most tasks, each of the workloads'
// tasks as likely, and adds every workload alone.
func (g *Model) Samples(n, most int, seed uint64) []history.Sample {
	r := rand.New(rand.NewPCG(seed, 0x31))
	var cs []cluster.Colocation
	for _, w := range g.workloads {
		cs = append(cs, cluster.Colocation{w: 1})
	}
	for range n {
		c := cluster.Colocation{}
		for range 2 + r.IntN(most-1) {
			c[g.workloads[r.IntN(len(g.workloads))]]++
		}
		cs = append(cs, c)
	}
	var out []history.Sample
	for i, row := range g.Predict("", history.Rate, cs) {
		for j, w := range cs[i].Workloads() {
			out = append(out, history.Sample{
				Source: "generated", Colocation: cs[i], Workload: w, Metric: history.Rate, Value: row[j].Value, Alone: 1,
			})
		}
	}
	return out
}

// Batch draws a number of tasks a workload, between half and one and a half
// times the even share, that adds up to the given total.
func (g *Model) Batch(tasks int, seed uint64) cluster.Colocation {
	r := rand.New(rand.NewPCG(seed, 0x32))
	weights := make([]float64, len(g.workloads))
	sum := 0.0
	for i := range weights {
		weights[i] = 0.5 + r.Float64()
		sum += weights[i]
	}
	out := cluster.Colocation{}
	left := tasks
	for i, w := range g.workloads {
		out[w] = int(float64(tasks) * weights[i] / sum)
		left -= out[w]
	}
	for i := range left {
		out[g.workloads[i%len(g.workloads)]]++
	}
	return out
}
