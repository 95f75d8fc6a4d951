package main

import (
	"strings"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// guess predicts one half everywhere, with a deviation, and knows what is alone.
type guess struct{ std float64 }

func (guess) Kind() string              { return "guess" }
func (guess) Classes() []string         { return []string{""} }
func (guess) Workloads(string) []string { return []string{"a", "b"} }
func (g guess) Predict(_ string, _ history.Metric, cs []cluster.Colocation) [][]interference.Estimate {
	out := make([][]interference.Estimate, len(cs))
	for i, c := range cs {
		for range c.Workloads() {
			e := interference.Estimate{Value: .5, Std: g.std, Known: true}
			if c.Tasks() == 1 {
				e = interference.Estimate{Value: 1, Known: true, Measured: true}
			}
			out[i] = append(out[i], e)
		}
	}
	return out
}

// Policies that search are careful where the model is unsure, unless told
// otherwise, and only those.
func TestSearchesAreCarefulWhereTheModelIsUnsure(t *testing.T) {
	const search = "bound,greedy-search,metis,metis:divide=flat:search=on"
	specs, err := parsePolicies([]string{search + ",greedy,measured,metis:search=off,metis:divide=even,bound:pessimism=0,metis:pessimism=2"})
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := cluster.NewSnapshot(cluster.Spec{Nodes: cluster.Nodes("", 3, 1, 4)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ std, unsure, want float64 }{{.05, .1, 0}, {.12, .24, carefully}, {0, 0, 0}} {
		p := &planInput{
			source: &source{belief: guess{c.std}, beliefName: "the model"}, snapshot: snapshot, objective: place.MeanPerformance,
			batch: &batch{name: "batch", workloads: []string{"a", "b"}, counts: []int{2, 2}},
		}
		var log strings.Builder
		got := p.careful(&log, specs)
		if got != c.want || p.unsure != c.unsure || (c.want > 0) != strings.Contains(log.String(), "(median): "+strings.ReplaceAll(search, ",", ", ")+" take them lower") {
			t.Errorf("unsure by %g: careful by %g, doubt %g, says %q", 2*c.std, got, p.unsure, log.String())
		}
	}
}
