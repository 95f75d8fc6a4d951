package rl

import (
	"math"
	"math/rand/v2"

	"github.com/cotenant/cotenant/internal/num"
)

// Sampler takes decisions as training wants them: drawn from the policy, or,
// with probability Epsilon, from one of the experts (the job-aware exploration
// of Bao et al., Harmony, INFOCOM 2019, section IV). It is for one goroutine;
// several may share the network.
type Sampler struct {
	Net     *num.Scorer
	Rand    *rand.Rand
	Epsilon float64

	pass  num.Pass
	probs []float32
}

// Choose draws a candidate. experts holds what each expert would take, -1 for
// one without an opinion; the first is noted for imitation. Asking experts may
// be costly: with Epsilon 0 and no imitation, give none.
//
// The probability under the mixture,
//
//	b(k) = (1 - epsilon) p(k) + epsilon (share of the experts who take k)
//
// is what Choice.Behaviour is the logarithm of; the update divides by it.
func (s *Sampler) Choose(candidates num.Matrix, context []float32, experts ...int) Choice {
	scores := s.pass.Score(s.Net, candidates, context)
	s.probs = append(s.probs[:0], scores...)
	lse := num.Softmax(s.probs, scores)
	c := Choice{Expert: -1}
	opinions := 0
	for i, e := range experts {
		if i == 0 {
			c.Expert = e
		}
		if e >= 0 {
			opinions++
		}
	}
	epsilon := s.Epsilon
	if opinions == 0 {
		epsilon = 0
	}
	if epsilon > 0 && s.Rand.Float64() < epsilon {
		nth := s.Rand.IntN(opinions)
		for _, e := range experts {
			if e < 0 {
				continue
			}
			if nth == 0 {
				c.Index = e
				break
			}
			nth--
		}
	} else {
		c.Index = draw(s.probs, s.Rand)
	}
	c.LogProb = scores[c.Index] - lse
	c.Behaviour = c.LogProb
	if epsilon > 0 {
		agree := 0
		for _, e := range experts {
			if e == c.Index {
				agree++
			}
		}
		b := (1-epsilon)*math.Exp(float64(c.LogProb)) + epsilon*float64(agree)/float64(opinions)
		c.Behaviour = float32(math.Log(b))
	}
	return c
}

// Best is the candidate of the highest score, the first of equals: how a
// trained policy decides.
func (s *Sampler) Best(candidates num.Matrix, context []float32) int {
	return num.Highest(s.pass.Score(s.Net, candidates, context))
}

// draw takes an index by its probability; what rounding leaves over goes to
// the last index with any.
func draw(p []float32, rng *rand.Rand) int {
	u, last := rng.Float64(), 0
	for k, v := range p {
		if v > 0 {
			last = k
		}
		if u -= float64(v); u < 0 {
			return k
		}
	}
	return last
}
