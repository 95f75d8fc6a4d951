package place

import (
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/interference"
)

// Memory keeps what co-locations are worth from request to request, so that
// those met before need not be valued again: of one model, with one pessimism.
// The zero value is empty. Not safe for concurrent use.
type Memory struct{ values *Values }

// remembered is how many co-locations are kept at most, about 1 kB each.
const remembered = 50_000

// Trial is NewTrial, but for a factor of what placements are worth, which is the
// same in all trials: values are those of one task in all, whatever the request.
// So what is remembered, and how it is rounded, does not depend on which request
// came first. An objective other than mean or p99 alone, whose parts a factor
// would put out of proportion, gets a Trial of its own; so does one with
// traffic, which depends on how many tasks of each workload there are.
func (m *Memory) Trial(req Request, model interference.Model, pessimism float64) *Trial {
	o := req.Objective.Or()
	if o != (Objective{Mean: o.Mean}) && o != (Objective{P99: o.P99}) {
		return NewTrial(req, model, pessimism)
	}
	t := &Trial{tasks: req.Tasks()}
	t.Placement = cluster.NewPlacement(req.View, t.tasks)
	if v := m.values; v == nil || v.Len() >= remembered || v.objective != o || !slices.Equal(v.workloads, t.Workloads()) {
		one := make([]int, len(t.Workloads()))
		if len(one) > 0 {
			one[0] = 1
		}
		m.values = NewValues(model, o, t.Workloads(), one, pessimism)
	}
	t.Values = m.values
	t.begin()
	return t
}
