package metis

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/placetest"
)

// large is a request of many tasks of many workloads on nodes with some slots;
// 0 is no limit.
func large(tb testing.TB, nodes, tasks, workloads, slots int) place.Request {
	tb.Helper()
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: cluster.Nodes("", nodes, 0, slots)})
	if err != nil {
		tb.Fatal(err)
	}
	g := cluster.Group{Name: "batch"}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range tasks {
		g.Tasks = append(g.Tasks, cluster.Task{ID: cluster.TaskID(fmt.Sprint(i)), Workload: fmt.Sprintf("w%d", r.IntN(workloads))})
	}
	return place.Request{View: view, Pending: []cluster.Group{g}, Rand: r}
}

// Sizes that are none of those in training: one node, as many workloads as
// tasks, nodes without a limit, and thousands of nodes.
func TestAnySize(t *testing.T) {
	f := shaken(t, 4)
	for _, way := range []string{"search=off", "divide=flat", "divide=even"} {
		for _, c := range []struct{ nodes, tasks, workloads, slots, placed int }{
			{1, 12, 3, 8, 8},
			{1, 12, 3, 0, 12},
			{0, 3, 2, 8, 0},
			{5, 0, 1, 8, 0},
			{10, 30, 30, 8, 30},
			{5, 30, 7, 0, 30},
			{5000, 50, 3, 8, 50},
		} {
			p, err := f.Policy(Settings{Model: placetest.Model{}, Params: params(way)})
			if err != nil {
				t.Fatal(err)
			}
			req := large(t, c.nodes, c.tasks, c.workloads, c.slots)
			d, err := p.Place(req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := place.Evaluate(req, d, placetest.Model{}); err != nil || len(d.Bind) != c.placed {
				t.Errorf("%s, %+v: %d placed (%v)", way, c, len(d.Bind), err)
			}
		}
	}
}

// TestTenTimesTheNodesAndTasks wants a time about proportional to the tasks:
// were it to look at every node for each, ten times both would take a hundred
// times as long.
func TestTenTimesTheNodesAndTasks(t *testing.T) {
	f := shaken(t, 4)
	for _, way := range []string{"search=off", "divide=even"} {
		needs := func(nodes int) time.Duration {
			req := large(t, nodes, 2*nodes, 3, 8)
			best := time.Hour
			for range 3 {
				p, err := f.Policy(Settings{Model: placetest.Model{}, Params: params(way)})
				if err != nil {
					t.Fatal(err)
				}
				best = min(best, placetest.CPU(func() {
					if _, err := p.Place(req); err != nil {
						t.Fatal(err)
					}
				}))
			}
			return max(best, 10*time.Millisecond)
		}
		small, big := needs(300), needs(3000)
		if big > 40*small {
			t.Errorf("%s: %s for 600 tasks on 300 nodes, %s for ten times both", way, small, big)
		}
	}
}

// BenchmarkPass places by one pass. Every row of growth has about 2 tasks a
// node; ns/task is what should grow no faster than the logarithm of
// tasks x nodes.
func BenchmarkPass(b *testing.B) {
	f := shaken(b, 4)
	for _, c := range []struct{ tasks, nodes, workloads int }{
		{400, 81, 7},
		{3000, 729, 7},
		{3000, 729, 30},
		{100, 50, 7},
		{1000, 500, 7},
		{10_000, 5000, 7},
		{100, 50, 30},
		{1000, 500, 30},
		{10_000, 5000, 30},
	} {
		for _, way := range []string{"search=off", "divide=flat"} {
			b.Run(fmt.Sprintf("%s/%d-on-%d-of-%d", way, c.tasks, c.nodes, c.workloads), func(b *testing.B) {
				req := large(b, c.nodes, c.tasks, c.workloads, 8)
				b.ReportAllocs()
				for b.Loop() {
					p, err := f.Policy(Settings{Model: placetest.Model{}, Params: params(way)})
					if err != nil {
						b.Fatal(err)
					}
					if _, err := p.Place(req); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.tasks), "ns/task")
			})
		}
	}
}
