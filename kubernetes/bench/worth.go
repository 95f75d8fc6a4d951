package bench

import (
	"fmt"

	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/bound"
)

// Worth is what a placement is worth by the truth.
type Worth struct {
	// Bound pods, of the batch's Tasks.
	Pods, Tasks int
	// MeanPerformance over what is bound: 1 = as fast as alone.
	MeanPerformance float64
	// Bound is what no placement of the whole batch can be better than; Share
	// is MeanPerformance over it.
	Bound, Share float64
}

// Judge says what a placement of the batch, pod name to node name, is worth.
// It fails where the placement puts more on a node than the node has slots.
func (t *Truth) Judge(b Batch, at map[string]string) (Worth, error) {
	w := Worth{Tasks: b.Tasks()}
	req, err := b.request(func(string) bool { return true })
	if err != nil {
		return w, err
	}
	limit, err := bound.Compute(req, t.model, bound.Options{})
	if err != nil {
		return w, fmt.Errorf("bound of %d tasks on %d nodes: %w", w.Tasks, b.Nodes, err)
	}
	w.Bound = limit.Bound
	if req, err = b.request(func(name string) bool { return at[name] != "" }); err != nil {
		return w, err
	}
	var d place.Decision
	for _, task := range req.Tasks() {
		d.Bind = append(d.Bind, place.Binding{Task: task.ID, Node: at[string(task.ID)]})
	}
	if w.Pods = len(d.Bind); w.Pods == 0 {
		return w, nil
	}
	e, err := place.Evaluate(req, d, t.model)
	if err != nil {
		return w, err
	}
	w.MeanPerformance = e.Value
	w.Share = place.MeanPerformance.Share(e.Value, limit.Bound)
	return w, nil
}
