package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/learned"
)

// Setting is what is the same for all policies of a comparison.
type Setting struct {
	World *World
	// Jobs gives the jobs of a seed.
	Jobs func(seed uint64) ([]sim.Job, error)
	// Options of the runs: all but Nodes, Workloads, Jobs, Truth, Policy, Name
	// and Seed, which come from here.
	Options sim.Config
	Belief  Belief
	// FixedBelief draws what is observed by Belief.Seed for all seeds; otherwise
	// by the seed of each run.
	FixedBelief bool
	Specs       []Spec
	Seeds       []uint64
	// Tuned are parameters found by tuning, by Spec.Text; those given by hand
	// win.
	Tuned map[string]map[string]float64
	// Learned runs every policy in the world that it believes instead of the true
	// one, but for those of which Spec.Truth is set.
	Learned bool
	// ProgramLimit bounds one decision of a program.
	ProgramLimit time.Duration
	// Parallel runs f(0) ... f(n-1), perhaps at the same time; nil runs them in
	// order. Results do not depend on it.
	Parallel func(n int, f func(i int))
	// Done, where not nil, is told of each run that ended, from any goroutine.
	Done func(spec Spec, seed uint64)
	// Fitted, where not nil, is told of each model that was fitted before the
	// runs, and of how many there will be, from any goroutine.
	Fitted func(done, total int)
	// Learner makes a policy of which Spec.Learns is set learn during a run; nil
	// where nothing is observed. Training stands above this package.
	Learner func(p place.Policy, seed uint64) (place.Policy, error)
	// Hook, where not nil, may set Watch and Decided of a run. It is called from
	// any goroutine.
	Hook func(spec Spec, seed uint64, c *sim.Config)

	beliefs map[beliefKey]*jobs.Speeds // made so far
}

// Model is what a policy believed in a Run before; nil where it believed no
// model.
func (s *Setting) Model(spec Spec, seed uint64) interference.Model {
	if b := s.beliefs[s.key(spec, seed)]; b != nil {
		return b.Model()
	}
	return nil
}

// Outcome is one run of one policy.
type Outcome struct {
	Spec   Spec
	Seed   uint64
	Result sim.Result
	Err    error
}

func (s *Setting) parallel(n int, f func(int)) {
	if s.Parallel != nil {
		s.Parallel(n, f)
		return
	}
	for i := range n {
		f(i)
	}
}

// Run runs every policy on the jobs of every seed: outcomes by policy, then
// seed. Errors of a run are in its outcome; the error is about what all need.
func (s *Setting) Run(ctx context.Context) ([]Outcome, error) {
	jobsOf, err := s.drawAll()
	if err != nil {
		return nil, err
	}
	if err := s.believe(ctx); err != nil {
		return nil, err
	}
	out := make([]Outcome, len(s.Specs)*len(s.Seeds))
	s.parallel(len(out), func(i int) {
		spec, seed := s.Specs[i/len(s.Seeds)], s.Seeds[i%len(s.Seeds)]
		out[i] = Outcome{Spec: spec, Seed: seed}
		if ctx.Err() != nil {
			out[i].Err = ctx.Err()
			return
		}
		speeds := s.beliefs[s.key(spec, seed)].Fork()
		truth := s.World.Truth()
		if s.Learned && !spec.Truth {
			truth = learned.New(speeds.Fork())
		}
		out[i].Result, out[i].Err = s.run(ctx, spec, seed, jobsOf[seed], speeds, truth)
		if s.Done != nil {
			s.Done(spec, seed)
		}
	})
	return out, ctx.Err()
}

// drawAll draws the jobs of all seeds.
func (s *Setting) drawAll() (map[uint64][]sim.Job, error) {
	out := map[uint64][]sim.Job{}
	for _, seed := range s.Seeds {
		list, err := s.Jobs(seed)
		if err != nil {
			return nil, fmt.Errorf("jobs of seed %d: %w", seed, err)
		}
		out[seed] = list
	}
	return out, nil
}

