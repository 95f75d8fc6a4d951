package bound

import (
	"math"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// divisions is how many ways to divide the tasks of two nodes are tried at most:
// of many unlike workloads there are too many, and each would be a co-location
// to ask the model about.
// allDivisions bounds them over one improvement.
const (
	divisions    = 6000
	allDivisions = 2_000_000
)

// gap is how near the bound, relatively, is near enough to stop improving, and
// restartGap near enough not to begin anew.
const (
	gap        = 2e-5
	restartGap = 4e-4
)

// improve re-divides the pending tasks of two nodes in the best way, for each
// pair of unlike nodes, until no pair gains or the bound is as good as
// reached.
func (s *solution) improve(req place.Request) {
	t := s.q.trial
	s.divided = 0
	for round := 0; round < 50; round++ {
		if s.bound-t.Value() <= gap*math.Abs(s.bound) {
			return
		}
		changed := false
		reps := s.representatives()
		for i := range reps {
			for j := i; j < len(reps); j++ {
				a, b := reps[i][0], reps[j][0]
				if i == j {
					if len(reps[i]) < 2 {
						continue
					}
					b = reps[i][1]
				}
				if req.Stopped() || s.divided > allDivisions {
					return
				}
				if s.divide(a, b) {
					changed = true
				}
			}
		}
		if !changed {
			return
		}
	}
}

// representatives are the nodes grouped by class and co-location.
func (s *solution) representatives() [][]int {
	t := s.q.trial
	type key struct {
		class int
		c     place.Config
	}
	index := map[key]int{}
	var out [][]int
	for i := range s.q.classes {
		for _, n := range s.q.classes[i].nodes {
			k := key{i, t.Config(n)}
			at, ok := index[k]
			if !ok {
				at = len(out)
				index[k] = at
				out = append(out, nil)
			}
			out[at] = append(out[at], n)
		}
	}
	return out
}

// divide finds the best division of the pending tasks on two nodes between
// them and makes it so; false where the present one is best.
func (s *solution) divide(a, b int) bool {
	t := s.q.trial
	o := t.Values.Objective()
	worth := func() float64 {
		va, vb := t.Values.Value(t.Config(a)), t.Values.Value(t.Config(b))
		sum := s.q.worth(a) + s.q.worth(b)
		if o.Worst > 0 {
			sum += o.Worst * min(va.Worst, vb.Worst, 1e9)
		}
		return sum
	}
	before := worth()
	excess := s.q.excess()
	total := make([]int, t.Kinds())
	onA := make([]int, t.Kinds())
	var kinds []int
	ways := 1
	for k := range total {
		onA[k] = t.PutOn(k, a)
		total[k] = onA[k] + t.PutOn(k, b)
		if total[k] > 0 {
			kinds = append(kinds, k)
			ways *= total[k] + 1
		}
		if ways > divisions {
			return false
		}
	}
	s.divided += ways
	for _, k := range kinds {
		for range onA[k] {
			t.Take(k, a)
		}
		for range total[k] - onA[k] {
			t.Take(k, b)
		}
	}
	fits := func(k, n int) bool {
		r := t.Check(k, n)
		return r == cluster.Fits || r == cluster.Skewed
	}
	best := before + 1e-12 + 1e-9*math.Abs(before)
	var bestA []int
	now := make([]int, t.Kinds())
	var try func(i int)
	try = func(i int) {
		if i == len(kinds) {
			if w := worth(); w > best && s.q.excess() <= excess {
				best = w
				bestA = append(bestA[:0], now...)
			}
			return
		}
		k := kinds[i]
		// All on b, as far as they fit, then one by one to a.
		onB := 0
		for onB < total[k] && fits(k, b) {
			t.Put(k, b)
			onB++
		}
		n := 0
		for {
			if n+onB >= total[k] {
				now[k] = n
				try(i + 1)
			}
			if n == total[k] || !fits(k, a) {
				break
			}
			if n+onB == total[k] {
				t.Take(k, b)
				onB--
			}
			t.Put(k, a)
			n++
		}
		for range n {
			t.Take(k, a)
		}
		for range onB {
			t.Take(k, b)
		}
		now[k] = 0
	}
	try(0)
	if bestA == nil {
		bestA = onA
		for _, k := range kinds {
			for range onA[k] {
				t.Put(k, a)
			}
			for range total[k] - onA[k] {
				t.Put(k, b)
			}
		}
		return false
	}
	for _, k := range kinds {
		for range bestA[k] {
			t.Put(k, a)
		}
		for range total[k] - bestA[k] {
			t.Put(k, b)
		}
	}
	return true
}
