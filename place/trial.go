package place

import (
	"math"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/interference"
)

// Trial is a Placement that knows what it is worth: each node's co-location as
// a Config of Values. Policies search over it with Put and Take and turn it
// into a Decision at the end.
type Trial struct {
	*cluster.Placement
	Values *Values

	tasks   []cluster.Task
	configs []Config
	racks   *racks // nil where they do not count
	scratch []int
}

// NewTrial begins with the running tasks in place and the pending ones put
// nowhere. pessimism is that of NewValues.
func NewTrial(req Request, m interference.Model, pessimism float64) *Trial {
	t := &Trial{tasks: req.Tasks()}
	t.Placement = cluster.NewPlacement(req.View, t.tasks)
	total := t.total()
	t.Values = NewValues(m, req.Objective, t.Workloads(), total, pessimism)
	t.Values.traffic = newTraffic(req.View.Workloads(), t.Workloads(), total, t.Values.objective.Traffic)
	if t.Values.traffic != nil {
		t.racks = newRacks(t.Placement)
	}
	t.begin()
	return t
}

// total counts running and pending tasks by workload number.
func (t *Trial) total() []int {
	workloads := t.Workloads()
	total := make([]int, len(workloads))
	for i := range t.tasks {
		total[t.Workload(t.Kind(i))]++
	}
	for i := range t.Snapshot().Nodes() {
		for w, n := range t.Counts(i) {
			total[w] += n
		}
	}
	return total
}

func (t *Trial) begin() {
	nodes := t.Snapshot().Nodes()
	t.configs = make([]Config, len(nodes))
	for i := range nodes {
		t.configs[i] = t.Values.Of(nodes[i].Class, t.Counts(i))
	}
	t.Values.Fill(t.configs)
}

// Tasks lists the pending tasks; their positions are the arguments of Kind.
func (t *Trial) Tasks() []cluster.Task { return t.tasks }

// Config is the co-location on a node now.
func (t *Trial) Config(node int) Config { return t.configs[node] }

// Gain is by how much Value rises if a task of the kind is put on the node, but
// for the worst performance; -Inf where the model is silent about the result.
func (t *Trial) Gain(kind, node int) float64 {
	c := t.configs[node]
	after := t.Values.Value(t.Values.Next(c, t.Workload(kind))).Sum
	if math.IsInf(after, -1) {
		return after
	}
	before := t.Values.Value(c).Sum
	if math.IsInf(before, -1) {
		return 0
	}
	return after - before + t.across(t.Workload(kind), node)
}

// Put puts a task of the kind on the node without checking.
func (t *Trial) Put(kind, node int) {
	t.Placement.Put(kind, node)
	t.racks.move(t.Workload(kind), node, 1)
	t.configs[node] = t.Values.Next(t.configs[node], t.Workload(kind))
}

// Take undoes a Put.
func (t *Trial) Take(kind, node int) {
	t.Placement.Take(kind, node)
	t.racks.move(t.Workload(kind), node, -1)
	t.configs[node] = t.Values.Prev(t.configs[node], t.Workload(kind))
}

// Value is the objective of the placement as it is: the sum over nodes and the
// parts of Worst and of racks. It is exact, not accumulated.
func (t *Trial) Value() float64 {
	sum, worst := 0.0, math.Inf(1)
	for n, c := range t.configs {
		v := t.Values.Value(c)
		sum += t.own(v.Sum, c, n)
		worst = min(worst, v.Worst)
	}
	if t.racks != nil {
		for r := range t.racks.counts {
			sum += t.InRack(r, nil)
		}
	}
	if w := t.Values.objective.Worst; w != 0 && !math.IsInf(worst, 1) {
		sum += w * worst
	}
	return sum
}

// Clone is an independent copy that shares Values.
func (t *Trial) Clone() *Trial {
	c := *t
	c.Placement = t.Placement.Clone()
	c.configs = append([]Config(nil), t.configs...)
	c.racks, c.scratch = t.racks.clone(), nil
	return &c
}

// Decision binds the pending tasks to the nodes they were put on (see
// Placement.Assign) and holds the rest with a reason in words. Gangs of which
// a task is held are held whole.
func (t *Trial) Decision(req Request) Decision {
	return DecisionOf(req, t.Placement, t.Assign())
}

// WhyNot is WhyNot of the trial's placement.
func (t *Trial) WhyNot(kind int) string { return WhyNot(t.Placement, kind) }
