package profile

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
)

func keys(cs []cluster.Colocation) []string {
	out := make([]string, len(cs))
	for i, c := range cs {
		out[i] = c.Key()
	}
	return out
}

func TestColocationsListsEveryMultisetOnce(t *testing.T) {
	if got := fmt.Sprint(keys(Colocations([]string{"a", "b"}, 2))); got != "[a b a*2 a+b b*2]" {
		t.Errorf("%s", got)
	}
	six := keys(Colocations([]string{"a", "b", "c", "d", "e", "f"}, 4))
	slices.Sort(six)
	if len(six) != 209 || len(slices.Compact(six)) != 209 {
		t.Errorf("%d co-locations of 6 workloads up to 4 tasks, want 209", len(six))
	}
	if got := Colocations(nil, 3); got != nil {
		t.Errorf("of no workloads: %v", got)
	}
}

func TestSpaceFillingSpreadsOut(t *testing.T) {
	names := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 4).Draw(t, "k")
		n := rapid.IntRange(1, 40).Draw(t, "n")
		seed := rapid.Int64().Draw(t, "seed")
		got := SpaceFilling(names, k, n, seed)
		all := Colocations(names, k)
		if len(got) != min(n, len(all)) {
			t.Fatalf("%d chosen of %d, asked for %d", len(got), len(all), n)
		}
		k1 := keys(got)
		if !slices.Equal(k1, keys(SpaceFilling(names, k, n, seed))) {
			t.Fatal("the same seed chose otherwise")
		}
		slices.Sort(k1)
		if len(slices.Compact(k1)) != len(got) {
			t.Fatal("chosen twice")
		}
		if n >= 3 && !got[0].Alone() {
			t.Fatal("the alone-runs are missing")
		}
		// No co-location that was left out is farther from the chosen ones than
		// the last one chosen was from those before it.
		if len(got) == len(all) || len(got) <= 3 {
			return
		}
		last, before := got[len(got)-1], got[:len(got)-1]
		for _, c := range all {
			if !slices.Contains(k1, c.Key()) && nearestTo(c, before) > nearestTo(last, before)+1e-9 {
				t.Fatalf("%s would have been farther than %s", c.Key(), last.Key())
			}
		}
	})
}

func nearestTo(c cluster.Colocation, chosen []cluster.Colocation) float64 {
	best := math.Inf(1)
	for _, o := range chosen {
		d := 0.0
		for _, w := range []string{"a", "b", "c"} {
			d += float64((c[w] - o[w]) * (c[w] - o[w]))
		}
		best = min(best, math.Sqrt(d))
	}
	return best
}

func TestPlanPutsAloneRunsBetween(t *testing.T) {
	all := Colocations([]string{"a", "b"}, 3)
	plan := Plan(all, Measure{Repeats: 2, Passes: 2, AloneEvery: 3}, 1)
	if len(plan) != 2*len(all)+2*len(all)/3 {
		t.Fatalf("%d steps", len(plan))
	}
	want := map[string]int{}
	extra := 0
	for i, s := range plan {
		key := s.Colocation.Key()
		if want[key] += 2; s.Repeats != want[key] {
			t.Errorf("step %d: %s to %d repeats, want %d", i, key, s.Repeats, want[key])
		}
		if i%4 == 3 {
			extra++
			if !s.Colocation.Alone() {
				t.Errorf("step %d is %s, want an alone-run", i, key)
			}
		}
	}
	if want["a"] < 4+2*extra/2-2 || want["b"] < 4+2*extra/2-2 {
		t.Errorf("alone-runs are uneven: %v", want)
	}
	if fmt.Sprint(plan) != fmt.Sprint(Plan(all, Measure{Repeats: 2, Passes: 2, AloneEvery: 3}, 1)) {
		t.Error("the same seed planned otherwise")
	}
	if fmt.Sprint(plan) == fmt.Sprint(Plan(all, Measure{Repeats: 2, Passes: 2, AloneEvery: 3}, 2)) {
		t.Error("the seed changes nothing")
	}
}
