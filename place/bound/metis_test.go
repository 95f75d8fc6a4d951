package bound_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

const metisDir = "../../../shared/data/metis/"

// metisTruth is the model of every measured co-location of 7 services.
func metisTruth(tb testing.TB) interference.Model {
	tb.Helper()
	f, err := os.Open(metisDir + "colocation-6435.csv")
	if err != nil {
		tb.Skip("../shared/data/metis is absent: nothing to plan on")
	}
	defer f.Close()
	samples, _, err := formats.ReadMetisCSV(f, formats.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	m, err := interference.Fit("table", samples, interference.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// metisBatch reads a row of a batch file; row -1 is the batch of 3,000.
func metisBatch(tb testing.TB, file string, row int) map[string]int {
	tb.Helper()
	names := []string{"redis", "mms", "checksum", "isr", "ycsb_a", "ycsb_b", "scenedetect"}
	counts := map[string]int{}
	if file == "" {
		for i, n := range []int{428, 429, 428, 429, 428, 429, 429} {
			counts[names[i]] = n
		}
		return counts
	}
	f, err := os.Open(metisDir + file)
	if err != nil {
		tb.Skip("../shared/data/metis is absent: nothing to plan")
	}
	defer f.Close()
	b, _, err := formats.ReadBatches(f, formats.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	for i, n := range b.Rows[row] {
		counts[b.Workloads[i]] = n
	}
	return counts
}

// tasksOf names a task for each count, in the order of the workloads' names.
func tasksOf(counts map[string]int) []cluster.Task {
	var tasks []cluster.Task
	for _, w := range cluster.Colocation(counts).Workloads() {
		for i := range counts[w] {
			tasks = append(tasks, cluster.Task{ID: cluster.TaskID(fmt.Sprintf("%s-%d", w, i)), Workload: w})
		}
	}
	return tasks
}

func request(tb testing.TB, spec cluster.Spec, counts map[string]int) place.Request {
	tb.Helper()
	s, err := cluster.NewSnapshot(spec)
	if err != nil {
		tb.Fatal(err)
	}
	tasks := tasksOf(counts)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	return place.Request{View: s, Pending: []cluster.Group{{Name: "batch", Tasks: tasks}}}
}

// TestLinearProgramOfMeasuredTable holds the linear program against the
// optimum that an independent solver (scipy HiGHS) found, to 4 digits, and
// the plan against the bound.
func TestLinearProgramOfMeasuredTable(t *testing.T) {
	m := metisTruth(t)
	for _, c := range []struct {
		file  string
		row   int
		nodes int
		bound float64
	}{
		{"batches-200.csv", 0, 81, 1.2445},
		{"batches-300.csv", 0, 81, 1.1668},
		{"batches-400.csv", 0, 81, 1.1368},
		{"batches-1000.csv", 0, 729, 1.2414},
		{"batches-2000.csv", 0, 729, 1.2104},
		{"", 0, 729, 1.1838},
	} {
		t.Run(fmt.Sprint(c.file, c.nodes), func(t *testing.T) {
			req := request(t, cluster.Spec{Nodes: cluster.Nodes("", c.nodes, 1, 8)}, metisBatch(t, c.file, c.row))
			b := hold(t, req, m, 0.999)
			if math.Abs(b.Bound-c.bound) > 6e-5 || !b.Proven {
				t.Errorf("bound %.5f proven %v; an independent solver found %.4f", b.Bound, b.Proven, c.bound)
			}
		})
	}
}
