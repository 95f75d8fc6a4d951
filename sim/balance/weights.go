package balance

import "fmt"

// Weighted is the gradient of the mean loss over a global batch, from each
// worker's gradient of the mean loss over its own: sum of x_i / X times it
// (LB-BSP, section 3.3). A worker of size 0 counts for nothing, whatever its
// gradient says. It is an error if the lengths differ or nobody has a sample.
func Weighted(means [][]float64, sizes []int) ([]float64, error) {
	total := 0
	for _, s := range sizes {
		if s < 0 {
			return nil, fmt.Errorf("batch size %d is negative", s)
		}
		total += s
	}
	if len(means) != len(sizes) || total == 0 {
		return nil, fmt.Errorf("%d gradients of %d workers with %d samples: one of each worker, and a sample", len(means), len(sizes), total)
	}
	out := make([]float64, len(means[0]))
	for i, g := range means {
		if sizes[i] == 0 {
			continue
		}
		if len(g) != len(out) {
			return nil, fmt.Errorf("gradient %d has length %d, gradient 0 has %d", i, len(g), len(out))
		}
		// One division at the end: x_i g_i is exact wherever the worker's own sum
		// was, so that dyadic data give the single process's bits.
		for k, v := range g {
			out[k] += float64(sizes[i]) * v
		}
	}
	for k := range out {
		out[k] /= float64(total)
	}
	return out, nil
}
