package baseline_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/place/placetest"
)

// large is a request of many tasks of many workloads on nodes with 8 slots.
func large(tb testing.TB, nodes, tasks, workloads int, edit func(*cluster.Spec)) place.Request {
	tb.Helper()
	spec := cluster.Spec{Nodes: cluster.Nodes("", nodes, 0, 8)}
	if edit != nil {
		edit(&spec)
	}
	view, err := cluster.NewSnapshot(spec)
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

// constrained adds zones, running tasks on a third of the slots, and one rule of
// each kind that spans nodes.
func constrained(s *cluster.Spec) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range s.Nodes {
		s.Nodes[i].Labels = map[string]string{cluster.ZoneKey: fmt.Sprint(i % 3)}
		for j := range r.IntN(6) {
			s.Running = append(s.Running, cluster.Running{
				Task: cluster.Task{ID: cluster.TaskID(fmt.Sprintf("running/%d/%d", i, j)), Workload: fmt.Sprintf("w%d", 2+r.IntN(3))},
				Node: s.Nodes[i].Name,
			})
		}
	}
	s.Constraints = cluster.Constraints{
		AntiAffinity: []cluster.AntiAffinity{{A: "w0", B: "w1"}},
		MaxPerNode:   map[string]int{"w5": 2},
		Spread:       []cluster.Spread{{Workload: "w6", Key: cluster.ZoneKey}},
	}
}

func BenchmarkPlace(b *testing.B) {
	for _, c := range []struct {
		name                    string
		nodes, tasks, workloads int
		edit                    func(*cluster.Spec)
	}{
		{"3000-on-729", 729, 3000, 7, nil},
		{"3000-on-729-constrained", 729, 3000, 7, constrained},
		{"400-on-81-of-30-workloads", 81, 400, 30, nil},
		{"3000-on-729-of-30-workloads", 729, 3000, 30, nil},
	} {
		for _, name := range []string{"spread", "greedy", "greedy-search"} {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				req := large(b, c.nodes, c.tasks, c.workloads, c.edit)
				p, err := baseline.New(name, baseline.Options{Model: placetest.Model{}})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				value := 0.0
				for b.Loop() {
					d, err := p.Place(req)
					if err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					e, err := place.Evaluate(req, d, placetest.Model{})
					if err != nil {
						b.Fatal(err)
					}
					value = e.Value
					b.StartTimer()
				}
				b.ReportMetric(value, "performance")
			})
		}
	}
}
