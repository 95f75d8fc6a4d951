package balance_test

import (
	"fmt"
	"log"
	"time"

	"github.com/cotenant/cotenant/balance"
)

func Example() {
	workers := []balance.Worker{{Name: "rank0"}, {Name: "rank1"}, {Name: "rank2"}, {Name: "rank3"}}
	b, err := balance.New(workers, balance.Options{GlobalBatch: 256})
	if err != nil {
		log.Fatal(err)
	}
	speeds := []float64{200, 400, 600, 600} // samples a second
	for k := range int64(3) {
		shares := b.Next(k)
		fmt.Println(k, shares.BatchSizes)
		var reports []balance.Report
		for i, w := range workers {
			x := shares.BatchSizes[i]
			reports = append(reports, balance.Report{
				Worker: w.Name, Generation: shares.Generation, Iteration: k, BatchSize: x,
				Compute: time.Duration(float64(x) / speeds[i] * float64(time.Second)),
			})
		}
		if err := b.Observe(reports); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 0 [64 64 64 64]
	// 1 [29 57 85 85]
	// 2 [29 57 85 85]
}
