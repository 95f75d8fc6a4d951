package place

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/interference"
)

// Evaluation is what a decision is worth under a model.
type Evaluation struct {
	// Value is the objective (see Objective); where it Minimises, the measure
	// itself, lower better. Held tasks count as performance 0 in the mean and
	// are left out of worst and p99. NaN where Unknown is not empty.
	Value float64
	// Held is the number of pending tasks that were not placed.
	Held int
	// Unknown lists co-locations of the placement about which the model is
	// silent, sorted, once each.
	Unknown []string
	// Left lists the workloads left out of p99 for lack of measured latency.
	Left []string
	// Near is the mean near share (see Objective) of the placed tasks whose
	// workload has an edge to one with tasks, those left out that have none; NaN
	// where there is no such task or the objective has no weight on traffic.
	Near float64
	// Placement is what the decision makes of the cluster.
	Placement *cluster.Placement
}

// Evaluate values a decision under a model, which may be the truth or what a
// policy believed. It first checks that the decision is valid: every pending
// task bound or held exactly once, gangs whole, and every constraint kept at
// the end. Bindings only; a decision with moves is an error.
func Evaluate(req Request, d Decision, m interference.Model) (Evaluation, error) {
	if len(d.Move)+len(d.Resize) > 0 {
		return Evaluation{}, errors.New("evaluate: decisions that move or resize are judged by the simulator")
	}
	t := NewTrial(req, m, 0)
	if err := t.apply(req, d); err != nil {
		return Evaluation{}, err
	}
	e := Evaluation{Held: len(d.Hold), Placement: t.Placement}
	e.Near = t.near()
	if t.Values.objective.P99 != 0 {
		e.Left = t.Values.WithoutLatency()
	}
	for _, c := range t.configs {
		if !t.Values.Value(c).Known {
			e.Unknown = append(e.Unknown, t.Values.Colocation(c).Key())
		}
	}
	slices.Sort(e.Unknown)
	e.Unknown = slices.Compact(e.Unknown)
	e.Value = t.Value() + t.leaveHeldOut(m)
	if t.Values.objective.Minimises() {
		e.Value = -e.Value
	}
	if len(e.Unknown) > 0 {
		e.Value = math.NaN()
	}
	return e, nil
}

// leaveHeldOut is what Value lacks so that p99 is the mean over the tasks that
// were placed: Values divides by all tasks.
func (t *Trial) leaveHeldOut(m interference.Model) float64 {
	weight := t.Values.objective.P99
	if weight == 0 {
		return 0
	}
	total := make([]int, len(t.Workloads()))
	placed := 0
	for n := range t.configs {
		for w, k := range t.Counts(n) {
			total[w] += k
			if t.Values.tail[w] {
				placed += k
			}
		}
	}
	all := placed
	for i, n := range t.Assign() {
		if n < 0 && t.Values.tail[t.Workload(t.Kind(i))] {
			all++
		}
	}
	if placed == all {
		return 0
	}
	tails := NewValues(m, TailLatency, t.Workloads(), total, 0)
	sum := 0.0
	nodes := t.Snapshot().Nodes()
	for n := range t.configs {
		sum += tails.Value(tails.Of(nodes[n].Class, t.Counts(n))).Sum
	}
	return weight * sum * (1 - float64(placed)/float64(all))
}

// apply puts what the decision binds, after checking it.
func (t *Trial) apply(req Request, d Decision) error {
	number := make(map[cluster.TaskID]int, len(t.tasks))
	for i, task := range t.tasks {
		if _, twice := number[task.ID]; twice {
			return fmt.Errorf("pending task %q: listed twice", task.ID)
		}
		number[task.ID] = i
	}
	const held = -2
	at := slices.Repeat([]int{-1}, len(t.tasks))
	claim := func(id cluster.TaskID, node int) error {
		i, ok := number[id]
		if !ok {
			return fmt.Errorf("decision names task %q, which is not pending", id)
		}
		if at[i] != -1 {
			return fmt.Errorf("decision names task %q twice", id)
		}
		at[i] = node
		return nil
	}
	for _, b := range d.Bind {
		node, ok := req.View.NodeIndex(b.Node)
		if !ok {
			return fmt.Errorf("decision binds task %q to node %q, which is not in the cluster", b.Task, b.Node)
		}
		if err := claim(b.Task, node); err != nil {
			return err
		}
	}
	for _, h := range d.Hold {
		if err := claim(h.Task, held); err != nil {
			return err
		}
	}
	i := 0
	for _, g := range req.Pending {
		bound := 0
		for range g.Tasks {
			if at[i] == -1 {
				return fmt.Errorf("decision neither binds nor holds task %q", t.tasks[i].ID)
			}
			if at[i] >= 0 {
				bound++
			}
			i++
		}
		if g.Gang && bound > 0 && bound < len(g.Tasks) {
			return fmt.Errorf("decision binds %d of %d tasks of gang %q", bound, len(g.Tasks), g.Name)
		}
	}
	return t.putAll(at)
}

// putAll puts the tasks and checks the outcome. Only the outcome counts, not
// the order: what spread forbids halfway may be right at the end.
func (t *Trial) putAll(at []int) error {
	skew := make([]int, len(t.Workloads()))
	for w := range skew {
		skew[w] = t.Skew(w)
	}
	for i, node := range at {
		if node < 0 {
			continue
		}
		k := t.Kind(i)
		if r := t.Check(k, node); r != cluster.Fits && r != cluster.Skewed {
			return fmt.Errorf("decision breaks a constraint: task %q: %s", t.tasks[i].ID, t.Explain(k, node))
		}
		t.Put(k, node)
	}
	for w := range skew {
		if s := t.Skew(w); s > skew[w] {
			return fmt.Errorf("decision breaks a constraint: the spread of %s exceeds its max_skew by %d", t.Workloads()[w], s)
		}
	}
	return nil
}
