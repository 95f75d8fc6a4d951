package bound_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/place/bound"
	"github.com/cotenant/cotenant/place/placetest"
	"pgregory.net/rapid"
)

// searched is greedy-search's plan.
func searched(t rapid.TB, req place.Request, m interference.Model, seed uint64) (float64, int) {
	t.Helper()
	p, err := baseline.New("greedy-search", baseline.Options{Model: m})
	if err != nil {
		t.Fatal(err)
	}
	req.Rand = rand.New(rand.NewPCG(seed, 4))
	return placetest.Worth(t, p, req, m)
}

// TestNotBelowGreedySearch has batches on which every rounding ends below what
// exchanges reach, which on the first is the best plan of whole tasks.
func TestNotBelowGreedySearch(t *testing.T) {
	m := metisTruth(t)
	for file, rows := range map[string][]int{"batches-200.csv": {6, 12}, "batches-300.csv": {5, 7, 8, 10, 15, 19}} {
		for _, row := range rows {
			t.Run(fmt.Sprint(file, ":", row), func(t *testing.T) {
				req := request(t, cluster.Spec{Nodes: cluster.Nodes("", 81, 1, 8)}, metisBatch(t, file, row))
				got, held := placetest.Worth(t, bound.New(m, bound.Options{}), req, m)
				for seed := range uint64(3) {
					if least, _ := searched(t, req, m, seed); held > 0 || got < least-1e-9 {
						t.Errorf("%.7f with %d held, greedy-search with seed %d has %.7f", got, held, seed, least)
					}
				}
			})
		}
	}
}

// TestPropertyNotBelowGreedySearch: on small clusters under every kind of rule.
func TestPropertyNotBelowGreedySearch(t *testing.T) {
	objectives := []place.Objective{
		place.MeanPerformance, place.WorstPerformance, place.TailLatency, place.NodesUsed,
		{Mean: 1, Worst: 0.5, Nodes: 0.1},
		{Mean: 1, Traffic: 0.5},
	}
	rapid.Check(t, func(t *rapid.T) {
		req, m := smallRequest(t, rapid.SampledFrom(objectives).Draw(t, "objective"))
		if _, err := bound.Compute(req, m, bound.Options{}); errors.Is(err, bound.ErrInfeasible) {
			return
		}
		got, held := placetest.Worth(t, bound.New(m, bound.Options{}), req, m)
		least, others := searched(t, req, m, rapid.Uint64Range(0, 9).Draw(t, "seed"))
		if held > others || held == others && got < least-1e-9 {
			t.Fatalf("%g with %d held, greedy-search %g with %d", got, held, least, others)
		}
	})
}

// unsure predicts what has three tasks or more, and says the more of it.
type unsure struct{ hashed }

func (u unsure) Predict(class string, metric history.Metric, cs []cluster.Colocation) [][]interference.Estimate {
	rows := u.hashed.Predict(class, metric, cs)
	for i, c := range cs {
		if c.Tasks() > 2 {
			for j := range rows[i] {
				rows[i][j].Value += 2
				rows[i][j].Measured = false
			}
		}
	}
	return rows
}

// TestMeasuredStaysAmongMeasurements: the exchanges of a policy that plans on
// what is measured see nothing else, however good a model says it is.
func TestMeasuredStaysAmongMeasurements(t *testing.T) {
	for seed := range uint64(20) {
		m := unsure{hashed{seed}}
		req := request(t, cluster.Spec{Nodes: cluster.Nodes("", 6, 0, 4)}, map[string]int{"a": 3, "b": 4, "c": 3})
		d, err := bound.NewMeasured(m, bound.Options{}).Place(req)
		if err != nil {
			t.Fatal(err)
		}
		e, err := place.Evaluate(req, d, m)
		if err != nil || e.Held > 0 {
			t.Fatal(e.Held, err)
		}
		for n := range req.View.Nodes() {
			if c := e.Placement.Colocation(n); c.Tasks() > 2 {
				t.Errorf("seed %d: %s was not measured", seed, c.Key())
			}
		}
		again, err := bound.NewMeasured(m, bound.Options{}).Place(req)
		if err != nil || !reflect.DeepEqual(again, d) {
			t.Errorf("seed %d: the second plan of the same request differs, or %v", seed, err)
		}
	}
}
