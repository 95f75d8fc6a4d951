package encode

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/placetest"
)

// scene is a cluster by the states of its nodes, and what is to come.
type scene struct {
	workloads int
	nodes     [][]int // tasks by workload number
	room      []int
	demand    []float64
	objective place.Objective
}

func drawScene(t *rapid.T) scene {
	s := scene{workloads: rapid.IntRange(1, 12).Draw(t, "workloads")}
	for range s.workloads {
		s.demand = append(s.demand, float64(rapid.IntRange(0, 5).Draw(t, "demand")))
	}
	for range rapid.IntRange(1, 6).Draw(t, "nodes") {
		counts := make([]int, s.workloads)
		for range rapid.IntRange(0, 4).Draw(t, "tasks") {
			counts[rapid.IntRange(0, s.workloads-1).Draw(t, "workload")]++
		}
		s.nodes = append(s.nodes, counts)
		s.room = append(s.room, rapid.IntRange(0, 4).Draw(t, "room"))
	}
	s.objective = rapid.SampledFrom([]place.Objective{{Mean: 1}, {Mean: 1, Worst: 0.5}, {Worst: 1}, {Mean: 1, Nodes: 0.01}}).Draw(t, "objective")
	return s
}

// begin makes the encoder of a scene whose workloads are numbered by order,
// and the states of its nodes.
func (s scene) begin(m interference.Model, order []int) (*Services, []State) {
	names := make([]string, s.workloads)
	total, demand := make([]int, s.workloads), make([]float64, s.workloads)
	for at, w := range order {
		names[at] = fmt.Sprint("w", w)
		demand[at] = s.demand[w]
		total[at] = int(s.demand[w])
		for _, n := range s.nodes {
			total[at] += n[w]
		}
	}
	values := place.NewValues(m, s.objective, names, total, 0)
	e := NewServices(values)
	var states []State
	running, value, lowest := 0, 0.0, []float64{math.Inf(1), math.Inf(1)}
	for i, n := range s.nodes {
		counts := make([]int, s.workloads)
		tasks := 0
		for at, w := range order {
			counts[at] = n[w]
			tasks += n[w]
		}
		c := values.Of("", counts)
		running += tasks
		v := values.Value(c)
		if !math.IsInf(v.Sum, -1) {
			value += v.Sum
			lowest = append(lowest, v.Worst)
		}
		states = append(states, State{Config: c, Nodes: 1, Room: s.room[i], Fill: float64(tasks) / float64(tasks+s.room[i]+1)})
	}
	slices.Sort(lowest)
	e.Guard(lowest[0], lowest[1])
	e.Begin(demand, 0, states, len(states), running, value)
	return e, states
}

func inOrder(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// encoded is what the network sees of every node with room, for a task of w.
func encoded(e *Services, states []State, w int) (rows [][]float32, context []float32) {
	for _, o := range states {
		if o.Room > 0 {
			row := make([]float32, ServiceFeatures)
			e.Encode(row, o, w)
			rows = append(rows, row)
		}
	}
	return rows, slices.Clone(e.Context(w))
}

// TestServicesAreBounded: whatever the model says, silent or not, a network
// gets finite numbers of a size that it can use.
func TestServicesAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		e, states := s.begin(placetest.Model{Silence: rapid.Uint64Range(0, 3).Draw(t, "silence")}, inOrder(s.workloads))
		for w := range s.workloads {
			rows, context := encoded(e, states, w)
			for _, row := range append(rows, context) {
				for i, x := range row {
					if math.IsNaN(float64(x)) || math.Abs(float64(x)) > 20 {
						t.Fatalf("feature %d of a task of w%d is %g", i, w, x)
					}
				}
			}
		}
	})
}

// TestServicesKnowNoNames: workloads are told apart by what they do, so that
// another numbering of them changes nothing.
func TestServicesKnowNoNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		for i, n := range s.nodes {
			n[i%s.workloads]++
		}
		// On an empty node, and where only the worst counts, many are truly alike,
		// and which of them joins first is left to the numbers.
		s.objective = place.Objective{Mean: 1}
		order := rapid.Permutation(inOrder(s.workloads)).Draw(t, "order")
		a, of := s.begin(placetest.Model{Apart: true}, inOrder(s.workloads))
		b, as := s.begin(placetest.Model{Apart: true}, order)
		for at, w := range order {
			rows, context := encoded(a, of, w)
			others, other := encoded(b, as, at)
			for i, row := range append(rows, context) {
				for k, x := range row {
					if y := append(others, other)[i][k]; math.Abs(float64(x-y)) > 1e-4 {
						t.Fatalf("feature %d of a task of w%d is %g, and %g with the workloads in the order %v", k, w, x, y, order)
					}
				}
			}
		}
	})
}

