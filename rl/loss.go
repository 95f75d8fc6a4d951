package rl

import (
	"math"

	"github.com/cotenant/cotenant/internal/num"
)

// weights says how much each loss counts.
type weights struct {
	policy, entropy, value, imitation, good float64
	clip                                    float64
}

// goodValue is how much less the critic learns from good episodes than the
// actor (Oh et al., table 2 of its appendix): they are a biased sample.
const goodValue = 0.01

// item is a decision with what the losses compare it to.
type item struct {
	of *Trajectory
	at int
	// advantage is normalised; target is in the critic's units.
	advantage, target float32
	// good marks a decision remembered by the replay, entry says where.
	good  bool
	entry *episode
}

// parts are the sums of the losses of some decisions, before weights.
type parts struct {
	policy, entropy, value, imitation, good, divergence float64
	// Numbers of decisions: of this policy's, of those with a choice between
	// candidates, of those with an expert, remembered, and past the clip.
	fresh, free, shown, remembered, clipped int
}

func (p *parts) add(q parts) {
	p.policy += q.policy
	p.entropy += q.entropy
	p.value += q.value
	p.imitation += q.imitation
	p.good += q.good
	p.divergence += q.divergence
	p.fresh += q.fresh
	p.free += q.free
	p.shown += q.shown
	p.remembered += q.remembered
	p.clipped += q.clipped
}

// loss adds a decision's losses to p, writes the gradient of their weighted sum
// by the scores to dScores and returns the one by the critic's value, which is
// in its own units. probs is scratch of the size of scores.
//
// With p the softmax of the scores, a the candidate taken, A its advantage, r =
// p(a) / p_then(a) and w = p_then(a) / b(a), b being what was followed then:
//
//	policy    -w min(r A, clip(r) A)     Schulman et al., Proximal policy optimization algorithms, 2017, equation 7
//	entropy   sum_k p_k log p_k          Mnih et al., Asynchronous methods for deep reinforcement learning, ICML 2016, section 4
//	value     (V - return)^2 / 2
//	imitation -log p(expert's)
//	good      -log p(a) min(1, max(0, return - V))   Oh et al., Self-imitation learning, ICML 2018, equation 2
//
// w corrects for exploration, and never exceeds 1 / (1 - epsilon).
func (p *parts) loss(it item, value float32, scores, dScores, probs []float32, w weights) (dValue float32) {
	clear(dScores)
	lse := num.Softmax(probs, scores)
	c := it.of.Choices[it.at]
	free := len(scores) > 1
	// slopes of the losses by log p(a).
	var byLog float64
	logp := float64(scores[c.Index] - lse)
	off := float64(value - it.target)
	if it.good {
		p.remembered++
		if off >= 0 {
			return 0
		}
		worth := min(1, -off)
		p.good -= logp * worth
		byLog = -w.good * worth
		through(byLog, c.Index, dScores, probs)
		return float32(w.good * goodValue * off)
	}
	p.fresh++
	p.value += off * off / 2
	dValue = float32(w.value * off)
	if !free {
		return dValue
	}
	p.free++
	ratio := math.Exp(logp - float64(c.LogProb))
	weight := math.Exp(float64(c.LogProb - c.Behaviour))
	a := float64(it.advantage)
	gain, clipped := ratio*a, min(max(ratio, 1-w.clip), 1+w.clip)*a
	p.divergence += ratio - 1 - (logp - float64(c.LogProb))
	if clipped < gain {
		p.clipped++
		gain = clipped
	} else {
		byLog = -w.policy * weight * gain
	}
	p.policy -= weight * gain
	through(byLog, c.Index, dScores, probs)

	var entropy float64
	for k, q := range probs {
		if q > 0 {
			entropy -= float64(q) * float64(scores[k]-lse)
		}
	}
	p.entropy += entropy
	if w.entropy != 0 {
		for k, q := range probs {
			if q > 0 {
				dScores[k] += float32(w.entropy * float64(q) * (float64(scores[k]-lse) + entropy))
			}
		}
	}
	if c.Expert >= 0 {
		p.shown++
		p.imitation -= float64(scores[c.Expert] - lse)
		through(-w.imitation, c.Expert, dScores, probs)
	}
	return dValue
}

// through carries a slope by log p(k) on to the scores.
func through(slope float64, k int, dScores, probs []float32) {
	if slope == 0 {
		return
	}
	for j, q := range probs {
		dScores[j] -= float32(slope) * q
	}
	dScores[k] += float32(slope)
}
