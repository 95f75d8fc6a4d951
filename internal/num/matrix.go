package num

import (
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// Matrix is dense and row-major: element (i, j) is Data[i*Cols+j].
type Matrix struct {
	Rows, Cols int
	Data       []float32
}

// New returns a matrix of zeros.
func New(rows, cols int) Matrix { return Matrix{rows, cols, make([]float32, rows*cols)} }

// Row is row i, shared with the matrix.
func (m Matrix) Row(i int) []float32 { return m.Data[i*m.Cols : (i+1)*m.Cols] }

// Head is the first n rows, shared with the matrix.
func (m Matrix) Head(n int) Matrix { return Matrix{n, m.Cols, m.Data[:n*m.Cols]} }

// Zero sets every element to 0.
func (m Matrix) Zero() { clear(m.Data) }

func (m Matrix) general() blas32.General {
	return blas32.General{Rows: m.Rows, Cols: m.Cols, Stride: m.Cols, Data: m.Data}
}

// Mul computes dst = a b + beta dst; ta and tb transpose a and b first.
// It panics where the shapes do not fit. dst must not be a or b.
func Mul(dst, a, b Matrix, ta, tb bool, beta float32) {
	if a.Rows == 0 || a.Cols == 0 || b.Cols == 0 || b.Rows == 0 {
		if dst.Rows*dst.Cols != 0 && beta == 0 {
			dst.Zero()
		}
		return
	}
	if !tb && (beta == 0 || beta == 1) {
		rows, cols, steps := a.Rows, b.Cols, a.Cols
		if ta {
			rows, steps = a.Cols, a.Rows
		}
		mustMatch("rows of a product", dst.Rows, rows)
		mustMatch("columns of a product", dst.Cols, cols)
		mustMatch("rows of a product's right side", b.Rows, steps)
		if beta == 0 {
			dst.Zero()
		}
		if j := product(dst, a, b, ta); j < cols {
			blas32.Gemm(transpose(ta), blas.NoTrans, 1, a.general(), b.right(j), 1, dst.right(j))
		}
		return
	}
	blas32.Gemm(transpose(ta), transpose(tb), 1, a.general(), b.general(), beta, dst.general())
}

func transpose(t bool) blas.Transpose {
	if t {
		return blas.Trans
	}
	return blas.NoTrans
}

// Rand is a source seeded by a seed and the path of what it is for (member,
// fold, ...), so that parts that draw side by side never share a stream.
func Rand(seed uint64, path ...uint64) *rand.Rand {
	h := uint64(0x9e3779b97f4a7c15)
	for _, p := range path {
		h = (h ^ p) * 0xbf58476d1ce4e5b9
		h ^= h >> 29
	}
	return rand.New(rand.NewPCG(seed, h))
}

func mustMatch(what string, got, want int) {
	if got != want {
		panic(fmt.Sprintf("num: %s is %d, want %d", what, got, want))
	}
}
