package num

import "gonum.org/v1/gonum/blas/blas32"

// stretch is how many steps of a product are summed at a time: the parts of
// both factors that they touch stay in the processor's first cache.
const stretch = 64

// product computes dst += a b, or a^T b, where wide registers fit: it handles
// the columns up to a multiple of 16 and returns how many that is. Each
// element's sum runs in the order of the definition, as gonum's does: the bytes
// are the same with either.
func product(dst, a, b Matrix, ta bool) (columns int) {
	columns = dst.Cols &^ 15
	if !wide || columns == 0 {
		return 0
	}
	aRow, aStep, steps := a.Cols, 1, a.Cols
	if ta {
		aRow, aStep, steps = 1, a.Cols, a.Rows
	}
	for from := 0; from < steps; from += stretch {
		k := min(stretch, steps-from)
		i := 0
		for ; i+4 <= dst.Rows; i += 4 {
			for j := 0; j < columns; j += 16 {
				multiply4x16(&dst.Data[i*dst.Cols+j], &a.Data[i*aRow+from*aStep], &b.Data[from*b.Cols+j], k, dst.Cols, aRow, aStep, b.Cols)
			}
		}
		for ; i < dst.Rows; i++ {
			for j := 0; j < columns; j += 16 {
				multiply1x16(&dst.Data[i*dst.Cols+j], &a.Data[i*aRow+from*aStep], &b.Data[from*b.Cols+j], k, aStep, b.Cols)
			}
		}
	}
	return columns
}

// addRows adds the rows from, ..., to-1 of m to sum, one after another.
func addRows(sum []float32, m Matrix, from, to int) {
	j := 0
	if wide && to > from {
		one := float32(1)
		for ; j+16 <= m.Cols; j += 16 {
			multiply1x16(&sum[j], &one, &m.Data[from*m.Cols+j], to-from, 0, m.Cols)
		}
	}
	if j == m.Cols {
		return
	}
	rest := sum[j:]
	for i := from; i < to; i++ {
		for k, v := range m.Row(i)[j:] {
			rest[k] += v
		}
	}
}

// right is the columns of m from j on, for gonum.
func (m Matrix) right(j int) blas32.General {
	return blas32.General{Rows: m.Rows, Cols: m.Cols - j, Stride: m.Cols, Data: m.Data[j:]}
}
