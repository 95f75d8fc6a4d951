// Package worlds makes the worlds to train in out of a sim/compare World: its
// cluster, smaller and larger; its streams of jobs, at other loads and of other
// durations; and somebody's belief about its speeds.
//
//	speeds := world.Speeds(model, 0)
//	w, err := worlds.Convert("v100", world, speeds, worlds.Options{Jobs: 500})
//	trainer, err := harmony.NewTrainer(harmony.Config{Worlds: []harmony.World{w}})
//
// It stands apart from train/harmony, which so reaches no truth even by its
// imports. Nothing here asks the truth either: World.Calls stays 0.
package worlds
