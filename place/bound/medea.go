package bound

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// medeaFull is the weight of a node without a free slot, against that of one
// violated constraint of one task (the paper's fragmentation term).
const medeaFull = 0.05

// medeaThresholds are those that are tried where none is given: close together
// around the performance of a task alone, where measured ones crowd. Above all
// performances a constraint allows no neighbour; more than 1 is reached where
// others help.
var medeaThresholds = []float64{0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1, 1.02, 1.05, 1.1}

// Medea places by constraints derived from measurements, as an integer program
// that minimises how far they are violated: Garefalakis et al., "Medea:
// scheduling of long running applications in shared production clusters",
// EuroSys 2018, section 5. For each ordered pair of workloads the cardinality
// constraint "at most c tasks of the other beside one of mine" takes the
// largest c up to which the model keeps mine at Threshold or better; a task's
// violation is the sum over constraints of (tasks beside it - c) / max(c, 1).
// The program is solved over configurations, as this package's own.
type Medea struct {
	model     interference.Model
	threshold float64
	o         Options
}

// NewMedea makes the policy. The paper leaves thresholds to the operator; with
// threshold 0 the policy does what a careful one would: it plans with several,
// and takes the plan that is best by the model.
func NewMedea(m interference.Model, threshold float64, o Options) *Medea {
	return &Medea{m, threshold, o}
}

// Place plans all pending tasks at once. The constraints are of performance,
// whatever the objective; that says only which threshold is best.
func (p *Medea) Place(req place.Request) (place.Decision, error) {
	slots := 0
	for i := range req.View.Nodes() {
		slots = max(slots, req.View.Nodes()[i].Slots)
	}
	if slots == 0 {
		slots = len(req.Tasks()) + len(req.View.Running())
	}
	thresholds := medeaThresholds
	if p.threshold != 0 {
		thresholds = []float64{p.threshold}
	}
	var best place.Decision
	var with *violations
	var worth medeaWorth
	curves, tried := map[[3]string][]float64{}, map[string]bool{}
	for _, threshold := range thresholds {
		v := &violations{Model: p.model, threshold: threshold, slots: slots, curves: curves, limit: map[[3]string]int{}}
		key := v.constraints(req)
		if tried[key] {
			continue
		}
		tried[key] = true
		d, err := p.plan(req, v)
		if err != nil {
			return d, fmt.Errorf("medea: %w", err)
		}
		w, err := worthOf(req, d, p.model)
		if err != nil {
			return d, fmt.Errorf("medea: %w", err)
		}
		if with == nil || w.above(worth) {
			best, with, worth = d, v, w
		}
		if req.Stopped() {
			break
		}
	}
	if p.o.Explain {
		var err error
		if best.Why, err = with.explain(req, best); err != nil {
			return best, err
		}
	}
	return best, nil
}

// plan solves the integer program.
func (p *Medea) plan(req place.Request, v *violations) (place.Decision, error) {
	req.Objective = place.MeanPerformance
	return (&Policy{model: v, o: Options{Limit: p.o.Limit}}).Place(req)
}

// medeaWorth is what the model says of a plan.
type medeaWorth struct {
	held, unknown int
	value         float64 // of the objective, higher is better; NaN where some is unknown
}

func worthOf(req place.Request, d place.Decision, m interference.Model) (medeaWorth, error) {
	e, err := place.Evaluate(req, d, m)
	if req.Objective.Minimises() {
		e.Value = -e.Value
	}
	return medeaWorth{e.Held, len(e.Unknown), e.Value}, err
}

func (w medeaWorth) above(o medeaWorth) bool {
	if w.held != o.held {
		return w.held < o.held
	}
	if w.unknown != o.unknown {
		return w.unknown < o.unknown
	}
	return w.value > o.value
}

