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

// What a job runs at alone, measured or scaled to a size that was not.
func ExampleAloneRates() {
	alone := func(workers int, span cluster.Span, rate float64) history.Sample {
		return history.Sample{
			Class: "v100", Colocation: cluster.Colocation{"lm/5": 1}, Workload: "lm/5", Workers: workers, Span: span,
			Metric: history.Rate, Value: rate,
		}
	}
	rates := history.NewAloneRates([]history.Sample{alone(1, "", 100), alone(4, cluster.SpanNode, 340), alone(4, cluster.SpanApart, 120)})
	for _, workers := range []int{4, 16} {
		rate, scaled, _ := rates.Rate("v100", "lm/5", workers, cluster.SpanNode)
		fmt.Println(workers, "workers:", rate, "steps/s, scaled:", scaled)
	}
	p, _ := rates.Progress("v100", "lm/5", 4, cluster.SpanApart, []string{"v100"})
	fmt.Printf("apart: progress %.2f\n", p)
	// Output:
	// 4 workers: 340 steps/s, scaled: false
	// 16 workers: 1360 steps/s, scaled: true
	// apart: progress 0.35
}
