package tune_test

import (
	"context"
	"fmt"
	"math"

	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/train/tune"
)

func ExampleSearch() {
	search := tune.Search{
		Params: []jobs.Param{{Key: "x", Low: -10, High: 10, Default: 8}},
		Budget: 40,
		Score: func(_ context.Context, batch []tune.Values) ([]float64, error) {
			scores := make([]float64, len(batch))
			for i, v := range batch {
				scores[i] = math.Abs(v["x"] - 3)
			}
			return scores, nil
		},
	}
	best, trials, err := search.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("x is about %.0f, after %d trials\n", best.Values["x"], len(trials))
	// Output: x is about 3, after 40 trials
}
