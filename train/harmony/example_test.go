package harmony_test

import (
	"context"
	"fmt"

	"github.com/cotenant/cotenant/train/harmony"
)

// A few updates in a world in which greedy-wait waits too much.
func Example() {
	world, err := toyWorld(1.2)
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := harmony.NewTrainer(quick(world))
	if err != nil {
		fmt.Println(err)
		return
	}
	var looks [][]float64
	err = t.Run(context.Background(), func(r harmony.Report) error {
		if r.Ratios != nil {
			looks = append(looks, r.Ratios)
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, at := t.Best()
	fmt.Printf("untrained, JCT / greedy-wait is %.1f\n", looks[0][1])
	fmt.Println("trained, it is below 0.85:", looks[len(looks)-1][1] < 0.85, at > 0)
	// Output:
	// untrained, JCT / greedy-wait is 1.0
	// trained, it is below 0.85: true true
}
