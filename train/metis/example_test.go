package metis_test

import (
	"context"
	"fmt"

	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/sim/generated"
	"github.com/cotenant/cotenant/train/metis"
)

func Example() {
	model := func(seed uint64) (interference.Model, error) { return generated.New(4, seed), nil }
	small := metis.Random{Model: model, Nodes: [2]int{4, 8}, Slots: [2]int{4, 4}, Load: [2]float64{0.5, 0.9}}
	t, err := metis.NewTrainer(metis.Config{
		Worlds: []metis.World{{Name: "small", Draw: small.Draw}}, Seed: 1, Updates: 2, Episodes: 4, Takes: 2, Validation: 1,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = t.Run(context.Background(), func(metis.Report) error { return nil })
	fmt.Println(t.Updates(), t.Done(), err)
	// Output: 2 true <nil>
}
