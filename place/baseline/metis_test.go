package baseline_test

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
)

const metisDir = "shared/data/metis"

func readMetis(tb testing.TB, name string) [][]string {
	tb.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", metisDir, name))
	if os.IsNotExist(err) {
		tb.Skipf("../%s/%s is absent: nothing to hold the policies against", metisDir, name)
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		tb.Fatal(err)
	}
	return records
}

// metisModel is the table of all 6,435 co-locations of 7 services, up to 8
// tasks: the truth.
func metisModel(tb testing.TB) interference.Model {
	tb.Helper()
	records := readMetis(tb, "colocation-6435.csv")
	const n = 7
	m := rates{}
	for _, rec := range records[1:] {
		c, rate := cluster.Colocation{}, map[string]float64{}
		for w := range n {
			if k, _ := strconv.Atoi(rec[w]); k > 0 {
				c[records[0][w]] = k
			}
			if v, err := strconv.ParseFloat(rec[n+w], 64); err == nil {
				rate[records[0][w]] = v
			}
		}
		m[c.Key()] = rate
	}
	return m
}

// metisRow is a row of DESIGN.md's table: a batch, a cluster of nodes with 8
// slots, and the value of the best fractional placement.
type metisRow struct {
	name  string
	nodes int
	bound float64
}

var metisRows = []metisRow{
	{"200", 81, 1.2445},
	{"300", 81, 1.1668},
	{"400", 81, 1.1368},
	{"1000", 729, 1.2414},
	{"2000", 729, 1.2104},
	{"3000", 729, 1.1838},
}

// tasks lists the tasks of the row in workload order.
func (r metisRow) tasks(tb testing.TB) []cluster.Task {
	tb.Helper()
	names := readMetis(tb, "batches-200.csv")[0]
	counts := []string{"428", "429", "428", "429", "428", "429", "429"}
	if r.name != "3000" {
		counts = readMetis(tb, "batches-"+r.name+".csv")[1]
	}
	var tasks []cluster.Task
	for w, text := range counts {
		n, err := strconv.Atoi(text)
		if err != nil {
			tb.Fatal(err)
		}
		for range n {
			tasks = append(tasks, cluster.Task{ID: cluster.TaskID(fmt.Sprintf("%s/%d", names[w], len(tasks))), Workload: names[w]})
		}
	}
	return tasks
}

func (r metisRow) request(tb testing.TB, seed uint64) place.Request {
	tb.Helper()
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: cluster.Nodes("", r.nodes, 1, 8)})
	if err != nil {
		tb.Fatal(err)
	}
	tasks := r.tasks(tb)
	random := rand.New(rand.NewPCG(seed, 1))
	random.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	return place.Request{View: view, Pending: []cluster.Group{{Name: "batch", Tasks: tasks}}, Rand: random}
}

// measure places the row in many random orders and returns the shares of the
// bound and the mean time of a placement.
func (r metisRow) measure(tb testing.TB, p place.Policy, m interference.Model, orders int) (shares []float64, each time.Duration) {
	tb.Helper()
	for seed := range orders {
		req := r.request(tb, uint64(seed))
		start := time.Now()
		d, err := p.Place(req)
		each += time.Since(start)
		if err != nil {
			tb.Fatal(err)
		}
		e, err := place.Evaluate(req, d, m)
		if err != nil {
			tb.Fatal(err)
		}
		shares = append(shares, e.Value/r.bound)
	}
	return shares, each / time.Duration(orders)
}

func meanAndSd(x []float64) (mean, sd float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		sd += (v - mean) * (v - mean) / float64(max(1, len(x)-1))
	}
	return mean, math.Sqrt(sd)
}

// TestMeasure prints what DESIGN.md's table holds, for whoever wants to see
// it: COTENANT_MEASURE=20 go test -run TestMeasure -v ./place/baseline
func TestMeasure(t *testing.T) {
	orders, err := strconv.Atoi(os.Getenv("COTENANT_MEASURE"))
	if err != nil {
		t.Skip("COTENANT_MEASURE=N prints shares and times over N random orders")
	}
	m := metisModel(t)
	names := baseline.Names()
	if only := os.Getenv("COTENANT_POLICY"); only != "" {
		names = []string{only}
	}
	for _, name := range names {
		p, err := baseline.New(name, baseline.Options{Model: m})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range metisRows {
			shares, each := row.measure(t, p, m, orders)
			mean, sd := meanAndSd(shares)
			t.Logf("%-13s %4s/%d: share %.4f +- %.4f, %v", name, row.name, row.nodes, mean, sd, each.Round(time.Microsecond))
		}
	}
}

// TestShares holds the policies to what DESIGN.md measured with independent
// programs, on the true table. Its rows hold means over 20 orders; two orders
// are within four of its standard deviations.
func TestShares(t *testing.T) {
	m := metisModel(t)
	for _, c := range []struct {
		policy      string
		row         metisRow
		least, most float64
	}{
		{"greedy", metisRows[0], 0.94, 1},
		{"greedy", metisRows[1], 0.945, 0.99},
		{"greedy", metisRows[2], 0.94, 0.965},
		{"greedy", metisRows[3], 0.99, 1},
		{"greedy", metisRows[4], 0.98, 0.992},
		{"greedy", metisRows[5], 0.954, 0.97},
		// greedy-search is held to what it promises. No placement beats the bound,
		// which is given to four digits.
		{"greedy-search", metisRows[0], 0.995, 1.0001},
		{"greedy-search", metisRows[1], 0.995, 1.0001},
		{"greedy-search", metisRows[2], 0.993, 1.0001},
		{"greedy-search", metisRows[3], 0.995, 1.0001},
		{"greedy-search", metisRows[4], 0.995, 1.0001},
		{"greedy-search", metisRows[5], 0.995, 1.0001},
		{"spread", metisRows[0], 0.75, 0.84},
		{"spread", metisRows[1], 0.77, 0.85},
		{"spread", metisRows[2], 0.76, 0.84},
	} {
		p, err := baseline.New(c.policy, baseline.Options{Model: m})
		if err != nil {
			t.Fatal(err)
		}
		shares, _ := c.row.measure(t, p, m, 2)
		for _, share := range shares {
			if share < c.least || share > c.most {
				t.Errorf("%s on %s: share %.4f, want %.3f to %.4f", c.policy, c.row.name, share, c.least, c.most)
			}
		}
	}
}
