package harmony

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/place/placetest"
)

// BenchmarkPlace measures one decision about 100 gangs that wait, on 1,000
// nodes with 2,000 tasks, or 1,900 where that leaves no room.
func BenchmarkPlace(b *testing.B) {
	for _, c := range []struct {
		devices, tasks, together, workers int
		migrate                           time.Duration
	}{
		{1, 2000, 1, 1, 0},
		{1, 1900, 1, 1, 0},
		{4, 2000, 1, 1, 0},
		{4, 7950, 1, 1, 0},
		{4, 2000, 1, 4, 0},
		{4, 2000, 4, 4, 0},
		{4, 6000, 4, 4, 0},
		{1, 2000, 1, 1, 30 * time.Second},
		{1, 1900, 1, 1, 30 * time.Second},
		{4, 2000, 1, 1, 30 * time.Second},
		{4, 7950, 1, 1, 30 * time.Second},
	} {
		b.Run(fmt.Sprintf("devices=%d/tasks=%d/together=%d/workers=%d/migrate=%s", c.devices, c.tasks, c.together, c.workers, c.migrate), func(b *testing.B) {
			reqs := placetest.Busy(b, placetest.Load{
				Nodes: 1000, Devices: c.devices, Tasks: c.tasks, Together: c.together, Scattered: true, Queue: 100, Workers: c.workers,
			})
			speeds := jobs.NewSpeeds(placetest.Known{Model: placetest.Model{Names: []string{"v100"}}, List: placetest.Workloads(26)}, jobs.Options{Scope: history.ScopeDevice})
			p, err := untrained(b).Policy(jobs.Settings{Speeds: speeds, Migrate: c.migrate})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			bound, before := 0, used(b)
			for i := 0; b.Loop(); i++ {
				d, err := p.Place(reqs[i%len(reqs)])
				if err != nil {
					b.Fatal(err)
				}
				bound += len(d.Bind)
			}
			b.ReportMetric(float64(bound)/float64(b.N), "placed/op")
			b.ReportMetric(float64(used(b)-before)/1e6/float64(b.N), "cpu-ms/op")
		})
	}
}

// used is the processor time so far, which says more than the wall clock where
// others use the machine.
func used(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
