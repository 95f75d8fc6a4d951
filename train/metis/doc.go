// Package metis trains the sub-policies of place/metis, as Metis does (Wang et
// al., SC 2020), but once, offline and for any cluster: on task batches and on
// streams of services that are drawn at random, by what an interference model
// believes.
//
//	t, err := metis.NewTrainer(metis.Config{Worlds: worlds, Seed: 1})
//	err = t.Run(ctx, func(r metis.Report) error { return log.Add(r.Update, time.Now(), r.Scalars(worlds)) })
//	nets, update := t.Best() // against greedy, on validation seeds
//
// Each update is of one kind of level of the hierarchy, nodes or parts, and at
// the end of whose turn it is: decisions of the others are taken by their
// networks as they are.
package metis
