package bound

import (
	"math/rand/v2"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
)

// Bounds of one plan of exchanges. On empty nodes it ends by kicks; the work
// binds where most nodes run something else, and splits are many.
const (
	exchangeEvals       = 500_000
	exchangeKicks       = 3000
	exchangeColocations = 150_000
)

// exchanges makes the plan of greedy-search, whose exchanges between two nodes
// go where no rounding of the linear program leads; another one for each start.
func (p *Policy) exchanges(req place.Request, start int) (place.Decision, error) {
	m := p.model
	if p.o.Measured {
		m = measuredOnly{m}
	}
	req.Rand = rand.New(rand.NewPCG(1, uint64(1+start))) // the plan depends on the request alone
	return baseline.GreedySearch{
		Model: m, Pessimism: p.o.Pessimism, Evals: exchangeEvals, Kicks: exchangeKicks, Colocations: exchangeColocations,
	}.Place(req)
}

// fromExchanges begins from the best of several plans of exchanges. That
// itself is kept, too: what improves the sum over nodes may lower what racks
// add to it. Where the first two are no better than the roundings, exchanges
// are not what is missing.
func (s *solution) fromExchanges(req place.Request, make func(start int) (place.Decision, error), best *kept, finish func()) error {
	var left []int
	for start := range exchanged {
		d, err := make(start)
		if err != nil {
			return err
		}
		s.restart()
		s.put(req, d)
		if best.keep(s, s.q.left()) {
			left = slices.Clone(s.q.demand)
		}
		s.clear()
		if start > 0 && left == nil || req.Stopped() {
			break
		}
	}
	if left == nil {
		return nil
	}
	s.restart()
	for n, counts := range best.counts {
		move(s.q.trial, counts, n, (*place.Trial).Put)
	}
	copy(s.q.demand, left)
	finish()
	return nil
}

// put puts the tasks where a decision binds them; the trial is clear before,
// and what is to be placed is what the problem says.
func (s *solution) put(req place.Request, d place.Decision) {
	t := s.q.trial
	kind := make(map[cluster.TaskID]int, len(t.Tasks()))
	for i, task := range t.Tasks() {
		kind[task.ID] = t.Kind(i)
	}
	for _, b := range d.Bind {
		n, _ := req.View.NodeIndex(b.Node)
		t.Put(kind[b.Task], n)
		s.q.demand[kind[b.Task]]--
	}
}

// measuredOnly is silent about what was not measured.
type measuredOnly struct{ interference.Model }

func (m measuredOnly) Predict(class string, metric history.Metric, cs []cluster.Colocation) [][]interference.Estimate {
	rows := m.Model.Predict(class, metric, cs)
	out := make([][]interference.Estimate, len(rows))
	for i, row := range rows {
		out[i] = slices.Clone(row)
		for j := range row {
			out[i][j].Known = row[j].Known && row[j].Measured
		}
	}
	return out
}
