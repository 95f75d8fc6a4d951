package num_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/cotenant/cotenant/internal/num"
	"pgregory.net/rapid"
)

func random(rows, cols int, seed uint64) num.Matrix {
	m := num.New(rows, cols)
	rng := num.Rand(seed, 7)
	for i := range m.Data {
		m.Data[i] = float32(rng.NormFloat64())
	}
	return m
}

// net is the shape that the models use: linear, SiLU, linear, and a linear
// skip, with the loss sum(y * c).
type net struct{ a, b, skip *num.Linear }

func (n net) loss(x, c num.Matrix) (loss float64, d, s, y num.Matrix) {
	h := num.New(x.Rows, n.a.W.Value.Cols)
	d, s, y = num.New(x.Rows, n.a.W.Value.Cols), num.New(x.Rows, n.a.W.Value.Cols), num.New(x.Rows, c.Cols)
	n.a.Forward(h, x)
	num.SiLU(s, d, h)
	n.b.Forward(y, s)
	n.skip.Add(y, x)
	for i, v := range y.Data {
		loss += float64(v) * float64(c.Data[i])
	}
	return loss, d, s, y
}

func (n net) params() []*num.Param {
	return append(append(n.a.Params(), n.b.Params()...), &n.skip.W)
}

func TestGradientsAgreeWithFiniteDifferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batch, in, hidden, out := rapid.IntRange(1, 5).Draw(t, "batch"), rapid.IntRange(1, 6).Draw(t, "in"), rapid.IntRange(1, 8).Draw(t, "hidden"), rapid.IntRange(1, 4).Draw(t, "out")
		rng := num.Rand(rapid.Uint64().Draw(t, "seed"))
		n := net{num.NewLinear(in, hidden, rng), num.NewLinear(hidden, out, rng), num.NewLinear(in, out, rng)}
		x, c := random(batch, in, rng.Uint64()), random(batch, out, rng.Uint64())

		_, d, s, _ := n.loss(x, c)
		ds, dx, dskip := num.New(batch, hidden), num.New(batch, in), num.New(batch, in)
		n.b.Backward(ds, c, s)
		num.Scale(ds, d)
		n.a.Backward(dx, ds, x)
		n.skip.Backward(dskip, c, x)
		for i := range dx.Data {
			dx.Data[i] += dskip.Data[i]
		}
		// Sums in float64 of values rounded to float32: an error near 1e-6 in the
		// loss, so 1e-4 in a slope over 2 x 0.01.
		check := func(name string, at *float32, got float32) {
			const eps = 1e-2
			old := *at
			*at = old + eps
			up, _, _, _ := n.loss(x, c)
			*at = old - eps
			down, _, _, _ := n.loss(x, c)
			*at = old
			want := (up - down) / (2 * eps)
			if math.Abs(float64(got)-want) > 2e-3*(1+math.Abs(want)) {
				t.Fatalf("%s: gradient %g, finite difference %g", name, got, want)
			}
		}
		for k, p := range n.params() {
			for i := range p.Value.Data {
				check(fmt.Sprintf("param %d[%d]", k, i), &p.Value.Data[i], p.Grad.Data[i])
			}
		}
		for i := range x.Data {
			check(fmt.Sprintf("x[%d]", i), &x.Data[i], dx.Data[i])
		}
	})
}

func TestExpIsCloseToMathExp(t *testing.T) {
	for x := float32(-86.9); x < 86.9; x += 0.01 {
		want := math.Exp(float64(x))
		if rel := math.Abs(float64(num.Exp(x))-want) / want; rel > 3e-7 {
			t.Fatalf("exp(%g) = %g, want %g: off by %.2g", x, num.Exp(x), want, rel)
		}
	}
	for _, x := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), 1e30, -1e30} {
		if y := num.Exp(float32(x)); math.IsNaN(float64(y)) || math.IsInf(float64(y), 0) || y < 0 {
			t.Errorf("exp(%g) = %g", x, y)
		}
	}
}

