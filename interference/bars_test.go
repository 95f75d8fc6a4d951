package interference_test

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
)

func parallel(n int, f func(int)) {
	var wg sync.WaitGroup
	sem := make(chan bool, 2)
	for i := range n {
		wg.Go(func() { sem <- true; f(i); <-sem })
	}
	wg.Wait()
}

func TestLab(t *testing.T) {
	lab := os.Getenv("LAB")
	if lab == "" {
		t.Skip()
	}
	f := strings.Fields(lab) // kinds sizes seeds [metrics]
	ms := []history.Metric{history.Rate}
	if len(f) > 3 {
		ms = nil
		for _, m := range strings.Split(f[3], ",") {
			ms = append(ms, history.Metric(m))
		}
	}
	samples := metisSamples(t, ms...)
	seeds, _ := strconv.Atoi(f[2])
	for _, kind := range strings.Split(f[0], ",") {
		for _, sz := range strings.Split(f[1], ",") {
			n, _ := strconv.Atoi(sz)
			for _, metric := range ms {
				_ = metric
			}
			sum := map[history.Metric]interference.Errors{}
			var secs float64
			for s := range seeds {
				fit, held, err := interference.Split(samples, n, uint64(s+1))
				if err != nil {
					t.Fatal(err)
				}
				t0 := time.Now()
				m, err := interference.Fit(kind, fit, interference.Options{Seed: uint64(s + 1), Parallel: parallel})
				if err != nil {
					t.Fatal(err)
				}
				secs += time.Since(t0).Seconds()
				for _, metric := range ms {
					e, err := interference.Evaluate(m, metric, held)
					if err != nil {
						t.Fatal(err)
					}
					q := sum[metric]
					q.Cells += e.Cells
					q.Mean += e.Mean
					q.Coverage += e.Coverage
					q.P95 += e.P95
					sum[metric] = q
				}
			}
			k := float64(seeds)
			for _, metric := range ms {
				q := sum[metric]
				t.Logf("%-7s %5d %s mean %.4f p95 %.3f coverage %.3f  %.1f s", kind, n, metric, q.Mean/k, q.P95/k, q.Coverage/k, secs/k)
			}
		}
	}
}
