package place

import (
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
)

// Config numbers a co-location on a class within one Values; 0 is the empty
// node of the first class asked for. Configs of different classes differ.
type Config int32

// Value is what a co-location is worth under an objective.
type Value struct {
	// Sum is the co-location's part of the objective, without Worst: over its
	// tasks Mean*performance - P99*(p99/alone), over the total number of tasks
	// that count, minus Nodes where a task is there, plus what traffic among them
	// is worth.
	Sum float64
	// Worst is the lowest performance among the tasks; +Inf when empty or when
	// the objective has no weight on it.
	Worst float64
	// Known is false where the model is silent about a task that counts: no
	// policy should choose this co-location if it can choose another.
	Known bool
	// Measured says that every performance in it was measured.
	Measured bool
}

// Values turns a model into the values of co-locations under an objective. It
// numbers the co-locations it meets and remembers them, so that a search pays
// for each once. It is not safe for concurrent use.
type Values struct {
	model     interference.Model
	objective Objective
	workloads []string
	sorted    []int // workload numbers in the order of their names
	perTask   float64
	perTail   float64
	tail      []bool // workload number: latency counts
	pessimism float64
	traffic   *traffic // nil where it does not count

	classes []string
	empty   map[string]Config
	index   map[string]Config
	configs []config
	key     []byte
	counts  []uint16 // scratch
}

type config struct {
	class  int32
	known  bool // value computed
	counts []uint16
	value  Value
	next   []Config // by workload number; -1 not yet numbered
	prev   []Config // by workload number; -1 not yet numbered, or no such task
}

// NewValues values co-locations of the workloads (by workload number) for a
// placement with the given total number of tasks by workload number, running
// and pending: Sum adds up to the objective. pessimism k values a predicted
// performance at Value - k*Std (p99: plus), which guards a search against
// choosing what the model merely over-predicts. Edges it knows none, so
// traffic counts nothing: NewTrial's Values count it.
func NewValues(m interference.Model, o Objective, workloads []string, total []int, pessimism float64) *Values {
	v := &Values{
		model: m, objective: o.Or(), workloads: workloads, pessimism: pessimism,
		empty: map[string]Config{}, index: map[string]Config{}, tail: make([]bool, len(workloads)),
	}
	v.sorted = make([]int, len(workloads))
	for i := range v.sorted {
		v.sorted[i] = i
	}
	slices.SortFunc(v.sorted, func(a, b int) int {
		if workloads[a] < workloads[b] {
			return -1
		}
		return 1
	})
	tasks, tails := 0, 0
	for w, n := range total {
		tasks += n
		v.tail[w] = v.objective.P99 != 0 && hasLatency(m, workloads[w])
		if v.tail[w] {
			tails += n
		}
	}
	v.perTask = v.objective.Mean / float64(max(1, tasks))
	v.perTail = v.objective.P99 / float64(max(1, tails))
	return v
}

// ModelClass is the model's name for a class of nodes: the class "" stands for
// the only class of a model that has one.
func ModelClass(m interference.Model, class string) string {
	if classes := m.Classes(); class == "" && len(classes) == 1 {
		return classes[0]
	}
	return class
}

// hasLatency reports whether the model knows the workload's p99 alone.
func hasLatency(m interference.Model, workload string) bool {
	for _, class := range m.Classes() {
		if e := m.Predict(class, history.P99, []cluster.Colocation{{workload: 1}}); e[0][0].Known {
			return true
		}
	}
	return false
}

// WithoutLatency lists the workloads that the objective p99 leaves out, since
// the model knows no latency of theirs.
func (v *Values) WithoutLatency() []string {
	var names []string
	for w, ok := range v.tail {
		if !ok {
			names = append(names, v.workloads[w])
		}
	}
	slices.Sort(names)
	return names
}

// Objective is what the values are of.
func (v *Values) Objective() Objective { return v.objective }

// Workloads lists the workloads by workload number.
func (v *Values) Workloads() []string { return v.workloads }

// Empty is the config of an empty node of a class.
func (v *Values) Empty(class string) Config {
	if c, ok := v.empty[class]; ok {
		return c
	}
	id := Config(len(v.configs))
	v.classes = append(v.classes, class)
	v.empty[class] = id
	v.add(int32(len(v.classes)-1), make([]uint16, len(v.workloads)))
	return id
}

// Of is the config with the given counts by workload number.
func (v *Values) Of(class string, counts []int) Config {
	c := v.Empty(class)
	for w, n := range counts {
		for range n {
			c = v.Next(c, w)
		}
	}
	return c
}

func (v *Values) add(class int32, counts []uint16) {
	v.configs = append(v.configs, config{class: class, counts: counts})
}

func unset(n int) []Config { return slices.Repeat([]Config{-1}, n) }

// Next is the config with one more task of workload w.
func (v *Values) Next(c Config, w int) Config {
	if v.configs[c].next == nil {
		v.configs[c].next = unset(len(v.workloads))
	}
	if n := v.configs[c].next[w]; n >= 0 {
		return n
	}
	n := v.neighbour(c, w, 1)
	v.configs[c].next[w] = n
	return n
}

