// Package harmony trains the policy of place/harmony, as Harmony does (Bao et
// al., INFOCOM 2019, sections IV and V): offline, in a simulated cluster whose
// speeds are those that an interference model predicts, never the true ones;
// with experience replay and job-aware exploration; and online, from what
// really happened.
//
//	t, err := harmony.NewTrainer(harmony.Config{Worlds: worlds, Seed: 1})
//	for !t.Done() {
//		progress, err := t.Step(ctx)
//	}
//	net := t.Best()
//
// A World draws the situations to learn from: clusters, streams of jobs, and
// the beliefs about speed that both the policy and the simulator go by.
package harmony
