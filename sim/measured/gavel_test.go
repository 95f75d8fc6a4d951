package measured_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/sim/measured"
)

// gavel reads Gavel's table without Recommendation, or skips.
func gavel(t testing.TB) []history.Sample {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "data", "gavel", "throughputs.json")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		t.Skip("../shared/data/gavel/throughputs.json is absent: nothing to measure by")
	}
	samples, _, err := formats.ReadFile(path, formats.Options{Exclude: []string{"recommendation"}}, formats.ReadGavel)
	if err != nil {
		t.Fatal(err)
	}
	return samples
}

// All pairs of the table that fit have a performance; the rest are misfits.
func TestGavelWorldIsWhole(t *testing.T) {
	samples := gavel(t)
	w, err := measured.New(samples)
	if err != nil {
		t.Fatal(err)
	}
	_, misfits := history.SplitMisfits(samples)
	rates := history.NewAloneRates(samples)
	for _, class := range rates.Classes() {
		nodes := cluster.Nodes(class, 1, 1, 0)
		known, missing := 0, 0
		var sum float64
		for _, a := range rates.Workloads() {
			for _, b := range rates.Workloads() {
				s, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes, Running: []cluster.Running{
					runs("j1", "a", a, class+"-0", 0), runs("j2", "b", b, class+"-0", 0),
				}})
				if err != nil {
					t.Fatal(err)
				}
				c := cluster.Colocation{a: 1}
				c[b]++
				p := w.Rates(s, []cluster.TaskID{"a"})["a"]
				if math.IsNaN(p) != misfits.Has(class, c.Key()) {
					t.Errorf("%s beside %s on %s: %g, misfit %v", a, b, class, p, misfits.Has(class, c.Key()))
				}
				if math.IsNaN(p) {
					missing++
				} else {
					one, _ := rates.Progress(class, a, 1, "", rates.Classes())
					known++
					sum += p / one
				}
			}
		}
		t.Logf("%s: %d ordered pairs, %d that do not fit, mean performance %.3f", class, known, missing, sum/float64(known))
	}
}

// An event on a full cluster of 16 devices is to cost about a microsecond.
func BenchmarkRates(b *testing.B) {
	for _, devices := range []int{16, 100} {
		b.Run(fmt.Sprint(devices, " devices"), func(b *testing.B) {
			w, err := measured.New(table())
			if err != nil {
				b.Fatal(err)
			}
			spec := cluster.Spec{Nodes: cluster.Nodes("fast", devices, 1, 0)}
			for i := range 2 * devices {
				spec.Running = append(spec.Running, runs(fmt.Sprint("job", i), fmt.Sprint("task", i), "lm", fmt.Sprint("fast-", i/2), 0))
			}
			s, err := cluster.NewSnapshot(spec)
			if err != nil {
				b.Fatal(err)
			}
			// The first leaves and comes back at the end of the list, event by event.
			// After as many as there are tasks the order is that of the beginning, and
			// so a cycle of snapshots keeps Next out of what is measured.
			snapshots := []*cluster.Snapshot{s}
			var touched [][]cluster.TaskID
			for range 2 * devices {
				r := s.Running()[0]
				touched = append(touched, []cluster.TaskID{r.ID, s.Running()[1].ID})
				if s, err = s.Next([]int{0}, []cluster.Running{r}); err != nil {
					b.Fatal(err)
				}
				snapshots = append(snapshots, s)
			}
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				w.Rates(snapshots[i%len(touched)], touched[i%len(touched)])
			}
		})
	}
}
