// Package tune searches the parameters of policies: all by the same search,
// with the same budget, on the same validation seeds.
//
//	tuned, err := tune.Policies(ctx, &setting, tune.Options{Budget: 40, Seeds: validation, Load: load})
//	for _, t := range tuned { fmt.Println(t.Spec.Text, t.Best, t.Score) }
//
// Search is random search with refinement: the default values, then random
// ones, then ones ever closer to the best so far. It minimises the mean JCT
// over the validation seeds as a share of that of the default values. A policy
// is tried in the world that it believes (Setting.Learned), so that tuning
// asks the truth nothing; only NAME:truth is tuned on the truth. The same
// seed gives the same values, however many cores there are.
package tune
