package bound

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// Policy plans by the linear program: the fractional optimum, rounded and
// improved. It implements place.Policy.
type Policy struct {
	model    interference.Model
	o        Options
	exchange bool // begin from the plan of exchanges, too
}

// New makes the policy that plans on a model.
func New(m interference.Model, o Options) *Policy { return &Policy{m, o, true} }

// Place plans all pending tasks at once.
func (p *Policy) Place(req place.Request) (place.Decision, error) {
	problem := prepare(req, p.model, p.o)
	s, err := solve(problem, req)
	if err != nil {
		return place.Decision{}, fmt.Errorf("bound: %w", err)
	}
	var exchanges func(int) (place.Decision, error)
	if p.exchange {
		exchanges = func(start int) (place.Decision, error) { return p.exchanges(req, start) }
	}
	if err := s.plan(req, exchanges); err != nil {
		return place.Decision{}, fmt.Errorf("bound: %w", err)
	}
	d := problem.trial.Decision(req)
	if p.o.Explain {
		d.Why = s.explain(d, p.model)
	}
	return d, nil
}

// How often a plan is begun while it ends too far from the bound: by rounding,
// and how many plans of exchanges are made, of which the best is improved.
const (
	rounded   = 3
	exchanged = 4
)

// plan rounds the relaxation and improves the result, several times over with
// other choices in rounding where that leaves a gap, then from plans of
// exchanges, and keeps the best. Without proof the gap says nothing: then the
// first must do.
func (s *solution) plan(req place.Request, exchanges func(start int) (place.Decision, error)) error {
	rng := rand.New(rand.NewPCG(1, 1)) // the plan depends on the request alone
	s.prepare(req)
	var best kept
	finish := func() {
		s.repair()
		s.complete()
		held := s.q.left()
		s.improve(req)
		s.search(req, rng)
		best.keep(s, held)
		s.clear()
	}
	over := func(near float64) bool {
		return s.proven && best.held == 0 && s.bound-best.value <= near*math.Abs(s.bound) || req.Stopped()
	}
	for start := range rounded {
		if start > 0 {
			s.restart()
			s.q.draw = rng
		}
		s.q.dive(s.lp, req)
		finish()
		if !s.proven || over(restartGap) {
			break
		}
	}
	if exchanges != nil && s.proven && !over(gap) {
		if err := s.fromExchanges(req, exchanges, &best, finish); err != nil {
			return err
		}
	}
	for n, counts := range best.counts {
		move(s.q.trial, counts, n, (*place.Trial).Put)
	}
	if best.held == 0 {
		clear(s.q.demand)
		s.planWorst(req)
	}
	s.gather(req)
	return nil
}

// kept is the best plan so far: how many tasks of each kind by node, how many
// it holds, and what it is worth.
type kept struct {
	counts [][]int
	held   int
	value  float64
}

func (b *kept) keep(s *solution, held int) (better bool) {
	value := s.q.trial.Value()
	better = b.counts == nil || held < b.held || held == b.held && value > b.value
	if better {
		*b = kept{s.counts(), held, value}
	}
	return better
}

// NewMeasured makes the policy that plans on measured co-locations alone, with
// no model: what one can do with the measurements as they are.
func NewMeasured(m interference.Model, o Options) *Policy {
	o.Measured = true
	return New(m, o)
}
