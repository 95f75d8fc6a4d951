package num

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"pgregory.net/rapid"
)

func drawn(rows, cols int, seed uint64) Matrix {
	m, rng := New(rows, cols), Rand(seed)
	for i := range m.Data {
		m.Data[i] = float32(rng.NormFloat64())
	}
	return m
}

// A processor with wide registers and one without reach the same network.
func TestProductsHaveTheBytesOfGonum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 40)
		m, n, k := size.Draw(t, "rows"), size.Draw(t, "columns"), rapid.IntRange(1, 200).Draw(t, "steps")
		seed := rapid.Uint64Range(0, 1<<40).Draw(t, "seed")
		ta, beta := rapid.Bool().Draw(t, "transposed"), float32(rapid.IntRange(0, 1).Draw(t, "beta"))
		a, b, got := drawn(m, k, seed), drawn(k, n, seed+1), drawn(m, n, seed+2)
		how := blas.NoTrans
		if ta {
			a, how = drawn(k, m, seed), blas.Trans
		}
		want := Matrix{m, n, append([]float32(nil), got.Data...)}
		blas32.Gemm(how, blas.NoTrans, 1, a.general(), b.general(), beta, want.general())
		Mul(got, a, b, ta, false, beta)
		for i := range want.Data {
			if got.Data[i] != want.Data[i] {
				t.Fatalf("element %d is %g, gonum's is %g", i, got.Data[i], want.Data[i])
			}
		}
	})
}

func TestSiLUHasTheBytesOfItsDefinition(t *testing.T) {
	if !wide {
		t.Skip("no wide registers here: SiLU is its definition")
	}
	x := New(1, 1<<16+3)
	rng := Rand(1)
	for i := range x.Data {
		x.Data[i] = float32(rng.NormFloat64()) * 20
	}
	for i, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1e30, -1e30, 87, -87, 1e-40} {
		x.Data[i] = float32(v)
	}
	y, z, d := New(1, len(x.Data)), New(1, len(x.Data)), New(1, len(x.Data))
	SiLU(y, Matrix{}, x)
	SiLU(z, d, x)
	for i, v := range x.Data {
		s := 1 / (1 + Exp(-v))
		for what, pair := range map[string][2]float32{"value": {y.Data[i], v / (1 + Exp(-v))}, "value with slope": {z.Data[i], v * s}, "slope": {d.Data[i], s * (1 + v*(1-s))}} {
			if pair[0] != pair[1] && !(pair[0] != pair[0] && pair[1] != pair[1]) {
				t.Fatalf("%s at %g is %g, want %g", what, v, pair[0], pair[1])
			}
		}
	}
}