// TestServicesAddUp checks features against the definitions of them.
func TestServicesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		s.objective = place.Objective{Mean: 1}
		e, states := s.begin(placetest.Model{}, inOrder(s.workloads))
		v := e.values
		large := false // gains that do not count in full do not add up
		gain := func(c place.Config, w int) float64 {
			g := (v.Value(v.Next(c, w)).Sum - v.Value(c).Sum) / e.Unit()
			large = large || math.Abs(g) > most
			return g
		}
		total := 0.0
		for _, d := range s.demand {
			total += d
		}
		w := rapid.IntRange(0, s.workloads-1).Draw(t, "workload")
		kinds := e.ToCome()
		for _, o := range states {
			if o.Room == 0 {
				continue
			}
			row := make([]float32, ServiceFeatures)
			e.Encode(row, o, w)
			large = false
			want := map[int]float64{ServiceGain: gain(o.Config, w)}
			if kinds > 0 {
				for u, d := range s.demand {
					want[ServiceBefore] += d / total * gain(o.Config, u)
					if o.Room > 1 && kinds <= nearby {
						want[ServiceAfter] += d / total * gain(v.Next(o.Config, w), u)
					}
				}
			}
			for i, x := range want {
				if !large && math.Abs(float64(row[i])-x) > 1e-4 {
					t.Fatalf("feature %d is %g, not %g", i, row[i], x)
				}
			}
			// What a node can become is never below nothing, and at no price never
			// below what the best next task gains.
			if row[ServiceNext] < 0 || row[ServiceNextMean] < 0 || row[ServiceNextWorth] < 0 {
				t.Fatalf("a node can become less than it is: %v", row)
			}
		}
	})
}

// TestServicesAskLittle: how many co-locations the model is asked about for one
// node does not grow with the square of the workloads.
func TestServicesAskLittle(t *testing.T) {
	const workloads = 60
	s := scene{workloads: workloads, demand: slices.Repeat([]float64{3}, workloads), nodes: [][]int{make([]int, workloads)}, room: []int{8}, objective: place.Objective{Mean: 1}}
	s.nodes[0][0] = 2
	e, states := s.begin(placetest.Model{}, inOrder(workloads))
	before := e.values.Len()
	encoded(e, states, 1)
	// Each of the three prices and each of the two co-locations looks ahead.
	if most := 2 * nearby * (1 + 3*pathSteps); e.values.Len()-before > most {
		t.Errorf("%d co-locations, more than %d", e.values.Len()-before, most)
	}
}

// late is a placetest.Model whose latencies go up by a factor where two tasks meet.
type late struct {
	placetest.Model
	times float64
}

func (m late) Predict(class string, metric history.Metric, cs []cluster.Colocation) [][]interference.Estimate {
	rows := m.Model.Predict(class, metric, cs)
	for i, c := range cs {
		for j := range rows[i] {
			if metric == history.P99 && c.Tasks() > 1 {
				rows[i][j].Value = m.times
			}
		}
	}
	return rows
}

func TestSteep(t *testing.T) {
	for _, c := range []struct {
		objective place.Objective
		times     float64
		want      bool
	}{
		{place.Objective{Mean: 1}, 30, false},
		{place.TailLatency, 1.5, false},
		{place.TailLatency, 30, true},
		{place.Objective{Mean: 1, P99: 1e-4}, 30, false},
		{place.Objective{Mean: 1, Worst: 0.1}, 1, true},
	} {
		v := place.NewValues(late{times: c.times}, c.objective, []string{"w00", "w01"}, []int{4, 4}, 0)
		if got := Steep(v, "any", []int{0, 1}); got != c.want {
			t.Errorf("%+v, latencies %g times as long: steep %v", c.objective, c.times, got)
		}
	}
}
