package contention

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// filling is the max-min fair allocation by raising everybody's rate per
// weight together in small steps: the definition, slowly.
func filling(capacity float64, claims []claim) []float64 {
	const steps = 20000
	got := make([]float64, len(claims))
	highest := 0.0
	for _, c := range claims {
		highest = max(highest, c.rate/c.weight)
	}
	for s := 1; s <= steps; s++ {
		level, next, used := highest*float64(s)/steps, make([]float64, len(claims)), 0.0
		for i, c := range claims {
			next[i] = min(c.rate, level*c.weight)
			used += next[i]
		}
		if used > capacity {
			break
		}
		got = next
	}
	return got
}

// meanFilling is share by its definition: over every case of who is there.
func meanFilling(capacity float64, own claim, others []claim) float64 {
	mean := 0.0
	for set := range 1 << len(others) {
		there, p := []claim{own}, 1.0
		for i, o := range others {
			if set>>i&1 == 1 {
				there = append(there, o)
				p *= o.busy
			} else {
				p *= 1 - o.busy
			}
		}
		mean += p * filling(capacity, there)[0]
	}
	return mean
}

func drawClaim(t *rapid.T, name string) claim {
	return claim{
		rate:   rapid.Float64Range(0.01, 10).Draw(t, name+" rate"),
		weight: float64(rapid.IntRange(1, 4).Draw(t, name+" weight")),
		busy:   rapid.Float64Range(0, 1).Draw(t, name+" busy"),
	}
}

func drawClaims(t *rapid.T, most int) []claim {
	others := make([]claim, rapid.IntRange(0, most).Draw(t, "others"))
	for i := range others {
		others[i] = drawClaim(t, "other")
	}
	return others
}

func TestPropertyShareIsMaxMinFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.Float64Range(0.1, 20).Draw(t, "capacity")
		own, others := drawClaim(t, "own"), drawClaims(t, 4)
		want := meanFilling(capacity, own, others)
		got := share(capacity, own, slices.Clone(others))
		if math.Abs(got-want) > 2e-3*max(own.rate, 10) {
			t.Fatalf("share %g, progressive filling %g", got, want)
		}
	})
}

func TestPropertyShareFallsWithNeighbours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.Float64Range(0.1, 20).Draw(t, "capacity")
		own, others := drawClaim(t, "own"), drawClaims(t, toldApart-1)
		own.rate = min(own.rate, capacity)
		before := share(capacity, own, slices.Clone(others))
		if before > own.rate || before <= 0 {
			t.Fatalf("share %g of a claim of %g", before, own.rate)
		}
		worse := slices.Clone(others)
		if n := rapid.IntRange(0, len(worse)).Draw(t, "which"); n < len(worse) {
			worse[n].busy = min(1, worse[n].busy*rapid.Float64Range(1, 2).Draw(t, "busier"))
		} else {
			worse = append(worse, drawClaim(t, "new"))
		}
		if after := share(capacity, own, worse); after > before*(1+1e-12) {
			t.Fatalf("share rose from %g to %g", before, after)
		}
	})
}

func TestPropertyShareIgnoresOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own, others := drawClaim(t, "own"), drawClaims(t, 13)
		if len(others) > 2 {
			others[1].rate, others[1].weight = others[0].rate, others[0].weight
		}
		a := share(5, own, slices.Clone(others))
		if b := share(5, own, rapid.Permutation(others).Draw(t, "shuffled")); a != b {
			t.Fatalf("%v and %v by order", a, b)
		}
	})
}

// Three tasks at 6, 3 and 1 share 8: the modest get 1 and 3, and 4 is left for
// the greedy. When the one at 3 is away half of the time, he gets 4 or all 6.
func TestShareByHand(t *testing.T) {
	own := claim{rate: 6, weight: 1}
	for _, c := range []struct {
		others []claim
		want   float64
	}{
		{nil, 6},
		{[]claim{{3, 1, 1}, {1, 1, 1}}, 4},
		{[]claim{{3, 1, 0.5}, {1, 1, 1}}, 5},
		{[]claim{{8, 1, 1}}, 4},
		{[]claim{{8, 3, 1}}, 2},
		{[]claim{{8, 3, 0}}, 6},
	} {
		if got := share(8, own, c.others); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("beside %v: %g, want %g", c.others, got, c.want)
		}
	}
}
