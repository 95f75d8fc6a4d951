package balance

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
)

func training(t *testing.T, kind string, p Problem) Training {
	t.Helper()
	traces, err := DrawTraces(kind, 4, 300, 3)
	if err != nil {
		t.Fatal(err)
	}
	return Training{Problem: p, Traces: traces, Step: 1, GlobalBatch: 64, Rate: 0.5, Communicate: 0.02, Overhead: 0.01, Samples: 12_800, Seed: 3}
}

func TestBalancingReachesTheSameLossSooner(t *testing.T) {
	for _, p := range []Problem{NewLogistic(1000, 10, 3), NewPerceptron(1000, 8, 3)} {
		run := map[string]TrainResult{}
		for _, scheme := range Schemes() {
			c := training(t, Cotenants, p)
			c.Scheme = scheme
			r, err := Train(c)
			if err != nil {
				t.Fatal(err)
			}
			if first, last := r.Curve[0].Loss, r.Curve[len(r.Curve)-1].Loss; !(last < first) {
				t.Errorf("%s: loss went from %v to %v", scheme, first, last)
			}
			run[scheme] = r
		}
		bsp, lb := run[BSP], run[LBBSP]
		if lb.Seconds > 0.8*bsp.Seconds || lb.Idle >= bsp.Idle {
			t.Errorf("lb-bsp took %.1f s with %.2f idle, bsp %.1f s with %.2f", lb.Seconds, lb.Idle, bsp.Seconds, bsp.Idle)
		}
		// The same samples in the same global batches: the same weights but for the
		// order of sums.
		for i, point := range lb.Curve {
			if d := math.Abs(point.Loss - bsp.Curve[i].Loss); d > 1e-9 {
				t.Fatalf("after %d samples the losses differ by %v", point.Samples, d)
			}
		}
		if run[FlexRR].Seconds >= bsp.Seconds {
			t.Errorf("work stealing took %.1f s, without it %.1f s", run[FlexRR].Seconds, bsp.Seconds)
		}
		if run[ASP].Seconds > run[SSP].Seconds*1.001 {
			t.Errorf("without a barrier %.1f s, with slack %.1f s", run[ASP].Seconds, run[SSP].Seconds)
		}
	}
}

func TestTrainIsDeterministic(t *testing.T) {
	c := training(t, Shifting, NewLogistic(200, 4, 1))
	c.Samples, c.Scheme = 2000, LBBSP
	a, err := Train(c)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Train(c)
	if err != nil || a.Seconds != b.Seconds || !slices.Equal(a.Curve, b.Curve) {
		t.Errorf("two runs differ: %v", err)
	}
}

func TestFinishIntegratesTheSpeed(t *testing.T) {
	c := Training{Step: 1}
	tr := Trace{Speed: []float64{10, 20}}
	for _, x := range []struct{ from, size, want float64 }{{0, 5, 0.5}, {0, 10, 1}, {0, 20, 1.5}, {0.5, 15, 1.5}, {1, 25, 2.5}} {
		if got := c.finish(tr, x.from, x.size); math.Abs(got-x.want) > 1e-9 {
			t.Errorf("%v samples from %v on are done at %v, want %v", x.size, x.from, got, x.want)
		}
	}
}

func TestReadTraces(t *testing.T) {
	got, err := ReadTraces(strings.NewReader("worker,speed,cpu,memory\na,10,0.5,0\nb,3,0,0\na,11,0.6,0.1\n"), "x")
	if err != nil || len(got) != 2 || !slices.Equal(got[0].Speed, []float64{10, 11}) || got[0].Memory[1] != 0.1 {
		t.Errorf("read %+v, %v", got, err)
	}
	for _, text := range []string{"", "worker,speed\n", "worker,speed,cpu,memory\n", "worker,speed,cpu,memory\na,0,0,0\n", "worker,speed,cpu,memory\na,1,NaN,0\n"} {
		if _, err := ReadTraces(strings.NewReader(text), "x"); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func FuzzReadTraces(f *testing.F) {
	f.Add([]byte("worker,speed,cpu,memory\na,10,0.5,0\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		traces, err := ReadTraces(bytes.NewReader(text), "x")
		for _, tr := range traces {
			if err != nil || len(tr.Speed) == 0 || len(tr.CPU) != len(tr.Speed) {
				t.Errorf("read %+v, %v", tr, err)
			}
		}
	})
}
