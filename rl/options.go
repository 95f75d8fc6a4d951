package rl

import (
	"fmt"
	"math"
)

// Options of a Learner. DefaultOptions is a start.
type Options struct {
	// Average learns the average reward per second instead of the discounted
	// sum: rewards lose the average rate, estimated as learning goes, and
	// trajectories have discount 1 and are cut, never ended (Mahadevan, Average
	// reward reinforcement learning, Machine Learning 1996, section 3).
	Average bool
	Trace   Trace

	// Clip bounds how far an update moves a probability, as a share. +Inf with Epochs 1 is plain advantage
	// actor-critic.
	Clip   float64
	Epochs int
	// Minibatch is how many decisions one step of the optimiser sees.
	Minibatch int
	// Divergence ends an update's epochs once the policy has moved that far, in
	// nats of the Kullback-Leibler divergence; 0 never does.
	Divergence float64

	Rate    Schedule // learning rate
	Entropy Schedule // weight of the entropy
	Value   float64  // weight of the critic's loss
	// Imitation weighs the cross-entropy towards experts' candidates where
	// decisions note them; Imitate ignores it.
	Imitation     Schedule
	ImitationRate float64 // learning rate of Imitate

	// Remember is how many decisions of good episodes are kept, 0 for none;
	// Good weighs imitating them, GoodShare is how many join a minibatch, as a
	// share of it; Power is the exponent of their priority.
	Remember         int
	Good             Schedule
	GoodShare, Power float64

	// Gradient is the largest norm of a step's gradient; longer ones are
	// shortened. 0 is no limit.
	Gradient float64
	Decay    float64 // weight decay of the hidden layers
	// Workers is how many goroutines share an update; the result is the same for
	// any number.
	Workers int
}

// DefaultOptions are the usual constants of PPO (Schulman et al., 2017, table
// 3, and Andrychowicz et al., What matters in on-policy reinforcement learning,
// ICLR 2021) for hundreds to thousands of decisions an update. Nothing is
// remembered and nobody imitated.
func DefaultOptions() Options {
	return Options{
		Trace: Trace{Decision: 0.95},
		Clip:  0.2, Epochs: 4, Minibatch: 256, Divergence: 0.03,
		Rate: Constant(1e-3), Entropy: Constant(0.01), Value: 0.5,
		ImitationRate: 1e-3,
		Good:          Constant(1), GoodShare: 0.25, Power: 0.6,
		Gradient: 1, Workers: 1,
	}
}

func (o Options) check() error {
	type limit struct {
		name        string
		v, low, top float64
	}
	inf := math.Inf(1)
	for _, l := range []limit{
		{"Trace.Decision", o.Trace.Decision, 0, 1},
		{"Trace.Second", o.Trace.Second, 0, 1},
		{"Clip", o.Clip, 0, inf},
		{"Epochs", float64(o.Epochs), 1, inf},
		{"Minibatch", float64(o.Minibatch), 1, inf},
		{"Divergence", o.Divergence, 0, inf},
		{"Value", o.Value, 0, inf},
		{"Rate.From", o.Rate.From, 0, inf},
		{"Rate.To", o.Rate.To, 0, inf},
		{"ImitationRate", o.ImitationRate, 0, inf},
		{"Remember", float64(o.Remember), 0, inf},
		{"GoodShare", o.GoodShare, 0, inf},
		{"Power", o.Power, 0, inf},
		{"Gradient", o.Gradient, 0, inf},
		{"Decay", o.Decay, 0, inf},
	} {
		if !(l.v >= l.low && l.v <= l.top) {
			return fmt.Errorf("option %s of a learner is %g: it must be in [%g, %g]", l.name, l.v, l.low, l.top)
		}
	}
	return nil
}
