// Package compare runs policies for jobs against each other: on the same
// cluster, jobs, failures and true rates, seed by seed, each with the beliefs
// that it is entitled to.
//
//	world, err := compare.Measured(samples, nodes, 2)
//	setting := compare.Setting{
//		World: world, Specs: specs, Seeds: seeds, Belief: compare.Belief{Observed: 0.8},
//		Jobs:  func(seed uint64) ([]sim.Job, error) { return world.Generate(compare.Load{Jobs: 1000, Load: 0.9}, seed) },
//	}
//	outcomes, err := setting.Run(ctx)
//	for _, row := range compare.Rows(outcomes) { fmt.Println(row.Spec.Text, row.Ratio) }
//
// A World knows the truth (sim.Truth) and what anybody may know: rates alone,
// what does not fit together, and samples of co-locations, of which a Belief
// shows a share to whoever learns. A Spec names a policy as on the command
// line; the table of constructors in policy.go is where a new one is added.
// Only a policy named NAME:truth believes the true table; World.Calls counts
// how often the truth was asked, so that it can be shown that learning and
// tuning never did.
package compare
