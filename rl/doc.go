// Package rl is the reinforcement learning that the training of all policies
// shares: trajectories, advantages, the actor-critic update, exploration by
// experts, memory of good episodes, and rollouts side by side.
//
// A decision chooses one of any number of candidates, each described by
// features, in a context. The network is a num.Scorer: one score for each
// candidate, one value for the decision.
//
//	net, err := num.NewScorer(num.ScorerShape{Features: 24, Context: 16, Hidden: []int{64, 64}}, num.Rand(seed))
//	learner, err := rl.NewLearner(net, rl.DefaultOptions(), seed)
//	for range updates {
//		trajectories, err := rl.Rollouts(ctx, 2, seeds, func(worker int, seed uint64) (*rl.Trajectory, error) {
//			sampler := &rl.Sampler{Net: net, Rand: num.Rand(seed), Epsilon: epsilon.At(learner.Updates())}
//			t := rl.NewTrajectory(0.9999) // per second
//			for each event {
//				t.Flow(reward per second, seconds since the last event)
//				choice := sampler.Choose(candidates, context, expert)
//				t.Add(candidates, context, choice)
//			}
//			t.End()
//			return t, nil
//		})
//		stats, err := learner.Update(trajectories)
//	}
//
// Decisions come when things happen, not on a grid: discounts are per second,
// rewards flow between decisions, and advantages take the time that passed into
// account. Learner.Imitate gives a warm start from an expert; Learner.Save and
// Learner.Restore let training stop and go on with the same bytes.
//
// The same seeds give the same bytes on the same architecture, whatever the
// number of workers.
package rl
