package bound

import (
	"fmt"

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
	s.round(req)
	s.repair()
	s.complete()
	s.improve(req)
	s.search(req)
	return problem.trial.Decision(req), nil
}

// NewMeasured makes the policy that plans on measured co-locations alone, with
// no model: what one can do with the measurements as they are.
func NewMeasured(m interference.Model, o Options) *Policy {
	o.Measured = true
	return New(m, o)
}
