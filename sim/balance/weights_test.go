package balance

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// mean is the gradient of the mean loss of some samples.
func mean(p Problem, w []float64, samples []int) []float64 {
	sum := make([]float64, len(w))
	p.Gradient(w, samples, sum)
	for i := range sum {
		sum[i] /= float64(len(samples))
	}
	return sum
}

func TestWeightedIsTheSingleProcess(t *testing.T) {
	problems := []Problem{NewLogistic(300, 5, 1), NewPerceptron(300, 6, 1)}
	rapid.Check(t, func(t *rapid.T) {
		p := problems[rapid.IntRange(0, 1).Draw(t, "problem")]
		w := p.Start(rapid.Uint64().Draw(t, "seed"))
		for i := range w {
			w[i] += 0.1 * float64(i%3)
		}
		var means [][]float64
		var all, sizes []int
		for range rapid.IntRange(1, 6).Draw(t, "workers") {
			n := rapid.IntRange(0, 20).Draw(t, "size")
			var own []int
			for range n {
				own = append(own, rapid.IntRange(0, p.Len()-1).Draw(t, "sample"))
			}
			sizes = append(sizes, n)
			if n == 0 {
				means = append(means, nil)
				continue
			}
			means = append(means, mean(p, w, own))
			all = append(all, own...)
		}
		if len(all) == 0 {
			return
		}
		if means[0] == nil {
			means[0] = make([]float64, len(w))
		}
		got, err := Weighted(means, sizes)
		if err != nil {
			t.Fatal(err)
		}
		want := mean(p, w, all)
		scale := 0.0
		for _, v := range want {
			scale = max(scale, math.Abs(v))
		}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-12*max(scale, 1) {
				t.Fatalf("element %d is %v, the single process has %v", i, got[i], want[i])
			}
		}
	})
}

// squares is least squares on small fractions of powers of two, for which
// every sum is exact.
type squares struct{ data }

func (p squares) Len() int               { return len(p.x) }
func (p squares) Start(uint64) []float64 { return []float64{0.5, -0.25} }
func (p squares) Loss([]float64) float64 { return 0 }
func (p squares) Gradient(w []float64, samples []int, sum []float64) {
	for _, s := range samples {
		d := dot(w, p.x[s]) - p.y[s]
		for i, x := range p.x[s] {
			sum[i] += d * x
		}
	}
}

func TestWeightedIsExactOnDyadicData(t *testing.T) {
	p := squares{}
	for i := range 64 {
		p.x = append(p.x, []float64{float64(i%16) / 8, float64(i%5) / 4})
		p.y = append(p.y, float64(i%7)/2)
	}
	w := p.Start(0)
	all := make([]int, 64)
	for i := range all {
		all[i] = i
	}
	var means [][]float64
	sizes := []int{32, 16, 8, 8}
	at := 0
	for _, n := range sizes {
		means = append(means, mean(p, w, all[at:at+n]))
		at += n
	}
	got, err := Weighted(means, sizes)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range mean(p, w, all) {
		if got[i] != want {
			t.Errorf("element %d is %v, the single process has %v", i, got[i], want)
		}
	}
}

func TestGradientsAreThoseOfTheLoss(t *testing.T) {
	for name, p := range map[string]Problem{"logistic": NewLogistic(40, 4, 2), "perceptron": NewPerceptron(40, 3, 2)} {
		w := p.Start(5)
		for i := range w {
			w[i] += 0.05 * float64(i)
		}
		all := make([]int, p.Len())
		for i := range all {
			all[i] = i
		}
		g := mean(p, w, all)
		for i := range w {
			const h = 1e-5
			at := w[i]
			w[i] = at + h
			up := p.Loss(w)
			w[i] = at - h
			down := p.Loss(w)
			w[i] = at
			if d := (up - down) / (2 * h); math.Abs(d-g[i]) > 1e-7 {
				t.Errorf("%s: gradient %d is %v, differences say %v", name, i, g[i], d)
			}
		}
	}
}
