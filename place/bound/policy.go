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
	model interference.Model
	o     Options
}

// New makes the policy that plans on a model.
func New(m interference.Model, o Options) *Policy { return &Policy{model: m, o: o} }

// Place plans all pending tasks at once.
func (p *Policy) Place(req place.Request) (place.Decision, error) {
	problem := prepare(req, p.model, p.o)
	s, err := solve(problem, req)
	if err != nil {
		return place.Decision{}, fmt.Errorf("bound: %w", err)
	}
	s.plan(req)
	d := problem.trial.Decision(req)
	if p.o.Explain {
		d.Why = s.explain(d, p.model)
	}
	return d, nil
}

// starts is how often a plan that ends too far from the bound is begun anew.
const starts = 3

// plan rounds the relaxation and improves the result, several times over with
// other choices in rounding where that leaves a gap, and keeps the best.
func (s *solution) plan(req place.Request) {
	rng := rand.New(rand.NewPCG(1, 1)) // the plan depends on the request alone
	s.prepare(req)
	var best [][]int
	highest, fewest := 0.0, 0
	for start := range starts {
		if start > 0 {
			s.restart()
			s.q.draw = rng
		}
		s.q.dive(s.lp, req)
		s.repair()
		s.complete()
		held := s.q.left()
		s.improve(req)
		s.search(req, rng)
		value := s.q.trial.Value()
		if best == nil || held < fewest || held == fewest && value > highest {
			highest, fewest = value, held
			best = s.clear()
		} else {
			s.clear()
		}
		if !s.proven {
			break // the gap says nothing
		}
		if held == 0 && s.bound-value <= restartGap*math.Abs(s.bound) || req.Stopped() {
			break
		}
	}
	for n, counts := range best {
		move(s.q.trial, counts, n, (*place.Trial).Put)
	}
	if fewest == 0 {
		clear(s.q.demand)
		s.planWorst(req)
	}
	s.gather(req)
}

// NewMeasured makes the policy that plans on measured co-locations alone, with
// no model: what one can do with the measurements as they are.
func NewMeasured(m interference.Model, o Options) *Policy {
	o.Measured = true
	return New(m, o)
}
