package interference_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

const metisTable = "shared/data/metis/colocation-6435.csv"

// metisSamples reads the measured table of 6,435 co-locations of 7 services.
// The rate is given as a share of the rate alone; latencies in seconds, 0
// where they were not measured.
func metisSamples(tb testing.TB, metrics ...history.Metric) []history.Sample {
	tb.Helper()
	f, err := os.Open(filepath.Join("..", "..", metisTable))
	if os.IsNotExist(err) {
		tb.Skipf("../%s is absent: nothing to hold the model against", metisTable)
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		tb.Fatal(err)
	}
	const n = 7
	names := records[0][:n]
	offset := map[history.Metric]int{history.Rate: n, history.P50: 2 * n, history.P99: 3 * n}
	var samples []history.Sample
	for _, rec := range records[1:] {
		c := cluster.Colocation{}
		for w := range n {
			if k, _ := strconv.Atoi(rec[w]); k > 0 {
				c[names[w]] = k
			}
		}
		for _, m := range metrics {
			for w := range n {
				v, err := strconv.ParseFloat(rec[offset[m]+w], 64)
				if err != nil || m != history.Rate && v == 0 {
					continue
				}
				s := history.Sample{Source: "metis", Colocation: c, Workload: names[w], Metric: m, Value: v}
				if m == history.Rate {
					s.Alone = 1
				}
				samples = append(samples, s)
			}
		}
	}
	return samples
}
