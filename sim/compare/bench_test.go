package compare_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
)

// BenchmarkEvents replays 1,000 jobs of 20 workloads on 16 devices by spread, in
// a measured world, on one core (-cpu 1). events/s counts arrivals and
// completions, events/cpu-s by the processor time, which says more where others use
// the machine.
func BenchmarkEvents(b *testing.B) {
	needs := map[string]float64{}
	for i := range 20 {
		needs[fmt.Sprintf("w%02d", i)] = 0.1 + 0.04*float64(i)
	}
	w, err := compare.Measured(table("v100", 10, needs), cluster.Nodes("v100", 16, 1, 0), 2)
	if err != nil {
		b.Fatal(err)
	}
	speeds := w.Speeds(w.Table, 0)
	for _, load := range []float64{0.7, 0.9, 1.1} {
		b.Run(fmt.Sprintf("load=%g", load), func(b *testing.B) {
			list, err := w.Generate(compare.Load{Jobs: 1000, Load: load}, 1)
			if err != nil {
				b.Fatal(err)
			}
			p, err := jobs.New(compare.Spread, jobs.Settings{Speeds: speeds.Fork()})
			if err != nil {
				b.Fatal(err)
			}
			c := sim.Config{Nodes: w.Nodes, Workloads: w.Declared, Jobs: list, Policy: p, Truth: w.Truth(), Backfill: true}
			events, before := 0, used(b)
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
			b.ReportMetric(float64(events)/(used(b)-before).Seconds(), "events/cpu-s")
		})
	}
}

// used is the processor time so far.
func used(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
