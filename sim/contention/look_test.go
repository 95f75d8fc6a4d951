package contention

import ("testing";"math/rand/v2";"fmt";"slices")

func TestLook(t *testing.T) {
	for _, s := range []float64{.7, 1, 1.3} {
		tr, _ := New(Config{Strength: s})
		r := rand.New(rand.NewPCG(1, 2))
		by := map[string][]float64{}
		var all []float64
		for range 4000 {
			node := tr.crowd(r, 4, 4)
			for _, x := range tr.measure(node, r, 0) {
				if x.Colocation.Tasks() < 5 { continue }
				by[x.Workload] = append(by[x.Workload], x.Value/x.Alone)
				all = append(all, x.Value/x.Alone)
			}
		}
		slices.Sort(all)
		t.Logf("strength %g: %d mean %.3f p5 %.3f p25 %.3f p50 %.3f min %.3f", s, len(all), sum(all)/float64(len(all)), all[len(all)/20], all[len(all)/4], all[len(all)/2], all[0])
		for _, w := range tr.Requests() {
			x := by[w.Name]; slices.Sort(x)
			t.Logf("   %-30s %.3f p5 %.3f min %.3f", w.Name, sum(x)/float64(len(x)), x[len(x)/20], x[0])
		}
	}
	tr, _ := New(Config{})
	for i := range tr.Workloads {
		w := &tr.Workloads[i]
		out := w.Name
		for _, k := range [][2]int{{1, 1}, {2, 2}, {4, 4}, {4, 1}, {1, 4}} {
			out += fmt.Sprintf(" %v: %.3f/%.3f", k, tr.best(w, k[0], k[1]), tr.dealt(w, k[0], k[1]))
		}
		j := tr.even(w, 2, 2, 1, 1, 0); tr.place(j)
		p := j.parts[0]
		t.Log(out, fmt.Sprintf("stages %.3f demand %.2f", p.stages, p.demand))
	}
}
