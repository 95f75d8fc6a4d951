package jobs

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/placetest"
)

// busy is a cluster of nodes x devices of two slots, filled but for a share.
func busy(tb testing.TB, nodes, devices, queue int, full float64) []place.Request {
	tb.Helper()
	return placetest.Busy(tb, placetest.Load{Nodes: nodes, Devices: devices, Tasks: int(full * float64(nodes*devices*2)), Queue: queue})
}

func believe(scope history.Scope) *Speeds {
	return NewSpeeds(placetest.Known{Model: placetest.Model{Names: []string{"v100"}}, List: placetest.Workloads(26)}, Options{Scope: scope})
}

// cpu reports the processor time an operation took, which says more than the
// wall clock where others use the machine.
func cpu(b *testing.B, run func()) {
	b.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	run()
	b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op")
}

func benchmarkPolicy(b *testing.B, name string, nodes, devices, queue int, full float64) {
	b.Helper()
	benchmarkRequests(b, name, busy(b, nodes, devices, queue, full))
}

func benchmarkRequests(b *testing.B, name string, reqs []place.Request) {
	b.Helper()
	p, err := New(name, Settings{Speeds: believe(history.ScopeDevice)})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	cpu(b, func() {
		for i := 0; b.Loop(); i++ {
			if _, err := p.Place(reqs[i%len(reqs)]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkPlace(b *testing.B) {
	for _, name := range Names() {
		if name == "linear" {
			continue
		}
		for _, queue := range []int{1, 300} {
			for _, full := range []float64{.7, 1} {
				b.Run(fmt.Sprintf("%s/16/queue=%d/full=%g", name, queue, full), func(b *testing.B) {
					benchmarkPolicy(b, name, 16, 1, queue, full)
				})
			}
		}
		b.Run(name+"/4000/gang", func(b *testing.B) {
			reqs := busy(b, 1000, 4, 1, .4)
			for i := range reqs {
				reqs[i].Pending = []cluster.Group{placetest.Gang("g", 4, "w03")}
			}
			benchmarkRequests(b, name, reqs)
		})
		b.Run(name+"/4000/queue=1/full=0.7", func(b *testing.B) { benchmarkPolicy(b, name, 1000, 4, 1, .7) })
	}
}

func BenchmarkBoard(b *testing.B) {
	reqs := busy(b, 1000, 4, 10, .9)
	speeds := believe(history.ScopeDevice)
	b.Run("anew", func(b *testing.B) {
		cpu(b, func() {
			for b.Loop() {
				NewBoard(speeds).Reset(reqs[0])
			}
		})
	})
	b.Run("next", func(b *testing.B) {
		board := NewBoard(speeds)
		cpu(b, func() {
			for i := 0; b.Loop(); i++ {
				board.Reset(reqs[i%len(reqs)])
			}
		})
	})
}
