package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cotenant/cotenant/sim"
)

// BenchmarkEvents replays 1,000 jobs on 16 devices of 2 slots, on one core
// (-cpu 1). events/s counts arrivals and completions.
func BenchmarkEvents(b *testing.B) {
	for _, load := range []float64{0.9, 1.1} {
		for _, backfill := range []bool{false, true} {
			b.Run(fmt.Sprintf("load=%g/backfill=%t", load, backfill), func(b *testing.B) {
				rnd := rand.New(rand.NewPCG(1, 2))
				var jobs []sim.Job
				at, mean := 0.0, (53-0.5)*3600/math.Log(53/0.5)
				for i := range 1000 {
					at += rnd.ExpFloat64() * mean / load / 16
					work := 1800 * math.Pow(53/0.5, rnd.Float64())
					jobs = append(jobs, single(fmt.Sprint("job-", i), fmt.Sprint("w", rnd.IntN(8)), time.Duration(at*1e9), work))
				}
				c := sim.Config{
					Nodes: gpus(16, 2), Jobs: jobs, Policy: &least{}, Backfill: backfill,
					Truth: &share{slow: map[string]float64{"w0": 0.5, "w1": 0.2, "w2": 1, "w3": 0.7}},
				}
				events := 0
				b.ReportAllocs()
				for b.Loop() {
					r, err := sim.Run(c)
					if err != nil {
						b.Fatal(err)
					}
					if len(r.Unfinished) > 0 {
						b.Fatal(r.Unfinished, r.Why)
					}
					events += r.Events
				}
				b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
			})
		}
	}
}
