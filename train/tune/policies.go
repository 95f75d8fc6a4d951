package tune

import (
	"context"
	"fmt"
	"maps"
	"math"

	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
)

// Options of Policies.
type Options struct {
	// Budget is how many sets of values each policy is tried with.
	Budget int
	// Seeds are the validation seeds; none of the setting's may be among them.
	Seeds []uint64
	// Load is the stream of jobs that is drawn by each of them.
	Load compare.Load
	Seed uint64 // of the search
	// Done, where not nil, is told of each run, from any goroutine, with how many
	// there will be in all.
	Done func(spec compare.Spec, runs int)
}

// Tuned is what was found for a policy.
type Tuned struct {
	Spec   compare.Spec
	Params []jobs.Param // that were searched
	Best   Values
	// Score is the mean over validation seeds of mean JCT / that of the default
	// values: 1 where nothing better was found.
	Score  float64
	Trials int
	// TruthCalls is how often the truth was asked: 0 but for NAME:truth.
	TruthCalls int64
}

// Policies tunes every policy of a setting that has parameters, and returns
// what was found, in the setting's order, without changing it.
func Policies(ctx context.Context, s *compare.Setting, o Options) ([]Tuned, error) {
	for _, seed := range o.Seeds {
		for _, test := range s.Seeds {
			if seed == test {
				return nil, fmt.Errorf("seed %d is one to test on; tune on others", seed)
			}
		}
	}
	if len(o.Seeds) == 0 {
		return nil, fmt.Errorf("no seeds to tune on")
	}
	v := *s
	v.Seeds, v.Learned, v.Hook = o.Seeds, true, nil
	v.Jobs = func(seed uint64) ([]sim.Job, error) { return s.World.Generate(o.Load, seed) }
	var todo []Tuned
	for _, spec := range s.Specs {
		params, err := spec.Params(s.World, s.Options.Migrate.On || s.Options.Scale.On)
		if err != nil {
			return nil, err
		}
		t := Tuned{Spec: spec}
		for _, p := range params {
			// What is given by hand stays.
			if _, given := spec.Values[p.Key]; !given {
				t.Params = append(t.Params, p)
			}
		}
		if len(t.Params) > 0 {
			todo = append(todo, t)
		}
	}
	runs := len(todo) * o.Budget * len(o.Seeds)
	for i := range todo {
		t := &todo[i]
		v.Done = nil
		if o.Done != nil {
			v.Done = func(compare.Spec, uint64) { o.Done(t.Spec, runs) }
		}
		before := s.World.Calls()
		var standard []float64
		search := Search{Params: t.Params, Budget: o.Budget, Seed: o.Seed, Score: func(ctx context.Context, batch []Values) ([]float64, error) {
			scores, first, err := score(ctx, &v, t.Spec, batch, standard)
			if standard == nil {
				standard = first
			}
			return scores, err
		}}
		best, trials, err := search.Run(ctx)
		if err != nil {
			return nil, fmt.Errorf("tune %s: %w", t.Spec.Text, err)
		}
		t.Best, t.Score, t.Trials = best.Values, best.Score, len(trials)
		t.TruthCalls = s.World.Calls() - before
	}
	return todo, nil
}

// score runs a policy with each set of values on all seeds. standard is the
// mean JCT by seed that counts as 1; where nil, it is that of the first set,
// which is returned.
func score(ctx context.Context, v *compare.Setting, spec compare.Spec, batch []Values, standard []float64) (scores, first []float64, err error) {
	v.Specs = nil
	for i, values := range batch {
		s := spec
		s.Text = fmt.Sprintf("%s#%d", spec.Text, i)
		s.Values = maps.Clone(spec.Values)
		if s.Values == nil {
			s.Values = map[string]float64{}
		}
		maps.Copy(s.Values, values)
		v.Specs = append(v.Specs, s)
	}
	outcomes, err := v.Run(ctx)
	if err != nil {
		return nil, nil, err
	}
	n := len(v.Seeds)
	mean := make([]float64, len(outcomes))
	for i, o := range outcomes {
		switch {
		case o.Err != nil:
			return nil, nil, fmt.Errorf("seed %d with %v: %w", o.Seed, batch[i/n], o.Err)
		case len(o.Result.Unfinished) > 0 || o.Result.MeanJCT == 0:
			mean[i] = math.Inf(1)
		default:
			mean[i] = o.Result.MeanJCT
		}
	}
	if standard == nil {
		standard = mean[:n]
	}
	scores = make([]float64, len(batch))
	for i := range batch {
		for k := range n {
			scores[i] += mean[i*n+k] / standard[k] / float64(n)
		}
		if math.IsNaN(scores[i]) {
			scores[i] = math.Inf(1)
		}
	}
	return scores, standard, nil
}
