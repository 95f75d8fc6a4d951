package interference

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"pgregory.net/rapid"
)

func inParallel(n int, f func(int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// The same seed and samples give the same bytes: whatever GOMAXPROCS is and
// whether members are trained side by side or not.
func TestFitIsDeterministic(t *testing.T) {
	for _, kind := range Kinds() {
		var first []byte
		for run, procs := range []int{1, 2, 2} {
			o := Options{Seed: 5, Steps: 60}
			if run == 1 {
				o.Parallel = inParallel
			}
			old := runtime.GOMAXPROCS(procs)
			m, err := Fit(kind, someSamples("a", "b"), o)
			runtime.GOMAXPROCS(old)
			if err != nil {
				t.Fatal(err)
			}
			file := saved(t, m)
			if run == 0 {
				first = file
			} else if !bytes.Equal(file, first) {
				t.Errorf("%s: run %d differs from the first", kind, run)
			}
		}
	}
	a, err := Fit(KindNeural, someSamples(), Options{Seed: 1, Steps: 60})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Fit(KindNeural, someSamples(), Options{Seed: 2, Steps: 60})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(saved(t, a), saved(t, b)) {
		t.Error("another seed gives the same networks")
	}
}

// The order in which workloads are named must not matter, nor how many
// co-locations are asked about at once.
func TestPredictIsInvariant(t *testing.T) {
	models := map[string]Model{}
	for _, kind := range Kinds() {
		m, err := Fit(kind, someSamples(), Options{Steps: 60})
		if err != nil {
			t.Fatal(err)
		}
		models[kind] = m
	}
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(Kinds()).Draw(t, "kind")
		m := models[kind]
		cs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) cluster.Colocation {
			names := rapid.Permutation([]string{"db", "web", "zip"}).Draw(t, "order")
			c := cluster.Colocation{}
			for _, w := range names {
				if n := rapid.IntRange(0, 6).Draw(t, w); n > 0 {
					c[w] = n
				}
			}
			return c
		}), 1, 300).Draw(t, "colocations")
		all := m.Predict("", history.Rate, cs)
		for i, c := range cs {
			again := cluster.Colocation{}
			for _, w := range []string{"zip", "web", "db"} {
				if c[w] > 0 {
					again[w] = c[w]
				}
			}
			one := m.Predict("", history.Rate, []cluster.Colocation{again})[0]
			if len(one) != len(all[i]) {
				t.Fatalf("%s: %d estimates, then %d", c.Key(), len(all[i]), len(one))
			}
			for j := range one {
				// Products of another height may be summed in another order.
				if abs(one[j].Value-all[i][j].Value) > 1e-5 || one[j].Known != all[i][j].Known {
					t.Fatalf("%s %s: %+v in a batch, %+v alone", kind, c.Key(), all[i][j], one[j])
				}
			}
		}
	})
}

