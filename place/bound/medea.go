package bound

import (
	"fmt"
	"math"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// Medea's parameters. The paper leaves thresholds to the operator.
const (
	// MedeaThreshold is the performance below which a neighbour is too many.
	MedeaThreshold = 0.9
	// medeaFull is the weight of a node without a free slot, against that of one
	// violated constraint of one task (the paper's fragmentation term).
	medeaFull = 0.05
)

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

// NewMedea makes the policy; threshold 0 means MedeaThreshold.
func NewMedea(m interference.Model, threshold float64, o Options) *Medea {
	if threshold == 0 {
		threshold = MedeaThreshold
	}
	return &Medea{m, threshold, o}
}

// Place plans all pending tasks at once, whatever the objective.
func (p *Medea) Place(req place.Request) (place.Decision, error) {
	slots := 0
	for i := range req.View.Nodes() {
		slots = max(slots, req.View.Nodes()[i].Slots)
	}
	if slots == 0 {
		slots = len(req.Tasks()) + len(req.View.Running())
	}
	v := &violations{Model: p.model, threshold: p.threshold, slots: slots, limit: map[[3]string]int{}}
	req.Objective = place.MeanPerformance
	d, err := New(v, Options{Limit: p.o.Limit}).Place(req)
	if err != nil {
		return d, fmt.Errorf("medea: %w", err)
	}
	if p.o.Explain {
		d.Why, err = v.explain(req, d)
	}
	return d, err
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
		why[b.Task] = place.Reason{Words: words, Scores: map[string]float64{"violation": kept - 1}}
	}
	return why, nil
}

// violations is the model whose performance is 1 less the violation.
type violations struct {
	interference.Model
	threshold float64
	slots     int
	limit     map[[3]string]int // by class, mine, other
}

// most is the constraint's c: noLimit where no number of others up to a full
// node harms.
func (v *violations) most(class, mine, other string) int {
	key := [3]string{class, mine, other}
	if c, ok := v.limit[key]; ok {
		return c
	}
	var cs []cluster.Colocation
	for n := 1; n < v.slots; n++ {
		c := cluster.Colocation{mine: 1}
		c[other] += n
		cs = append(cs, c)
	}
	limit := math.MaxInt
	for i, e := range v.Model.Predict(class, history.Rate, cs) {
		at := 0
		for j, w := range cs[i].Workloads() {
			if w == mine {
				at = j
			}
		}
		if e[at].Known && e[at].Value < v.threshold {
			limit = i // i others were still well
			break
		}
	}
	v.limit[key] = limit
	return limit
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