// The models promise the same bytes whatever the machine is doing; gonum's
// gemm splits large products over goroutines.
func TestProductsDoNotDependOnGOMAXPROCS(t *testing.T) {
	a, b := random(300, 200, 1), random(200, 260, 2)
	run := func(procs int) num.Matrix {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		y := num.New(300, 260)
		num.Mul(y, a, b, false, false, 0)
		return y
	}
	one, four := run(1), run(4)
	for i := range one.Data {
		if one.Data[i] != four.Data[i] {
			t.Fatalf("element %d is %g with one processor, %g with four", i, one.Data[i], four.Data[i])
		}
	}
}

func TestMulAgreesWithTheDefinition(t *testing.T) {
	a, b := random(4, 3, 1), random(3, 5, 2)
	y := random(4, 5, 3)
	want := num.New(4, 5)
	for i := range 4 {
		for j := range 5 {
			sum := y.Row(i)[j]
			for k := range 3 {
				sum += a.Row(i)[k] * b.Row(k)[j]
			}
			want.Row(i)[j] = sum
		}
	}
	num.Mul(y, a, b, false, false, 1)
	for i := range y.Data {
		if d := y.Data[i] - want.Data[i]; d > 1e-5 || d < -1e-5 {
			t.Errorf("element %d: %g, want %g", i, y.Data[i], want.Data[i])
		}
	}
	// An empty sum is 0, not what was there.
	num.Mul(y, num.New(4, 0), num.New(0, 5), false, false, 0)
	for _, v := range y.Data {
		if v != 0 {
			t.Fatalf("empty product left %g", v)
		}
	}
}

func TestAdamFindsTheLeastSquares(t *testing.T) {
	rng := num.Rand(3)
	x, truth := random(64, 4, 5), num.NewLinear(4, 2, rng)
	y := num.New(64, 2)
	truth.Forward(y, x)
	l := num.ZeroLinear(4, 2)
	adam := num.NewAdam(l.Params(), 0)
	p := num.New(64, 2)
	for step := range 800 {
		l.Forward(p, x)
		for i := range p.Data {
			p.Data[i] = (p.Data[i] - y.Data[i]) / 64
		}
		l.Backward(num.Matrix{}, p, x)
		adam.Step(num.Cosine(0.05, step, 800, 10))
	}
	for i, v := range l.W.Value.Data {
		if d := v - truth.W.Value.Data[i]; d > 1e-3 || d < -1e-3 {
			t.Errorf("weight %d: %g, want %g", i, v, truth.W.Value.Data[i])
		}
	}
}

func TestRandPathsAreIndependent(t *testing.T) {
	if num.Rand(1, 2).Uint64() != num.Rand(1, 2).Uint64() {
		t.Error("the same path differs")
	}
	seen := map[uint64]bool{}
	for _, v := range []uint64{num.Rand(1).Uint64(), num.Rand(1, 0).Uint64(), num.Rand(1, 1).Uint64(), num.Rand(1, 0, 1).Uint64(), num.Rand(1, 1, 0).Uint64(), num.Rand(2).Uint64()} {
		if seen[v] {
			t.Errorf("two paths share a stream")
		}
		seen[v] = true
	}
}

func ExampleLinear() {
	l := num.ZeroLinear(2, 1)
	copy(l.W.Value.Data, []float32{2, 3})
	l.B.Value.Data[0] = 1
	y := num.New(1, 1)
	l.Forward(y, num.Matrix{Rows: 1, Cols: 2, Data: []float32{10, 100}})
	fmt.Println(y.Data)
	// Output: [321]
}

func BenchmarkStep(b *testing.B) {
	rng := num.Rand(1)
	n := net{num.NewLinear(8, 64, rng), num.NewLinear(64, 64, rng), num.NewLinear(8, 64, rng)}
	x, c := random(64, 8, 1), random(64, 64, 2)
	h, d, s, y, ds := num.New(64, 64), num.New(64, 64), num.New(64, 64), num.New(64, 64), num.New(64, 64)
	adam := num.NewAdam(n.params(), .1)
	for b.Loop() {
		n.a.Forward(h, x)
		num.SiLU(s, d, h)
		n.b.Forward(y, s)
		n.b.Backward(ds, c, s)
		num.Scale(ds, d)
		n.a.Backward(num.Matrix{}, ds, x)
		adam.Step(1e-3)
	}
}
