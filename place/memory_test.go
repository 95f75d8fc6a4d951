package place_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/placetest"
)

// asked is a request for so many tasks of two workloads on two nodes.
func asked(t *testing.T, tasks int, o place.Objective) place.Request {
	t.Helper()
	view, err := cluster.NewSnapshot(cluster.Spec{
		Nodes: cluster.Nodes("", 2, 0, 8), Workloads: []cluster.Workload{{Name: "a", Edges: []cluster.Edge{{To: "b"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	g := cluster.Group{Name: "g"}
	for i := range tasks {
		g.Tasks = append(g.Tasks, cluster.Task{ID: cluster.TaskID(fmt.Sprint(i)), Workload: []string{"a", "b"}[i%2]})
	}
	return place.Request{View: view, Pending: []cluster.Group{g}, Objective: o}
}

// A memory that has seen another request gives the trials that a new one gives:
// those of NewTrial but for one factor, where the objective is mean or p99
// alone, and those of NewTrial itself elsewhere.
func TestMemory(t *testing.T) {
	m := placetest.Model{Names: []string{""}}
	for _, o := range []place.Objective{place.MeanPerformance, place.TailLatency, place.NodesUsed, {Mean: 1, Nodes: .02}, {Mean: 1, Worst: .5}, {Mean: 1, Traffic: .5}} {
		var memory place.Memory
		memory.Trial(asked(t, 8, o), m, 0)
		req := asked(t, 4, o)
		used, plain, fresh := memory.Trial(req, m, 0), place.NewTrial(req, m, 0), (&place.Memory{}).Trial(req, m, 0)
		factor := 1.0
		if o == place.MeanPerformance || o == place.TailLatency {
			factor = 4 // tasks
		}
		for i := range req.Tasks() {
			k := used.Kind(i)
			if a, b := used.Gain(k, i%2), fresh.Gain(k, i%2); a != b {
				t.Errorf("%+v: task %d gains %v after another request, %v without", o, i, a, b)
			}
			if a, b := used.Gain(k, i%2), factor*plain.Gain(k, i%2); math.Abs(a-b) > 1e-12 {
				t.Errorf("%+v: task %d gains %v by the memory, %v by a trial of its own", o, i, a, b)
			}
			used.Put(k, i%2)
			plain.Put(k, i%2)
			fresh.Put(k, i%2)
		}
	}
}