func TestMeasuredOverridesPredicted(t *testing.T) {
	samples := someSamples()
	odd := cluster.Colocation{"db": 3, "web": 3}
	for i := range samples {
		if samples[i].Colocation.Key() == odd.Key() && samples[i].Workload == "db" {
			samples[i].Value *= 3 // nothing that a smooth model believes
		}
	}
	for _, kind := range []string{KindLinear, KindForest, KindNeural} {
		m, err := Fit(kind, samples, Options{Steps: 60})
		if err != nil {
			t.Fatal(err)
		}
		bare, err := Fit(kind, samples, Options{Steps: 60, PredictedOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		truth, err := Fit(KindTable, samples, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ask := []cluster.Colocation{odd, {"db": 9}}
		got, plain, want := m.Predict("", history.Rate, ask), bare.Predict("", history.Rate, ask), truth.Predict("", history.Rate, ask)
		if got[0][0] != want[0][0] || !got[0][0].Measured {
			t.Errorf("%s: %+v, measured %+v", kind, got[0][0], want[0][0])
		}
		if plain[0][0].Measured || plain[0][0].Std == 0 {
			t.Errorf("%s without the measured values: %+v", kind, plain[0][0])
		}
		if got[1][0] != plain[1][0] || got[1][0].Measured || !got[1][0].Known {
			t.Errorf("%s, unmeasured: %+v, then %+v", kind, got[1][0], plain[1][0])
		}
		over, err := Override(bare, samples)
		if err != nil {
			t.Fatal(err)
		}
		if e := over.Predict("", history.Rate, ask)[0][0]; e != want[0][0] {
			t.Errorf("%s: Override answers %+v", kind, e)
		}
	}
}

// A class of its own hardware is an input: the same co-location may differ.
func TestClassesAreToldApart(t *testing.T) {
	m, err := Fit(KindNeural, someSamples("a", "b"), Options{Steps: 400, PredictedOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	truth, err := Fit(KindTable, someSamples("a", "b"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := []cluster.Colocation{{"db": 3, "web": 3, "zip": 2}}
	for _, class := range m.Classes() {
		got, want := m.Predict(class, history.Rate, c)[0], truth.Predict(class, history.Rate, c)[0]
		for j := range got {
			if abs(got[j].Value-want[j].Value) > 0.12*want[j].Value {
				t.Errorf("class %s, workload %d: %.3f, measured %.3f", class, j, got[j].Value, want[j].Value)
			}
		}
	}
}

func TestUnknownNamesAreSilent(t *testing.T) {
	for _, kind := range Kinds() {
		m, err := Fit(kind, someSamples(), Options{Steps: 20})
		if err != nil {
			t.Fatal(err)
		}
		for name, out := range map[string][][]Estimate{
			"class":    m.Predict("k80", history.Rate, []cluster.Colocation{{"db": 1}}),
			"metric":   m.Predict("", "p42", []cluster.Colocation{{"db": 1}}),
			"no p99":   m.Predict("", history.P99, []cluster.Colocation{{"db": 1}}),
			"workload": m.Predict("", history.Rate, []cluster.Colocation{{"mail": 1}}),
			"too many": m.Predict("", history.Rate, []cluster.Colocation{{"db": 1 << 40}}),
		} {
			if len(out) != 1 || len(out[0]) != 1 || out[0][0] != (Estimate{}) {
				t.Errorf("%s, unknown %s: %+v", kind, name, out)
			}
		}
	}
}

// A single cell is enough to fit on, however little it says.
func TestFitOnAlmostNothing(t *testing.T) {
	for _, kind := range Kinds() {
		m, err := Fit(kind, someSamples()[:1], Options{Steps: 20})
		if err != nil {
			t.Fatal(err)
		}
		w := m.Workloads("")[0]
		for _, e := range m.Predict("", history.Rate, []cluster.Colocation{{w: 1}, {w: 2}}) {
			if kind != KindTable && !(e[0].Known && e[0].Value > 0 && e[0].Value < 10) {
				t.Errorf("%s: %+v", kind, e)
			}
		}
	}
}

func TestNoiseHoldsNinetyPercentOfHeavyTails(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	draw := func(n int) []residual {
		rs := make([]residual, n)
		for i := range rs {
			g := i % 2
			// Student-t of 3 degrees of freedom, wider where p is low.
			p := -rng.Float64()
			z := rng.NormFloat64() / max(0.05, abs(rng.NormFloat64()+rng.NormFloat64()+rng.NormFloat64())/1.7)
			rs[i] = residual{group: g, p: p, err: 0.03 * float64(g+1) * (1 - p) * z}
		}
		return rs
	}
	n := fitNoise(draw(4000), 2, 2000)
	if n.slope >= 0 {
		t.Errorf("slope is %g, want it negative: low values are noisier", n.slope)
	}
	inside := [2]int{}
	for _, r := range draw(4000) {
		e := n.estimate(r.group, r.p, r.spread)
		if abs(r.err) <= z90*e.Std/e.Value {
			inside[r.group]++
		}
	}
	for g, k := range inside {
		if share := float64(k) / 2000; share < 0.87 || share > 0.93 {
			t.Errorf("group %d: 90 %% intervals hold %.3f", g, share)
		}
	}
}

// Residuals of few co-locations are too small, as those are unlike what is asked:
// alpha has a floor until there are enough, and not a bit of one from there on.
func TestNoiseOfLittleIsWide(t *testing.T) {
	same := []residual{{err: .01}, {err: -.02}, {err: .01, group: 1}}
	alpha := func(shared int) float32 { return fitNoise(same, 2, shared).alpha[0] }
	if got := alpha(0); got != thinAlpha {
		t.Errorf("alpha of nothing %g, want %g", got, thinAlpha)
	}
	for shared := range 2 * enoughShared {
		if alpha(shared) < alpha(shared+1) {
			t.Errorf("%d shared co-locations: alpha rises from %g to %g", shared, alpha(shared), alpha(shared+1))
		}
	}
	learned := (2*fitNoise(same, 2, 1000).alphaOf(same[:2]) + groupCells*(3*fitNoise(same, 2, 1000).alphaOf(same)+priorCells*priorAlpha)/(3+priorCells)) / (2 + groupCells)
	if got := alpha(enoughShared); got != float32(learned) || alpha(1000) != got {
		t.Errorf("alpha of %d shared co-locations %g, want what the residuals say, %g", enoughShared, got, learned)
	}
}

func ExampleFit() {
	alone := cluster.Colocation{"redis": 1}
	pair := cluster.Colocation{"redis": 1, "stream": 1}
	m, err := Fit(KindTable, []history.Sample{
		{Colocation: alone, Workload: "redis", Metric: history.Rate, Value: 80e3},
		{Colocation: pair, Workload: "redis", Metric: history.Rate, Value: 60e3},
	}, Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	e := m.Predict("", history.Rate, []cluster.Colocation{pair})[0]
	fmt.Println(e[0].Value, e[0].Measured, e[1].Known)
	// Output: 0.75 true false
}

// Planning asks about every co-location of 8 slots at once.
func BenchmarkPredict(b *testing.B) {
	m, err := Fit(KindNeural, someSamples(), Options{Steps: 1})
	if err != nil {
		b.Fatal(err)
	}
	var cs []cluster.Colocation
	for i := range 6435 {
		cs = append(cs, cluster.Colocation{"db": 1 + i%7, "web": 1 + i%5, "zip": 1 + i%3})
	}
	for b.Loop() {
		m.Predict("", history.Rate, cs)
	}
}
