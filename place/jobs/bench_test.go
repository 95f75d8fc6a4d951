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

// known is placetest.Model with a list of workloads.
type known struct {
	placetest.Model
	workloads []string
}

func (k known) Workloads(string) []string { return k.workloads }

func workloadNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("w%02d", i)
	}
	return names
}

// busy is a cluster of nodes x devices of two slots, filled but for a share,
// and as many steps: in each one job ends and another comes.
func busy(tb testing.TB, nodes, devices, queue int, full float64) []place.Request {
	tb.Helper()
	ns := cluster.Nodes("v100", nodes, devices, 0)
	for i := range ns {
		for d := range ns[i].Devices {
			ns[i].Devices[d].Slots = 2
		}
	}
	names := workloadNames(26)
	var running []cluster.Running
	total := nodes * devices * 2
	for i := range int(full * float64(total)) {
		at := i % (nodes * devices)
		running = append(running, cluster.Running{
			Task:  cluster.Task{ID: cluster.TaskID(fmt.Sprintf("r%d/0", i)), Workload: names[i*7%26], Role: cluster.Worker, Devices: 1},
			Node:  ns[at/devices].Name,
			On:    []int{at % devices},
			Group: fmt.Sprintf("r%d", i),
		})
	}
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: ns, Running: running})
	if err != nil {
		tb.Fatal(err)
	}
	var pending []cluster.Group
	for i := range queue {
		pending = append(pending, gangOf(fmt.Sprintf("q%d", i), 1, names[i*5%26]))
	}
	var reqs []place.Request
	for i := range 16 {
		reqs = append(reqs, place.Request{View: view, Pending: pending, Now: time.Hour})
		gone := i * 3 % len(running)
		next := running[gone]
		next.ID, next.Group = cluster.TaskID(fmt.Sprintf("s%d/0", i)), fmt.Sprintf("s%d", i)
		if view, err = view.Next([]int{gone}, []cluster.Running{next}); err != nil {
			tb.Fatal(err)
		}
		running = view.Running()
	}
	return reqs
}

func gangOf(name string, workers int, workload string) cluster.Group {
	g := cluster.Group{Name: name, Gang: true}
	for i := range workers {
		g.Tasks = append(g.Tasks, cluster.Task{
			ID: cluster.TaskID(fmt.Sprintf("%s/%d", name, i)), Workload: workload, Role: cluster.Worker, Devices: 1,
		})
	}
	return g
}

func believe(scope history.Scope) *Speeds {
	return NewSpeeds(known{placetest.Model{Names: []string{"v100"}}, workloadNames(26)}, Options{Scope: scope})
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
				reqs[i].Pending = []cluster.Group{gangOf("g", 4, "w03")}
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
