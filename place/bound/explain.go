package bound

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// explain says for every binding which co-location it becomes part of, how fast
// the task is there, and how near the best co-location at the plan's prices that is.
func (s *solution) explain(d place.Decision, m interference.Model) place.Reasons {
	t, q := s.q.trial, s.q
	view := t.Snapshot()
	class := make([]int, len(view.Nodes()))
	for i := range q.classes {
		for _, n := range q.classes[i].nodes {
			class[n] = i
		}
	}
	workload := map[cluster.TaskID]string{}
	for _, task := range t.Tasks() {
		workload[task.ID] = task.Workload
	}
	why := place.Reasons{}
	for _, b := range d.Bind {
		n, _ := view.NodeIndex(b.Node)
		c := t.Placement.Colocation(n)
		performance, measured := performanceIn(m, view.Nodes()[n].Class, c, workload[b.Task])
		how := "predicted"
		if measured {
			how = "measured"
		}
		loss := s.loss(class[n], n)
		words := fmt.Sprintf("in %s, %s runs at %.2f of its speed alone (%s)", c.Key(), workload[b.Task], performance, how)
		if loss > 1e-6 {
			words += fmt.Sprintf("; at the plan's prices another co-location would bring %.2g more", loss)
		} else {
			words += "; at the plan's prices no co-location brings more"
		}
		why[b.Task] = place.Reason{Words: words, Scores: map[string]float64{"performance": performance, "loss": -max(0, loss)}}
	}
	return why
}

// loss is what the node's co-location falls short of the best one at the
// prices of the relaxation.
func (s *solution) loss(class, node int) float64 {
	t := s.q.trial
	loss := s.top[class] - s.q.worth(node)
	for k, price := range s.prices[class] {
		loss += price * float64(t.PutOn(k, node))
	}
	return loss
}

// performanceIn is a workload's performance in a co-location.
func performanceIn(m interference.Model, class string, c cluster.Colocation, workload string) (value float64, measured bool) {
	estimates := m.Predict(place.ModelClass(m, class), history.Rate, []cluster.Colocation{c})[0]
	for i, w := range c.Workloads() {
		if w == workload {
			return estimates[i].Value, estimates[i].Measured
		}
	}
	return 0, false
}
