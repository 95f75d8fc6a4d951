package explain

import (
	"maps"
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
)

// Shadow is what a scheduler in the mode shadow would have done, and what it
// would have been worth.
type Shadow struct {
	// Pods run, and are of workloads that the model knows; WithPlan are those for
	// which a plan was recorded while they were placed, Elsewhere those of them
	// that the plan had on another node than the one on which they are.
	Pods      int `json:"pods"`
	WithPlan  int `json:"with_plan"`
	Elsewhere int `json:"elsewhere"`
	// NoRoom of those stay where they are in this account, since all plans
	// together leave no room on the node of theirs: others than those that were
	// planned for came there after the plan.
	NoRoom int `json:"no_room"`
	// Unjudged pods run beside those: the scheduler, in the mode shadow, said why it
	// could not judge them, and the world's model does not know their workloads.
	Unjudged int `json:"unjudged"`
	// Valued pods are those about which the model knows both; the means are over
	// them, 1 is as fast as alone. Null where there is none.
	Valued  int      `json:"valued"`
	Actual  *float64 `json:"mean_performance"`
	Planned *float64 `json:"mean_performance_planned"`
	// Gain is Planned/Actual - 1.
	Gain *float64 `json:"gain"`
	// Silent are co-locations about which the model is silent, sorted.
	Silent    []string         `json:"silent"`
	Workloads []ShadowWorkload `json:"workloads"`
}

// ShadowWorkload is the same of the pods of one workload.
type ShadowWorkload struct {
	Workload string   `json:"workload"`
	Pods     int      `json:"pods"`
	Valued   int      `json:"valued"`
	Actual   *float64 `json:"mean_performance"`
	Planned  *float64 `json:"mean_performance_planned"`
}

// Shadow compares where the pods of a namespace are, "" for all, with where the
// plans would have put them, by the world's model. Pods of other namespaces are
// where their plans have them, too, beside those that are told of.
func (w *World) Shadow(out *Objects, namespace string) Shadow {
	var s Shadow
	actual := map[cluster.TaskID]int{}  // node of each known task
	planned := map[cluster.TaskID]int{} // the same, as the plans have it
	told := map[cluster.TaskID]bool{}   // pods of the namespace
	var moved []move
	for _, p := range out.Pods {
		id := cluster.TaskID(p.ID())
		i, ok := w.at[id]
		one := 0
		if namespace == "" || p.Namespace == namespace {
			one, told[id] = 1, true
		}
		if !ok {
			if out.unjudged(p) {
				s.Unjudged += one
			}
			continue
		}
		here, ok := w.index[w.spec.Running[i].Node]
		if !ok || !w.knows(here, w.spec.Running[i].Workload) {
			continue
		}
		s.Pods += one
		actual[id], planned[id] = here, here
		d := p.Decision
		if of, ok := out.shadowDecision(p); ok {
			d = &of
		}
		if d == nil || d.Mode != "shadow" || d.Planned == "" || d.Node != p.Node {
			continue
		}
		s.WithPlan += one
		if d.Planned == p.Node {
			continue
		}
		s.Elsewhere += one
		to, ok := w.index[d.Planned]
		if !ok || !w.knows(to, w.spec.Running[i].Workload) {
			s.NoRoom += one // that node is gone
			continue
		}
		planned[id] = to
		moved = append(moved, move{id, d.Plan})
	}
	for _, id := range w.settle(actual, planned, moved) {
		if told[id] {
			s.NoRoom++
		}
	}
	w.compare(&s, actual, planned, told)
	return s
}

// unjudged reports whether a scheduler in the mode shadow said of a pod that is
// placed why it could not judge it: in the other modes it records a decision, too.
func (out *Objects) unjudged(p *Pod) bool {
	_, told := out.last(p, FallbackEvent)
	return told && p.Node != "" && !p.Ended() && p.Decision == nil
}

type move struct {
	id   cluster.TaskID
	plan int
}

// settle takes moves back, the latest plans' first, until no node holds more
// than it can because of one, and lists the tasks that stay.
func (w *World) settle(actual, planned map[cluster.TaskID]int, moved []move) (stay []cluster.TaskID) {
	slices.SortStableFunc(moved, func(a, b move) int { return a.plan - b.plan })
	for {
		full := w.full(planned)
		at := -1
		for i := len(moved) - 1; i >= 0 && at < 0; i-- {
			if full[planned[moved[i].id]] {
				at = i
			}
		}
		if at < 0 {
			return stay
		}
		planned[moved[at].id] = actual[moved[at].id]
		stay = append(stay, moved[at].id)
		moved = slices.Delete(moved, at, at+1)
	}
}

// full are the nodes that hold more than they can.
func (w *World) full(planned map[cluster.TaskID]int) []bool {
	full := make([]bool, len(w.spec.Nodes))
	tasks := make([]int, len(w.spec.Nodes))
	used := make([]cluster.Resources, len(w.spec.Nodes))
	for _, r := range w.spec.Running {
		i, ok := planned[r.ID]
		if !ok {
			if i, ok = w.index[r.Node]; !ok {
				continue
			}
		} else {
			tasks[i]++
		}
		if used[i] == nil {
			used[i] = cluster.Resources{}
		}
		for name, n := range r.Requests {
			used[i][name] += n
		}
	}
	for i := range full {
		n := &w.spec.Nodes[i]
		full[i] = n.Slots > 0 && tasks[i] > n.Slots
		for name, amount := range used[i] {
			full[i] = full[i] || amount > n.Capacity[name]
		}
	}
	return full
}

// compare takes the means over those of the told about which the model knows both.
func (w *World) compare(s *Shadow, actual, planned map[cluster.TaskID]int, told map[cluster.TaskID]bool) {
	before, after := w.counts(actual), w.counts(planned)
	type sums struct {
		pods, valued  int
		before, after float64
	}
	by := map[string]*sums{}
	var all sums
	silent := map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(actual)) {
		if !told[id] {
			continue
		}
		name := w.spec.Running[w.at[id]].Workload
		of := by[name]
		if of == nil {
			of = &sums{}
			by[name] = of
		}
		of.pods++
		was := w.performance(actual[id], before[actual[id]], name)
		is := w.performance(planned[id], after[planned[id]], name)
		if math.IsNaN(was) {
			silent[before[actual[id]].Key()] = true
		}
		if math.IsNaN(is) {
			silent[after[planned[id]].Key()] = true
		}
		if math.IsNaN(was) || math.IsNaN(is) {
			continue
		}
		for _, sum := range []*sums{of, &all} {
			sum.valued++
			sum.before += was
			sum.after += is
		}
	}
	s.Silent = append([]string{}, slices.Sorted(maps.Keys(silent))...)
	s.Valued = all.valued
	mean := func(sum float64, n int) *float64 { return Finite(sum / float64(n)) }
	s.Actual, s.Planned, s.Gain = mean(all.before, all.valued), mean(all.after, all.valued), Finite(all.after/all.before-1)
	s.Workloads = []ShadowWorkload{}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		of := by[name]
		s.Workloads = append(s.Workloads, ShadowWorkload{name, of.pods, of.valued, mean(of.before, of.valued), mean(of.after, of.valued)})
	}
}

func (w *World) counts(at map[cluster.TaskID]int) []cluster.Colocation {
	on := make([]cluster.Colocation, len(w.spec.Nodes))
	for i := range on {
		on[i] = cluster.Colocation{}
	}
	for id, i := range at {
		on[i][w.spec.Running[w.at[id]].Workload]++
	}
	return on
}
