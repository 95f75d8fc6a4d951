package harmony

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/jobs"
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

// busy is a cluster of nodes x devices of two slots with so many tasks, of gangs
// of as many as are given, and some steps: in each one task ends and another
// comes.
func busy(tb testing.TB, nodes, devices, tasks, together, queue, workers int) []place.Request {
	tb.Helper()
	ns := cluster.Nodes("v100", nodes, devices, 0)
	for i := range ns {
		for d := range ns[i].Devices {
			ns[i].Devices[d].Slots = 2
		}
	}
	names := workloadNames(26)
	var running []cluster.Running
	for i := range tasks {
		at := i * 2654435761 % (nodes * devices * 2) / 2 // one in three devices has two
		running = append(running, cluster.Running{
			Task:    cluster.Task{ID: cluster.TaskID(fmt.Sprintf("r%d/0", i)), Workload: names[i*7%26], Role: cluster.Worker, Devices: 1},
			Node:    ns[at/devices].Name,
			On:      []int{at % devices},
			Group:   fmt.Sprintf("r%d", i/together),
			Movable: true,
			Started: time.Duration(i) * time.Minute,
		})
	}
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: ns, Running: running})
	if err != nil {
		tb.Fatal(err)
	}
	var pending []cluster.Group
	for i := range queue {
		pending = append(pending, gangOf(fmt.Sprintf("q%d", i), workers, names[i*5%26]))
	}
	var reqs []place.Request
	for i := range 16 {
		reqs = append(reqs, place.Request{View: view, Pending: pending, Now: 50 * time.Hour})
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
			reqs := busy(b, 1000, c.devices, c.tasks, c.together, 100, c.workers)
			speeds := jobs.NewSpeeds(known{placetest.Model{Names: []string{"v100"}}, workloadNames(26)}, jobs.Options{Scope: history.ScopeDevice})
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