func (s *Setting) run(ctx context.Context, spec Spec, seed uint64, list []sim.Job, speeds *jobs.Speeds, truth sim.Truth) (sim.Result, error) {
	policy, closePolicy, err := s.policy(ctx, spec, speeds)
	if err != nil {
		return sim.Result{}, err
	}
	defer closePolicy()
	if spec.Learns() {
		if policy, err = s.Learner(policy, seed); err != nil {
			return sim.Result{}, err
		}
	}
	c := s.Options
	c.Nodes, c.Workloads, c.Jobs, c.Truth, c.Policy = s.World.Nodes, s.World.Declared, list, truth, policy
	c.Name, c.Seed = spec.Text, seed
	c.Stop = func() bool { return ctx.Err() != nil }
	if s.Hook != nil {
		s.Hook(spec, seed, &c)
	}
	r, err := sim.Run(c)
	if err == nil {
		err = ctx.Err()
	}
	return r, err
}

// policy makes the policy of a spec.
func (s *Setting) policy(ctx context.Context, spec Spec, speeds *jobs.Speeds) (place.Policy, func(), error) {
	o := PolicyOptions{Values: s.Tuned[spec.Text], Limit: s.ProgramLimit}
	if s.Options.Migrate.On {
		// 0 would propose no moves.
		o.Migrate = max(s.Options.Migrate.Cost, time.Nanosecond)
	}
	if s.Options.Scale.On {
		o.Scale = max(s.Options.Scale.Cost, time.Nanosecond)
	}
	return spec.New(ctx, s.World, speeds, o)
}

// Check makes every policy once, so that errors in their parameters are found
// before anything runs.
func (s *Setting) Check() error {
	table := jobs.NewSpeeds(s.World.Table, s.World.options(0))
	for _, spec := range s.Specs {
		if spec.Learns() && s.Learner == nil {
			return fmt.Errorf("%s: learns from what is observed; add --online", spec.Text)
		}
		if spec.Truth && s.World.Table == nil && spec.Name != "greedy" && spec.Name != "greedy-wait" {
			return fmt.Errorf("%s: no table holds the truth of this world; only greedy:truth and greedy-wait:truth can ask it", spec.Text)
		}
		if spec.kind("") != "" || spec.Name == "exec" {
			continue
		}
		if _, _, err := s.policy(context.Background(), spec, table); err != nil {
			return err
		}
	}
	return nil
}

// beliefKey tells apart what policies believe.
type beliefKey struct {
	kind      string // "" is the true table
	seed      uint64
	pessimism float64
}

func (s *Setting) key(spec Spec, seed uint64) beliefKey {
	k := beliefKey{pessimism: spec.Values[pessimism]}
	// Where all is observed there is nothing to predict.
	whole := s.World.Table != nil && s.Belief.Observed == 1 && spec.kind("") == ""
	if !spec.Truth && !whole {
		k.kind, k.seed = cmp.Or(spec.kind(s.Belief.Kind), interference.KindNeural), seed
		if s.FixedBelief {
			k.seed = s.Belief.Seed
		}
	}
	return k
}

// believe makes what the policies believe and no Run before needed: one model
// for each kind and seed.
func (s *Setting) believe(ctx context.Context) error {
	type fit struct {
		kind string
		seed uint64
	}
	var fits []fit
	var keys []beliefKey
	for _, spec := range s.Specs {
		for _, seed := range s.Seeds {
			k := s.key(spec, seed)
			if s.beliefs[k] != nil || slices.Contains(keys, k) {
				continue
			}
			keys = append(keys, k)
			if f := (fit{k.kind, k.seed}); k.kind != "" && !slices.Contains(fits, f) {
				fits = append(fits, f)
			}
		}
	}
	models := make([]interference.Model, len(fits))
	errs := make([]error, len(fits))
	var done atomic.Int64
	s.parallel(len(fits), func(i int) {
		if errs[i] = ctx.Err(); errs[i] == nil {
			b := s.Belief
			b.Kind, b.Seed = fits[i].kind, fits[i].seed
			models[i], errs[i] = s.World.Fit(b)
		}
		if n := int(done.Add(1)); s.Fitted != nil {
			s.Fitted(n, len(fits))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if s.beliefs == nil {
		s.beliefs = map[beliefKey]*jobs.Speeds{}
	}
	for _, k := range keys {
		m := s.World.Table
		if k.kind != "" {
			m = models[slices.Index(fits, fit{k.kind, k.seed})]
		}
		s.beliefs[k] = jobs.NewSpeeds(m, s.World.options(k.pessimism))
	}
	return nil
}
