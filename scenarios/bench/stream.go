package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/services"
)

// streamSpec lets services come, scale and go under several policies, with the
// stream that `cotenant simulate services` draws unless told otherwise.
type streamSpec struct {
	Truth       truthSpec           `json:"truth"`
	Nodes       int                 `json:"nodes"`
	Slots       int                 `json:"slots"`
	Zones       int                 `json:"zones,omitempty"`
	Constraints cluster.Constraints `json:"constraints,omitempty"`
	// Load is the share of all slots that is wanted on average.
	Load float64 `json:"load"`
	// Horizon and Warmup are durations, such as 24h.
	Horizon string `json:"horizon"`
	Warmup  string `json:"warmup"`
	// Migrate is the cost of a move, such as 30s; without, nothing moves.
	Migrate string `json:"migrate,omitempty"`
	// Moments is at how many the bound is computed.
	Moments int `json:"moments"`
	// FirstSeed is added to the seeds 0, 1, ...
	FirstSeed uint64     `json:"first_seed,omitempty"`
	Policy    string     `json:"policy"`
	Versus    []string   `json:"versus,omitempty"`
	Model     *modelSpec `json:"model,omitempty"`

	// As validate reads them.
	horizon, warmup time.Duration
	migrate         sim.Price
}

// streamMetrics are what a stream can be held to, besides the paired
// differences of shares (aboveMetric).
//
//	share       value / bound, averaged over the moments, of what the policy lets run
//	served      the same with waiting tasks, which have no performance
//	moves       of a task, in the mean, from its arrival to its end
//	violations  times at which a constraint was broken, by any of the policies
//	seconds     the policy and its decisions' bookkeeping
var streamMetrics = []string{"share", "served", "moves", "violations", "seconds"}

// streamLifetime is the mean lifetime of a service.
const streamLifetime = time.Hour

func (s *streamSpec) validate() error {
	var horizonErr, warmupErr, migrateErr error
	s.horizon, horizonErr = time.ParseDuration(s.Horizon)
	s.warmup, warmupErr = time.ParseDuration(s.Warmup)
	if s.migrate.On = s.Migrate != ""; s.migrate.On {
		s.migrate.Cost, migrateErr = time.ParseDuration(s.Migrate)
	}
	switch {
	case s.Nodes < 1 || s.Slots < 1 || s.Moments < 1:
		return fmt.Errorf("stream: nodes %d, slots %d, moments %d: each is at least 1", s.Nodes, s.Slots, s.Moments)
	case !(s.Load > 0 && s.Load < 1):
		return fmt.Errorf("stream: load %g is no share of the slots between 0 and 1", s.Load)
	case errors.Join(horizonErr, warmupErr) != nil:
		return fmt.Errorf("stream: horizon and warmup: %w", errors.Join(horizonErr, warmupErr))
	case migrateErr != nil:
		return fmt.Errorf("stream: migrate: %w", migrateErr)
	case s.Policy == "":
		return errors.New("stream: no policy")
	}
	return nil
}

// stream runs a stream scenario with one seed.
func (b *bench) stream(s *streamSpec, seed uint64) (map[string]float64, error) {
	t, err := b.truthOf(s.Truth)
	if err != nil {
		return nil, err
	}
	sees := t.model
	if s.Model != nil {
		if sees, err = b.fitted(s.Model, t, s.Slots, seed); err != nil {
			return nil, err
		}
	}
	draw := services.Stream{
		Capacity: s.Nodes * s.Slots, Load: s.Load, Most: 1, Horizon: s.horizon, Lifetime: streamLifetime, Scaling: 1,
		Workloads: t.workloads(), Mix: services.Uniform,
	}
	seed += s.FirstSeed
	arrivals, err := draw.Draw(seed)
	if err != nil {
		return nil, err
	}
	objective, err := place.ParseObjective(orMean(""))
	if err != nil {
		return nil, err
	}
	stop := func() bool { return b.ctx.Err() != nil }
	spec := cluster.Spec{Nodes: zoned(s.Nodes, s.Slots, s.Zones), Constraints: s.Constraints}
	judge := &services.Judge{Cluster: spec, Truth: t.model, Stop: stop}
	m := map[string]float64{"violations": 0}
	share := math.NaN()
	for i, name := range append([]string{s.Policy}, s.Versus...) {
		policy, err := policyOf(name, sees)
		if err != nil {
			return nil, err
		}
		begin := time.Now()
		r, err := services.Run(services.Config{
			Cluster: spec, Arrivals: arrivals, Truth: t.model, Policy: policy, Name: name, Objective: objective, Seed: seed,
			Horizon: s.horizon, Warmup: s.warmup, Lifetime: streamLifetime, Samples: s.Moments, Stop: stop,
			Migrate: s.migrate,
		})
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", name, err)
		}
		took := time.Since(begin).Seconds()
		v, err := judge.Judge(&r)
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", name, err)
		}
		m["violations"] += float64(r.Violations)
		if i == 0 {
			share = v.Share
			m["share"], m["served"], m["seconds"] = v.Share, v.Served, took
			m["moves"] = float64(r.Moved) / float64(max(1, r.Placed))
			continue
		}
		m[aboveMetric+name] = share - v.Share
	}
	return m, nil
}
