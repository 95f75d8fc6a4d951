package rl_test

import (
	"context"
	"fmt"

	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/rl"
)

// Two queues, each with its length as the one feature; a customer waits as long
// as the queue that is chosen. The policy learns to join the shorter one.
func Example() {
	net, err := num.NewScorer(num.ScorerShape{Features: 1, Hidden: []int{8}}, num.Rand(1))
	if err != nil {
		panic(err)
	}
	options := rl.DefaultOptions()
	options.Rate = rl.Constant(1e-2)
	learner, err := rl.NewLearner(net, options, 1)
	if err != nil {
		panic(err)
	}
	episode := func(_ int, seed uint64) (*rl.Trajectory, error) {
		sampler := &rl.Sampler{Net: net, Rand: num.Rand(seed)}
		t := rl.NewTrajectory(0.5) // per second
		for range 32 {
			lengths := num.Matrix{Rows: 2, Cols: 1, Data: []float32{sampler.Rand.Float32(), sampler.Rand.Float32()}}
			choice := sampler.Choose(lengths, nil)
			t.Add(lengths, nil, choice)
			t.Flow(-float64(lengths.Data[choice.Index]), 1)
		}
		t.End()
		return t, nil
	}
	for update := range 20 {
		seeds := []uint64{uint64(4 * update), uint64(4*update + 1), uint64(4*update + 2), uint64(4*update + 3)}
		trajectories, err := rl.Rollouts(context.Background(), 2, seeds, episode)
		if err != nil {
			panic(err)
		}
		if _, err := learner.Update(trajectories); err != nil {
			panic(err)
		}
	}
	policy := rl.Sampler{Net: net}
	fmt.Println(policy.Best(num.Matrix{Rows: 2, Cols: 1, Data: []float32{0.7, 0.2}}, nil))
	// Output: 1
}
