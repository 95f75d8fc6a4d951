// Package harmony trains the policy of place/harmony, as Harmony does (Bao et
// al., INFOCOM 2019, sections IV and V): offline, in a simulated cluster whose
// speeds are those that an interference model predicts, never the true ones;
// with experience replay and job-aware exploration; and online, from what
// really happened.
//
//	t, err := harmony.NewTrainer(harmony.Config{Worlds: worlds, Seed: 1})
//	err = t.Run(ctx, func(r harmony.Report) error { return log.Add(r.Update, time.Now(), r.Scalars()) })
//	net, update := t.Best() // against greedy-wait, on validation seeds
//
// A World draws the situations to learn from: clusters, streams of jobs, and
// the beliefs about speed that both the policy and the simulator go by;
// train/worlds makes some. Trainer.Step is one update. After Save and Restore a
// run goes on to the same bytes. Online wraps a policy that goes on learning
// while it works:
//
//	policy, err := harmony.NewOnline(trained, harmony.OnlineOptions{Seed: 1})
package harmony
