package history_test

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// Two runs measured redis next to nginx; one of them in thousands of
// requests/s. They merge by performance.
func ExampleSummarise() {
	both := cluster.Colocation{"redis": 1, "nginx": 1}
	var store history.Memory
	err := store.Append(
		history.Sample{Source: "monday", Colocation: both, Workload: "redis", Metric: history.Rate, Value: 60e3, Alone: 80e3, Repeats: 3, Spread: 500},
		history.Sample{Source: "friday", Colocation: both, Workload: "redis", Metric: history.Rate, Value: 62, Alone: 80, Repeats: 3, Spread: 0.5},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	samples, err := store.All()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range history.Summarise(samples).Samples {
		p, _ := s.Performance()
		fmt.Printf("%s: performance %.4f (%d repeats, spread %.0f requests/s)\n", s.Cell(), p, s.Repeats, s.Spread)
	}
	// Output:
	// rate of redis in nginx+redis: performance 0.7625 (6 repeats, spread 1183 requests/s)
}
