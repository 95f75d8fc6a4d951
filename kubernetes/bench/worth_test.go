package bench_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/kubernetes/bench"
	"github.com/cotenant/cotenant/place/baseline"
)

// twos is a table of two workloads in twos: each runs at its full speed beside
// the other, and at half beside its own kind.
func twos() []history.Sample {
	rate := func(c cluster.Colocation, w string, v float64) history.Sample {
		return history.Sample{Colocation: c, Workload: w, Metric: history.Rate, Value: v, Alone: 1}
	}
	both := cluster.Colocation{"cache": 1, "store": 1}
	return []history.Sample{
		rate(cluster.Colocation{"cache": 1}, "cache", 1),
		rate(cluster.Colocation{"store": 1}, "store", 1),
		rate(cluster.Colocation{"cache": 2}, "cache", .5),
		rate(cluster.Colocation{"store": 2}, "store", .5),
		rate(both, "cache", 1), rate(both, "store", 1),
	}
}

func ExampleTruth_Judge() {
	truth, err := bench.NewTruth("an example", twos())
	if err != nil {
		fmt.Println(err)
		return
	}
	batch := truth.Even(4, 2) // two caches and two stores on two nodes
	apart := map[string]string{"cache-0": "node-0000", "cache-1": "node-0000", "store-0": "node-0001", "store-1": "node-0001"}
	w, err := truth.Judge(batch, apart)
	fmt.Printf("%d of %d bound, mean performance %.2f, at most %.2f: %.0f %% %v\n", w.Pods, w.Tasks, w.MeanPerformance, w.Bound, 100*w.Share, err)
	// Output: 4 of 4 bound, mean performance 0.50, at most 1.00: 50 % <nil>
}

func TestJudgeCountsWhatIsBound(t *testing.T) {
	truth, err := bench.NewTruth("twos", twos())
	if err != nil {
		t.Fatal(err)
	}
	w, err := truth.Judge(truth.Even(4, 2), map[string]string{"cache-0": "node-0000", "store-1": "node-0000"})
	if err != nil || w.Pods != 2 || w.Tasks != 4 || w.MeanPerformance != 1 {
		t.Errorf("worth %+v, error %v", w, err)
	}
	if w, err := truth.Judge(truth.Even(4, 2), nil); err != nil || w.Pods != 0 || w.MeanPerformance != 0 {
		t.Errorf("of nothing: worth %+v, error %v", w, err)
	}
	full := map[string]string{"cache-0": "node-0000", "cache-1": "node-0000", "store-0": "node-0000"}
	if _, err := truth.Judge(truth.Even(4, 2), full); err == nil {
		t.Error("three on a node of two slots: no error")
	}
}

func TestTruthThatShips(t *testing.T) {
	truth, err := bench.ReadTruth("")
	if err != nil {
		t.Fatal(err)
	}
	if truth.Slots != 4 || len(truth.Workloads) != 6 {
		t.Errorf("%d slots, workloads %q", truth.Slots, truth.Workloads)
	}
}

// The counts of DESIGN.md's measured facts: 3,000 tasks of seven workloads.
func TestTruthOfMetis(t *testing.T) {
	path := bench.Shared("metis/colocation-6435.csv")
	if path == "" {
		t.Skip("../shared/data/metis/colocation-6435.csv is absent: its bound is not checked")
	}
	truth, err := bench.ReadTruth(path)
	if err != nil {
		t.Fatal(err)
	}
	if truth.Slots != 8 || len(truth.Workloads) != 7 {
		t.Errorf("%d slots, workloads %q", truth.Slots, truth.Workloads)
	}
	w, err := truth.Judge(truth.Even(3000, 729), nil)
	if err != nil || math.Abs(w.Bound-1.1838) > 2e-3 {
		t.Errorf("bound %.4f, want about 1.1838 (%v)", w.Bound, err)
	}
}

func TestMixedHasAllTasks(t *testing.T) {
	truth, err := bench.NewTruth("twos", twos())
	if err != nil {
		t.Fatal(err)
	}
	b := truth.Mixed(1000, 729, 7)
	if b.Tasks() != 1000 {
		t.Errorf("%d tasks, want 1000", b.Tasks())
	}
	for _, s := range b.Services {
		if s.Replicas < 1 || s.Replicas > 16 {
			t.Errorf("service %s has %d replicas", s.Name, s.Replicas)
		}
	}
}

func TestInSequence(t *testing.T) {
	truth, err := bench.NewTruth("twos", twos())
	if err != nil {
		t.Fatal(err)
	}
	greedy, err := baseline.New("greedy", baseline.Options{Model: truth.Model()})
	if err != nil {
		t.Fatal(err)
	}
	b := bench.Batch{Nodes: 2, Slots: 2, Services: []bench.Service{
		{Name: "a", Workload: "cache", Replicas: 1},
		{Name: "b", Workload: "cache", Replicas: 1},
		{Name: "c", Workload: "store", Replicas: 2},
	}}
	at, err := b.InSequence(greedy)
	if err != nil {
		t.Fatal(err)
	}
	if w, err := truth.Judge(b, at); err != nil || w.Pods != 4 || w.MeanPerformance != 1 {
		t.Errorf("placement %v is worth %+v (%v)", at, w, err)
	}
}
