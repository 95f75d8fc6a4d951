package history_test

import (
	"slices"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

func TestSplitMisfits(t *testing.T) {
	in := func(class string, scope history.Scope, workload, other string, value, alone float64) history.Sample {
		c := cluster.Colocation{workload: 1}
		c[other]++
		return history.Sample{Class: class, Scope: scope, Colocation: c, Workload: workload, Metric: history.Rate, Value: value, Alone: alone}
	}
	samples := []history.Sample{
		aloneRate("k80", "a", 1, "", 3),
		aloneRate("k80", "b", 1, "", 0),
		in("k80", history.ScopeDevice, "a", "b", 0, 3),
		in("k80", history.ScopeDevice, "b", "a", 7, 9), // of a pair that does not fit: nonsense
		in("k80", history.ScopeDevice, "a", "a", 2, 3),
		in("v100", history.ScopeDevice, "a", "b", 5, 6),
		in("v100", history.ScopeDevice, "c", "c", 0, 6),
		in("v100", history.ScopeNode, "c", "c", 0, 6),   // stalled: a node has no such limit
		in("v100", history.ScopeDevice, "d", "c", 0, 0), // rate alone unknown
	}
	fit, m := history.SplitMisfits(samples)
	var got []string
	for _, s := range fit {
		got = append(got, s.Class+" "+string(s.Scope)+" "+s.Colocation.Key())
	}
	want := []string{"k80 device a", "k80 device b", "k80 device a*2", "v100 device a+b", "v100 node c*2", "v100 device c+d"}
	if !slices.Equal(got, want) {
		t.Errorf("fit %v; want %v", got, want)
	}
	if m.Len() != 2 || !m.Has("k80", "a+b") || !m.Has("v100", "c*2") || m.Has("v100", "a+b") || m.Has("t4", "a+b") {
		t.Errorf("misfits %v and %v", m.Keys("k80"), m.Keys("v100"))
	}
	if again, none := history.SplitMisfits(fit); len(again) != len(fit) || none.Len() != 0 {
		t.Errorf("split again: %d of %d, %d misfits", len(again), len(fit), none.Len())
	}
	var none *history.Misfits
	if none.Has("k80", "a+b") || none.Len() != 0 || none.Keys("k80") != nil {
		t.Error("nil misfits are not empty")
	}
}
