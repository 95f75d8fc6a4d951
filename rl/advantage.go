package rl

import "math"

// Trace says how far advantages look ahead before they trust the critic: 1 is
// to the end, 0 to the next decision.
type Trace struct {
	// Decision is the lambda of generalised advantage estimation, lost at every
	// decision.
	Decision float64
	// Second is lost with every second between decisions; 0 means 1. It suits
	// streams in which many decisions fall on one instant.
	Second float64
}

func (l Trace) over(dt float64) float64 {
	if l.Second == 0 || l.Second == 1 {
		return l.Decision
	}
	return l.Decision * math.Pow(l.Second, dt)
}

// Advantages is generalised advantage estimation (Schulman et al., High-
// dimensional continuous control using generalized advantage estimation, ICLR
// 2016, equation 16) where decisions take unequal time: over dt seconds the
// discount is g^dt. With V the values,
//
//	delta_i = rewards_i + g^dt_i V_i+1 - V_i
//	A_i     = delta_i + g^dt_i lambda_i A_i+1
//
// rewards_i must be discounted to decision i, as a Trajectory holds them.
// values has one more element than rewards: the value of what follows, 0 where
// an episode has ended. The results, also one per decision, go to advantages.
func Advantages(advantages, rewards, seconds, values []float64, g Discount, trace Trace) {
	next := 0.0
	for i := len(rewards) - 1; i >= 0; i-- {
		over := g.Over(seconds[i])
		delta := rewards[i] + over*values[i+1] - values[i]
		next = delta + over*trace.over(seconds[i])*next
		advantages[i] = next
	}
}