// Prev is the config with one task of workload w less. It panics where there
// is none.
func (v *Values) Prev(c Config, w int) Config {
	if v.configs[c].prev == nil {
		v.configs[c].prev = unset(len(v.workloads))
	}
	if n := v.configs[c].prev[w]; n >= 0 {
		return n
	}
	if v.configs[c].counts[w] == 0 {
		panic("place: no task of " + v.workloads[w] + " to take from the co-location")
	}
	n := v.neighbour(c, w, -1)
	v.configs[c].prev[w] = n
	return n
}

func (v *Values) neighbour(c Config, w, by int) Config {
	class := v.configs[c].class
	v.counts = append(v.counts[:0], v.configs[c].counts...)
	v.counts[w] += uint16(by)
	v.key = append(v.key[:0], byte(class), byte(class>>8))
	zero := true
	for _, n := range v.counts {
		v.key = append(v.key, byte(n), byte(n>>8))
		zero = zero && n == 0
	}
	if zero {
		return v.Empty(v.classes[class])
	}
	if id, ok := v.index[string(v.key)]; ok {
		return id
	}
	id := Config(len(v.configs))
	v.index[string(v.key)] = id
	v.add(class, slices.Clone(v.counts))
	return id
}

// Counts is the number of tasks in the config by workload number. It is
// shared: do not change it.
func (v *Values) Counts(c Config) []uint16 { return v.configs[c].counts }

// Class is the class of node of the config.
func (v *Values) Class(c Config) string { return v.classes[v.configs[c].class] }

// Len is the number of configs met so far; they are numbered from 0.
func (v *Values) Len() int { return len(v.configs) }

// Value is what the config is worth.
func (v *Values) Value(c Config) Value {
	if !v.configs[c].known {
		v.Fill([]Config{c})
	}
	return v.configs[c].value
}

// Fill computes the values of many configs in one call of the model, which is
// much cheaper than one by one.
func (v *Values) Fill(configs []Config) {
	var byClass [][]Config
	for _, c := range configs {
		if !v.configs[c].known {
			v.configs[c].known = true
			if byClass == nil {
				byClass = make([][]Config, len(v.classes))
			}
			byClass[v.configs[c].class] = append(byClass[v.configs[c].class], c)
		}
	}
	for class, cs := range byClass {
		if len(cs) == 0 {
			continue
		}
		colocations := make([]cluster.Colocation, len(cs))
		for i, c := range cs {
			colocations[i] = v.Colocation(c)
		}
		var rate, tail [][]interference.Estimate
		name := ModelClass(v.model, v.classes[class])
		if v.objective.Mean != 0 || v.objective.Worst != 0 {
			rate = v.model.Predict(name, history.Rate, colocations)
		}
		if v.objective.P99 != 0 {
			tail = v.model.Predict(name, history.P99, colocations)
		}
		for i, c := range cs {
			v.configs[c].value = v.sum(v.configs[c].counts, row(rate, i), row(tail, i))
		}
	}
}

func row(e [][]interference.Estimate, i int) []interference.Estimate {
	if e == nil {
		return nil
	}
	return e[i]
}

// sum follows Colocation.Workloads: the workloads present, sorted by name.
func (v *Values) sum(counts []uint16, rate, tail []interference.Estimate) Value {
	out := Value{Worst: math.Inf(1), Known: true, Measured: true}
	at := 0
	empty := true
	for _, w := range v.sorted {
		n := counts[w]
		if n == 0 {
			continue
		}
		empty = false
		if rate != nil {
			e := rate[at]
			out.Known = out.Known && e.Known
			out.Measured = out.Measured && e.Measured
			performance := e.Value
			if !e.Measured {
				performance = max(0, performance-v.pessimism*e.Std)
			}
			out.Sum += float64(n) * v.perTask * performance
			if v.objective.Worst != 0 {
				out.Worst = min(out.Worst, performance)
			}
		}
		if tail != nil && v.tail[w] {
			e := tail[at]
			out.Known = out.Known && e.Known
			out.Measured = out.Measured && e.Measured
			slowdown := e.Value
			if !e.Measured {
				slowdown += v.pessimism * e.Std
			}
			out.Sum -= float64(n) * v.perTail * slowdown
		}
		at++
	}
	if !empty {
		out.Sum -= v.objective.Nodes
	}
	if v.traffic != nil {
		out.Sum += beside(v.traffic, counts)
	}
	if !out.Known {
		out.Sum, out.Worst = math.Inf(-1), math.Inf(-1)
	}
	return out
}

// Colocation is the multiset that the config stands for.
func (v *Values) Colocation(c Config) cluster.Colocation {
	out := cluster.Colocation{}
	for w, n := range v.configs[c].counts {
		if n > 0 {
			out[v.workloads[w]] = int(n)
		}
	}
	return out
}