// explain says for every binding by how much its constraints are violated.
func (v *violations) explain(req place.Request, d place.Decision) (place.Reasons, error) {
	e, err := place.Evaluate(req, d, v)
	if err != nil {
		return nil, fmt.Errorf("medea: %w", err)
	}
	workload := map[cluster.TaskID]string{}
	for _, t := range req.Tasks() {
		workload[t.ID] = t.Workload
	}
	why := place.Reasons{}
	for _, b := range d.Bind {
		n, _ := req.View.NodeIndex(b.Node)
		c := e.Placement.Colocation(n)
		kept, _ := performanceIn(v, req.View.Nodes()[n].Class, c, workload[b.Task])
		words := fmt.Sprintf("%s keeps the constraints of %s", c.Key(), workload[b.Task])
		if kept < 1-medeaFull {
			words = fmt.Sprintf("%s violates the constraints of %s by %.2f", c.Key(), workload[b.Task], 1-kept)
		}
		words += fmt.Sprintf(" (threshold %g)", v.threshold)
		why[b.Task] = place.Reason{Words: words, Scores: map[string]float64{"violation": kept - 1}}
	}
	return why, nil
}

// violations is the model whose performance is 1 less the violation.
type violations struct {
	interference.Model
	threshold float64
	slots     int
	curves    map[[3]string][]float64 // by class, mine, other: see curve; shared between thresholds
	limit     map[[3]string]int       // likewise
}

// curve is mine's performance beside 1, 2, ... of the other, up to a full node;
// infinite where the model is silent, which forbids nothing.
func (v *violations) curve(key [3]string) []float64 {
	if c, ok := v.curves[key]; ok {
		return c
	}
	class, mine, other := key[0], key[1], key[2]
	var cs []cluster.Colocation
	for n := 1; n < v.slots; n++ {
		c := cluster.Colocation{mine: 1}
		c[other] += n
		cs = append(cs, c)
	}
	curve := make([]float64, len(cs))
	for i, e := range v.Model.Predict(class, history.Rate, cs) {
		at := slices.Index(cs[i].Workloads(), mine)
		if curve[i] = math.Inf(1); e[at].Known {
			curve[i] = e[at].Value
		}
	}
	v.curves[key] = curve
	return curve
}

// most is the constraint's c: no limit where no number of others up to a full
// node harms.
func (v *violations) most(class, mine, other string) int {
	key := [3]string{class, mine, other}
	if c, ok := v.limit[key]; ok {
		return c
	}
	limit := math.MaxInt
	if i := slices.IndexFunc(v.curve(key), func(x float64) bool { return x < v.threshold }); i >= 0 {
		limit = i // i others were still well
	}
	v.limit[key] = limit
	return limit
}

// constraints are those of all pairs of workloads that the request has, on all
// its classes: equal where two thresholds derive the same.
func (v *violations) constraints(req place.Request) string {
	names, classes := map[string]bool{}, map[string]bool{}
	for _, t := range req.Tasks() {
		names[t.Workload] = true
	}
	for _, r := range req.View.Running() {
		names[r.Workload] = true
	}
	for i := range req.View.Nodes() {
		classes[place.ModelClass(v.Model, req.View.Nodes()[i].Class)] = true
	}
	var key []byte
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		for _, mine := range slices.Sorted(maps.Keys(names)) {
			for _, other := range slices.Sorted(maps.Keys(names)) {
				key = binary.AppendVarint(key, int64(v.most(class, mine, other)))
			}
		}
	}
	return string(key)
}

// Predict answers with 1 - violation, for the rate alone.
func (v *violations) Predict(class string, metric history.Metric, cs []cluster.Colocation) [][]interference.Estimate {
	known := map[string]bool{}
	for _, w := range v.Model.Workloads(class) {
		known[w] = true
	}
	out := make([][]interference.Estimate, len(cs))
	for i, c := range cs {
		names := c.Workloads()
		for _, mine := range names {
			e := interference.Estimate{Value: 1, Known: known[mine] && metric == history.Rate, Measured: true}
			for _, other := range names {
				beside := c[other]
				if other == mine {
					beside--
				}
				if most := v.most(class, mine, other); beside > most {
					e.Value -= float64(beside-most) / float64(max(1, most))
				}
			}
			if n := c.Tasks(); n >= v.slots {
				e.Value -= medeaFull / float64(n)
			}
			out[i] = append(out[i], e)
		}
	}
	return out
}
