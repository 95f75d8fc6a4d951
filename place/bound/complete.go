package bound

import (
	"cmp"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// completions bounds the steps of the search for any placement of all tasks.
const completions = 50_000

// complete looks for any placement of all tasks where rounding and repair
// left some: from scratch, depth first, the task with the fewest nodes next.
// Rules across nodes, such as anti-affinity over zones, can make the plan of
// the relaxation impossible to mend.
func (s *solution) complete() {
	if s.q.left() == 0 {
		return
	}
	t := s.q.trial
	old := s.clear()
	left := slices.Clone(s.q.problem.demand)
	steps := completions
	if s.placeAll(left, &steps) {
		clear(s.q.demand)
		return
	}
	s.clear()
	for n, counts := range old {
		move(t, counts, n, (*place.Trial).Put)
	}
}

// counts tells where the pending tasks are: by node and kind.
func (s *solution) counts() [][]int {
	t := s.q.trial
	out := make([][]int, len(t.Snapshot().Nodes()))
	for n := range out {
		out[n] = make([]int, t.Kinds())
		for k := range out[n] {
			out[n][k] = t.PutOn(k, n)
		}
	}
	return out
}

// clear takes all pending tasks off and returns where they were.
func (s *solution) clear() [][]int {
	old := s.counts()
	for n, counts := range old {
		move(s.q.trial, counts, n, (*place.Trial).Take)
	}
	return old
}

// placeAll puts the tasks left by kind; false, with the trial as it was, where
// there is no way or the steps run out.
func (s *solution) placeAll(left []int, steps *int) bool {
	t := s.q.trial
	next, nodes := -1, []int(nil)
	for k, n := range left {
		if n == 0 {
			continue
		}
		var fit []int
		for node := range t.Snapshot().Nodes() {
			if t.Check(k, node) == cluster.Fits {
				fit = append(fit, node)
			}
		}
		if next < 0 || len(fit) < len(nodes) {
			next, nodes = k, fit
		}
	}
	if next < 0 {
		return true
	}
	slices.SortStableFunc(nodes, func(a, b int) int { return cmp.Compare(t.Gain(next, b), t.Gain(next, a)) })
	left[next]--
	defer func() { left[next]++ }()
	for _, n := range nodes {
		if *steps--; *steps < 0 {
			return false
		}
		t.Put(next, n)
		if s.placeAll(left, steps) {
			return true
		}
		t.Take(next, n)
	}
	return false
}
