package rl

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Rollouts runs one episode for each seed on a number of workers (at least
// one) and returns the results in the order of the seeds. run must depend on
// its seed alone: then the results are the same whatever the number of workers.
// worker, below workers, tells run which scratch memory is its own.
//
// After an error, or once ctx is done, no new episode starts; the error
// returned is the one of the earliest seed, else that of ctx.
func Rollouts[T any](ctx context.Context, workers int, seeds []uint64, run func(worker int, seed uint64) (T, error)) ([]T, error) {
	results, errs := make([]T, len(seeds)), make([]error, len(seeds))
	var next atomic.Int64
	var failed atomic.Bool
	work := func(worker int) {
		for ctx.Err() == nil && !failed.Load() {
			i := int(next.Add(1)) - 1
			if i >= len(seeds) {
				return
			}
			if results[i], errs[i] = run(worker, seeds[i]); errs[i] != nil {
				failed.Store(true)
			}
		}
	}
	var group sync.WaitGroup
	for worker := 1; worker < min(workers, len(seeds)); worker++ {
		group.Go(func() { work(worker) })
	}
	work(0)
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return results, nil
}

// Takes plays every scene so many times by Rollouts, with take counted over all
// of them, makes the takes of a scene one Trajectory.Group, and leaves out
// those without a decision. run must depend on scene and take alone.
func Takes(ctx context.Context, workers int, scenes []uint64, takes int, run func(worker int, scene, take uint64) (*Trajectory, error)) ([]*Trajectory, error) {
	all := make([]uint64, len(scenes)*takes)
	for i := range all {
		all[i] = uint64(i)
	}
	trajectories, err := Rollouts(ctx, workers, all, func(worker int, take uint64) (*Trajectory, error) {
		nth := take / uint64(takes)
		t, err := run(worker, scenes[nth], take)
		if t != nil {
			t.Group = nth + 1
		}
		return t, err
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(trajectories, func(t *Trajectory) bool { return t.Len() == 0 }), nil
}
