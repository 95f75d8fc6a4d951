package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/place/bound"
	"github.com/cotenant/cotenant/place/metis"
)

// planMetrics are what a plan can be held to. All are of the truth.
//
//	share         value / bound when maximising, bound / value when minimising
//	value         the objective reached
//	bound         the proven limit, of the truth
//	proven        1 where that is proven, 0 where not
//	honest        1 where the bound is proven and no plan beat it, or not called proven
//	held          tasks that were not placed
//	seconds       the policy alone
//	bound_seconds the bound alone
//	peak_mib      most memory that the process held meanwhile; 0 where unknown
var planMetrics = []string{"share", "value", "bound", "proven", "honest", "held", "seconds", "bound_seconds", "peak_mib"}

// aboveMetric begins the name of a paired difference of shares.
const aboveMetric = "share_above:"

// plan runs a plan scenario with one seed.
func (b *bench) plan(p *planSpec, seed uint64) (map[string]float64, error) {
	t, err := b.truthOf(p.Truth)
	if err != nil {
		return nil, err
	}
	batch, err := p.counts(b.data, t)
	if err != nil {
		return nil, err
	}
	req, err := p.request(batch, t.workloads(), seed)
	if err != nil {
		return nil, err
	}
	b.stop(&req)
	sees := t.model
	if p.Model != nil {
		if sees, err = b.fitted(p.Model, t, p.Slots, seed); err != nil {
			return nil, err
		}
	}
	resetPeak()
	most, err := b.limit(p, t, req, seed)
	if err != nil {
		return nil, err
	}
	m := map[string]float64{"bound": most.value, "proven": flag01(most.proven), "bound_seconds": most.seconds}
	best, took, err := b.place(p.Policy, sees, t, req, seed)
	if err != nil {
		return nil, err
	}
	m["peak_mib"] = peakMiB()
	m["value"], m["held"], m["seconds"] = best.Value, float64(best.Held), took
	share := req.Objective.Share(best.Value, most.value)
	m["share"] = share
	highest := share
	for _, name := range p.Versus {
		other, _, err := b.place(name, sees, t, req, seed)
		if err != nil {
			return nil, fmt.Errorf("versus %s: %w", name, err)
		}
		s := req.Objective.Share(other.Value, most.value)
		m[aboveMetric+name] = share - s
		highest = max(highest, s)
	}
	m["honest"] = flag01(!most.proven || highest <= 1)
	return m, nil
}

func flag01(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// place lets a policy decide on what it sees, and values that in truth.
func (b *bench) place(name string, sees interference.Model, t *truth, req place.Request, seed uint64) (place.Evaluation, float64, error) {
	policy, err := policyOf(name, sees)
	if err != nil {
		return place.Evaluation{}, 0, err
	}
	req.Rand = rand.New(rand.NewPCG(seed, streamPolicy))
	begin := time.Now()
	d, err := policy.Place(req)
	took := time.Since(begin).Seconds()
	if err != nil {
		return place.Evaluation{}, 0, fmt.Errorf("policy %s: %w", name, err)
	}
	e, err := place.Evaluate(req, d, t.model)
	if err != nil {
		return e, 0, fmt.Errorf("policy %s: %w", name, err)
	}
	if len(e.Unknown) > 0 {
		return e, 0, fmt.Errorf("policy %s: the truth is silent about %d co-locations of its plan, such as %s", name, len(e.Unknown), e.Unknown[0])
	}
	return e, took, nil
}

// policyOf makes a policy as the command line names it: NAME[:KEY=VALUE...].
func policyOf(spec string, m interference.Model) (place.Policy, error) {
	words := strings.Split(spec, ":")
	params := map[string]string{}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		params[key] = value
	}
	pessimism := 0.0
	if text, given := params["pessimism"]; given {
		delete(params, "pessimism")
		var err error
		if pessimism, err = strconv.ParseFloat(text, 64); err != nil || !(pessimism >= 0) {
			return nil, fmt.Errorf("policy %q: pessimism %q is not a number of at least 0", spec, text)
		}
	}
	moving := baseline.TakeMoving(params)
	p, err := plain(words[0], params, m, pessimism)
	if err != nil {
		return nil, err
	}
	return baseline.NewMoving(p, baseline.Options{Model: m, Pessimism: pessimism, Params: moving})
}

// plain is a policy that moves nothing.
func plain(name string, params map[string]string, m interference.Model, pessimism float64) (place.Policy, error) {
	switch name {
	case "bound":
		return bound.New(m, bound.Options{Pessimism: pessimism}), nil
	case "measured":
		return bound.NewMeasured(m, bound.Options{}), nil
	case "medea":
		return bound.NewMedea(m, 0, bound.Options{}), nil
	case "metis":
		file, err := metis.Shipped(params["trained"])
		if err != nil {
			return nil, err
		}
		delete(params, "trained")
		return file.Policy(metis.Settings{Model: m, Pessimism: pessimism, Params: params})
	}
	return baseline.New(name, baseline.Options{Model: m, Pessimism: pessimism, Params: params})
}

// limit bounds a plan in truth. It does not depend on the order of the tasks,
// so that it is computed once where the seed draws nothing else.
func (b *bench) limit(p *planSpec, t *truth, req place.Request, seed uint64) (limit, error) {
	key := fmt.Sprintf("%+v %v %s %v %d %d %d %d %+v %s", p.Truth, p.Truth.Generated, p.Batch, p.Tasks, p.Total, p.Nodes, p.Slots, p.Zones, p.Constraints, p.Objective)
	if p.Occupied > 0 {
		key += fmt.Sprintf(" %g %d", p.Occupied, seed)
	}
	if l, ok := b.bounds[key]; ok {
		return l, nil
	}
	begin := time.Now()
	r, err := bound.Compute(req, t.model, bound.Options{})
	if err != nil {
		return limit{}, err
	}
	if b.ctx.Err() != nil {
		return limit{}, errors.New("interrupted")
	}
	l := limit{r.Bound, r.Proven, time.Since(begin).Seconds()}
	b.bounds[key] = l
	return l, nil
}
