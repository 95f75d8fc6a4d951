package tune

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"

	"github.com/cotenant/cotenant/place/jobs"
)

// Search is a search for the values of parameters.
type Search struct {
	Params []jobs.Param
	// Budget is how many sets of values are tried, the default one among them.
	Budget int
	Seed   uint64
	// Score says how bad each set of values is: lower is better, +Inf where it
	// cannot be used.
	Score func(ctx context.Context, batch []Values) ([]float64, error)
}

// Values of parameters by key.
type Values map[string]float64

// Trial is values and their score.
type Trial struct {
	Values Values
	Score  float64
}

const (
	// randomPart of the budget is drawn at random over the whole ranges; the rest
	// refines.
	randomPart = 0.5
	// batchSize is how many sets are tried at the same time. The next ones are
	// drawn from their scores, so that it decides the result, not the number of
	// cores.
	batchSize = 4
	// widest and narrowest are the standard deviations of steps from the best at
	// the begin and the end of refinement, as a share of a parameter's range.
	widest, narrowest = 0.2, 0.02
)

// Run searches. The trials are in the order in which they were drawn: the
// first are the default values.
func (s Search) Run(ctx context.Context) (best Trial, trials []Trial, err error) {
	if s.Budget < 1 {
		return Trial{}, nil, fmt.Errorf("budget %d: at least 1, for the default values", s.Budget)
	}
	for _, p := range s.Params {
		if !(p.Low < p.High) || p.Log && p.Low <= 0 {
			return Trial{}, nil, fmt.Errorf("parameter %s: the range %g to %g cannot be searched", p.Key, p.Low, p.High)
		}
	}
	r := rand.New(rand.NewPCG(s.Seed, 0x74756e65))
	best.Score = math.Inf(1)
	explore := max(1, int(math.Round(randomPart*float64(s.Budget))))
	for len(trials) < s.Budget {
		limit := s.Budget
		if len(trials) < explore {
			limit = explore
		}
		var batch []Values
		for len(batch) < batchSize && len(trials)+len(batch) < limit {
			switch n := len(trials) + len(batch); {
			case n == 0:
				batch = append(batch, s.standard())
			case n < explore:
				batch = append(batch, s.random(r))
			default:
				part := float64(n-explore) / float64(max(1, s.Budget-explore-1))
				batch = append(batch, s.near(r, best.Values, widest*math.Pow(narrowest/widest, part)))
			}
		}
		scores, err := s.Score(ctx, batch)
		if err != nil {
			return best, trials, err
		}
		if len(scores) != len(batch) {
			return best, trials, errors.New("as many scores as sets of values are wanted")
		}
		for i, v := range batch {
			t := Trial{v, scores[i]}
			trials = append(trials, t)
			if t.Score < best.Score || best.Values == nil {
				best = t
			}
		}
	}
	return best, trials, nil
}

func (s Search) standard() Values {
	v := Values{}
	for _, p := range s.Params {
		v[p.Key] = p.Default
	}
	return v
}

func (s Search) random(r *rand.Rand) Values {
	v := Values{}
	for _, p := range s.Params {
		v[p.Key] = value(p, r.Float64())
	}
	return v
}

// near steps from values by a share of each range.
func (s Search) near(r *rand.Rand, from Values, step float64) Values {
	v := maps.Clone(from)
	for _, p := range s.Params {
		v[p.Key] = value(p, min(max(share(p, from[p.Key])+step*r.NormFloat64(), 0), 1))
	}
	return v
}

// value is the point of a range at a share of it, with three digits that
// count, so that what is printed is what was tried.
func value(p jobs.Param, at float64) float64 {
	v := p.Low + at*(p.High-p.Low)
	if p.Log {
		v = p.Low * math.Pow(p.High/p.Low, at)
	}
	if p.Whole {
		return math.Round(v)
	}
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-2)
	if unit < 1 {
		return min(max(math.Round(v/unit)/math.Round(1/unit), p.Low), p.High)
	}
	return min(max(math.Round(v/unit)*unit, p.Low), p.High)
}

// share is the inverse of value.
func share(p jobs.Param, v float64) float64 {
	if p.Log {
		return math.Log(v/p.Low) / math.Log(p.High/p.Low)
	}
	return (v - p.Low) / (p.High - p.Low)
}
