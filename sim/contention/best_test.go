package contention

import (
	"math"
	"testing"
)

// divisions is the least time over every way to divide workers and parameter
// servers over servers, up to the order of servers: each holds at most what
// the one before it does.
func divisions(m *model, w *Workload, workers, ps int) float64 {
	least := math.Inf(1)
	var parts [][2]int
	var walk func(restWorkers, restPS int, most [2]int)
	walk = func(restWorkers, restPS int, most [2]int) {
		if restWorkers+restPS == 0 {
			least = min(least, m.divided(w, workers, ps, parts))
			return
		}
		for n := min(restWorkers, most[0]); n >= 0; n-- {
			for k := restPS; k >= 0; k-- {
				if n+k == 0 || n == most[0] && k > most[1] {
					continue
				}
				parts = append(parts, [2]int{n, k})
				walk(restWorkers-n, restPS-k, [2]int{n, k})
				parts = parts[:len(parts)-1]
			}
		}
	}
	walk(workers, ps, [2]int{workers, ps})
	return least
}

// The placement that progress is measured against is the best of all that
// there are, so that progress is at most 1: on servers that hold most jobs
// whole, and on small ones.
func TestBestIsBest(t *testing.T) {
	for _, cpus := range []float64{16, 8} {
		m, err := newModel(Config{})
		if err != nil {
			t.Fatal(err)
		}
		m.Server.CPUs = cpus
		most := 6
		if testing.Short() {
			most = 4
		}
		for i := range m.Workloads {
			w := &m.Workloads[i]
			for workers := 1; workers <= most; workers++ {
				for ps := 0; ps <= most; ps++ {
					if got, want := m.best(w, workers, ps), divisions(m, w, workers, ps); math.Abs(got/want-1) > 1e-9 {
						t.Errorf("%g CPUs, %s with %d workers and %d parameter servers: %g s, of all divisions %g s", cpus, w.Name, workers, ps, got, want)
					}
				}
			}
		}
	}
}
