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
	// that the plan had on another node than the one on which they are. Alike nodes
	// are exchangeable: OtherNeighbours of those with a plan would be on a node of
	// another class, or beside others.
	Pods            int `json:"pods"`
	WithPlan        int `json:"with_plan"`
	Elsewhere       int `json:"elsewhere"`
	OtherNeighbours int `json:"other_neighbours"`
	// The other pods have no plan: of Unplanned the scheduler said why in the mode
	// shadow, Decided were placed in the modes assist and enforce, and of Unrecorded
	// there is no record: another scheduler's, of namespaces to ignore, or older than
	// events are kept.
	Unplanned  int `json:"unplanned"`
	Decided    int `json:"decided"`
	Unrecorded int `json:"unrecorded"`
	// NoRoom of those stay where they are in this account, since all plans
	// together leave no room on the node of theirs: others than those that were
	// planned for came there after the plan.
	NoRoom int `json:"no_room"`
	// Unknown pods run beside those, of UnknownWorkloads that the world's model does
	// not know; of Unjudged of them the scheduler, in the mode shadow, said so.
	Unknown          int      `json:"unknown"`
	UnknownWorkloads []string `json:"unknown_workloads"`
	Unjudged         int      `json:"unjudged"`
	// Valued pods are those about which the model knows both; the means are over
	// them, 1 is as fast as alone. Null where there is none, Planned also where no
	// pod of the cluster has a plan.
	Valued  int      `json:"valued"`
	Actual  *float64 `json:"mean_performance"`
	Planned *float64 `json:"mean_performance_planned"`
	// Gain is Planned/Actual - 1; null also where more than a tenth of Pods are not
	// Valued: those are the ones in crowds that nobody measured, and what is said of the
	// others is biased.
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
	plans := map[cluster.TaskID]bool{}  // those with one
	var moved []move
	var unknown []string
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
			if p.Node != "" && !p.Ended() && one > 0 {
				s.Unknown++
				unknown = append(unknown, p.Workload)
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
		switch {
		case d != nil && d.Mode != "shadow":
			s.Decided += one
			continue
		case d != nil && d.Planned != "" && d.Node == p.Node:
			s.WithPlan += one
			plans[id] = true
		case out.unjudged(p):
			s.Unplanned += one
			continue
		default:
			s.Unrecorded += one
			continue
		}
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
	slices.Sort(unknown)
	s.UnknownWorkloads = append([]string{}, slices.Compact(unknown)...)
	w.compare(&s, actual, planned, told, plans)
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

// compare takes the means over those of the told about which the model knows both,
// and counts those with plans that would have other neighbours.
func (w *World) compare(s *Shadow, actual, planned map[cluster.TaskID]int, told, plans map[cluster.TaskID]bool) {
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
		if is, was := planned[id], actual[id]; plans[id] && (w.class[is] != w.class[was] || after[is].Key() != before[was].Key()) {
			s.OtherNeighbours++
		}
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
	byPlans := func(sum float64, n int) *float64 {
		if len(plans) == 0 {
			return nil
		}
		return mean(sum, n)
	}
	s.Actual, s.Planned = mean(all.before, all.valued), byPlans(all.after, all.valued)
	if s.Planned != nil && 10*s.Valued >= 9*s.Pods {
		s.Gain = Finite(all.after/all.before - 1)
	}
	s.Workloads = []ShadowWorkload{}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		of := by[name]
		s.Workloads = append(s.Workloads, ShadowWorkload{name, of.pods, of.valued, mean(of.before, of.valued), byPlans(of.after, of.valued)})
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
