// Package curves writes the scalars of a training run for people to look at
// while it runs: as JSON Lines, and as event files that TensorBoard reads.
//
//	log, err := curves.Open(dir, 0, time.Now())
//	defer log.Close()
//	err = log.Add(update, time.Now(), []curves.Scalar{{"train/entropy", 0.7}, {"validation/spread", 0.93}})
//
// Then `tensorboard --logdir DIR`. A run that goes on after an interruption
// opens the same folder with the step from which it goes on: what was written
// of that step and later ones is dropped, from the lines as from the curves.
package curves
