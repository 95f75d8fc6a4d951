package profile

import (
	"math/rand"
	"slices"

	"github.com/cotenant/cotenant/cluster"
)

// Colocations lists every multiset of 1..k tasks of the workloads: by size,
// then in the order of the workloads. There are C(n+k, k) - 1 of them.
func Colocations(workloads []string, k int) []cluster.Colocation {
	var out []cluster.Colocation
	counts := make([]int, len(workloads))
	var fill func(at, left int)
	fill = func(at, left int) {
		if at == len(workloads)-1 {
			counts[at] = left
			out = append(out, fromCounts(workloads, counts))
			counts[at] = 0
			return
		}
		for n := left; n >= 0; n-- {
			counts[at] = n
			fill(at+1, left-n)
		}
		counts[at] = 0
	}
	for size := 1; size <= k && len(workloads) > 0; size++ {
		fill(0, size)
	}
	return out
}

func fromCounts(workloads []string, counts []int) cluster.Colocation {
	c := cluster.Colocation{}
	for i, n := range counts {
		if n > 0 {
			c[workloads[i]] = n
		}
	}
	return c
}

// SpaceFilling chooses n of the co-locations of up to k tasks: the alone ones
// first, then always one that is farthest (Euclidean, on counts) from all
// chosen so far. Ties go by the seed.
func SpaceFilling(workloads []string, k, n int, seed int64) []cluster.Colocation {
	all := Colocations(workloads, k)
	if n >= len(all) {
		return all
	}
	rng := rand.New(rand.NewSource(seed))
	alone := min(len(workloads), n)
	chosen, rest := slices.Clone(all[:alone]), slices.Clone(all[alone:])
	rng.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	distance := func(a, b cluster.Colocation) int {
		d := 0
		for _, w := range workloads {
			d += (a[w] - b[w]) * (a[w] - b[w])
		}
		return d
	}
	nearest := make([]int, len(rest))
	for i, c := range rest {
		nearest[i] = int(^uint(0) >> 1)
		for _, a := range chosen {
			nearest[i] = min(nearest[i], distance(c, a))
		}
	}
	for len(chosen) < n {
		best := 0
		for i := range rest {
			if nearest[i] > nearest[best] {
				best = i
			}
		}
		chosen = append(chosen, rest[best])
		for i, c := range rest {
			nearest[i] = min(nearest[i], distance(c, rest[best]))
		}
	}
	return chosen
}

// Step is one start of a co-location, and how many repeats of it must be on
// record when the step is done.
type Step struct {
	Colocation cluster.Colocation
	Repeats    int
}

// Plan orders the co-locations by the seed, once per pass, and puts alone-runs
// of each workload in turn between them, so that drift shows.
func Plan(colocations []cluster.Colocation, m Measure, seed int64) []Step {
	rng := rand.New(rand.NewSource(seed))
	var names []string
	for _, c := range colocations {
		for _, w := range c.Workloads() {
			if !slices.Contains(names, w) {
				names = append(names, w)
			}
		}
	}
	slices.Sort(names)
	var steps []Step
	want := map[string]int{}
	add := func(c cluster.Colocation) {
		want[c.Key()] += m.Repeats
		steps = append(steps, Step{c, want[c.Key()]})
	}
	since, turn := 0, 0
	for range m.Passes {
		order := slices.Clone(colocations)
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, c := range order {
			add(c)
			if since++; m.AloneEvery > 0 && since == m.AloneEvery {
				add(cluster.Colocation{names[turn%len(names)]: 1})
				since = 0
				turn++
			}
		}
	}
	return steps
}
