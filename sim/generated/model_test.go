package generated

import (
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"pgregory.net/rapid"
)

func TestGeneratedTruth(t *testing.T) {
	g := New(30, 1)
	rapid.Check(t, func(t *rapid.T) {
		c := cluster.Colocation{}
		for range rapid.IntRange(1, 8).Draw(t, "tasks") {
			c[rapid.SampledFrom(g.workloads).Draw(t, "workload")]++
		}
		for i, e := range g.Predict("", history.Rate, []cluster.Colocation{c})[0] {
			w := c.Workloads()[i]
			if !e.Known || !(e.Value > 0) || e.Value > 1.2 {
				t.Fatalf("%s in %s performs at %+v", w, c.Key(), e)
			}
			if c.Alone() && e.Value != 1 {
				t.Fatalf("%s alone performs at %g, not 1", w, e.Value)
			}
		}
	})
	if a, b := New(5, 1), New(5, 2); a.pressure[0][0] == b.pressure[0][0] {
		t.Error("two seeds make the same workloads")
	}
	if n := g.Batch(600, 0).Tasks(); n != 600 {
		t.Errorf("a batch of 600 tasks has %d", n)
	}
}
