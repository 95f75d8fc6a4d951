package interference

import (
	"errors"

	"gonum.org/v1/gonum/mat"
)

// linear is the white-box baseline: on each class, the ratio of a workload is
// a constant plus a fixed loss (or gain) per task beside it, by ridge
// regression. Its coefficients can be read.
type linear struct {
	space
	// coef[class][metric][workload] holds a weight per workload, then the
	// constant; nil where nothing is known.
	coef  [][][][]float32
	noise []noise // by metric; groups are class x workload
}

// ridge keeps weights of workloads that hardly occur near 0.
const ridge = 1e-2

func fitLinear(d *dataset, want []int) *linear {
	l := &linear{space: d.space, noise: make([]noise, len(metrics))}
	l.coef = make([][][][]float32, len(d.classes))
	residuals := make([][]residual, len(metrics))
	for c := range d.classes {
		l.coef[c] = make([][][]float32, len(metrics))
		for _, m := range want {
			l.coef[c][m] = make([][]float32, len(d.workloads))
			for w := range d.workloads {
				if l.known[c][m][w] {
					var rs []residual
					l.coef[c][m][w], rs = d.ridge(c, m, w)
					residuals[m] = append(residuals[m], rs...)
				}
			}
		}
	}
	for m := range metrics {
		l.noise[m] = fitNoise(residuals[m], len(d.classes)*len(d.workloads), d.shared(m))
	}
	return l
}

// ridge solves (X'X + ridge I) b = X'y, and returns the residuals that each
// row would have, had it been left out: e / (1 - h), h its leverage.
func (d *dataset) ridge(class, metric, workload int) ([]float32, []residual) {
	var xs [][]float64
	var ys []float64
	var shared []bool // more than one task
	for _, r := range d.rows {
		if r.class != class || r.obs[metric] == nil {
			continue
		}
		for i, m := range r.members {
			if m.workload == workload && r.obs[metric][i].measured {
				xs = append(xs, linearFeatures(r.members, workload, len(d.workloads)))
				ys = append(ys, r.obs[metric][i].value)
				shared = append(shared, r.tasks() > 1)
			}
		}
	}
	n := len(d.workloads) + 1
	gram, xy := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for k, x := range xs {
		gram.SymRankOne(gram, 1, mat.NewVecDense(n, x))
		xy.AddScaledVec(xy, ys[k], mat.NewVecDense(n, x))
	}
	for i := range n {
		gram.SetSym(i, i, gram.At(i, i)+ridge)
	}
	var chol mat.Cholesky
	chol.Factorize(gram) // positive definite by the ridge
	var b, gx mat.VecDense
	must(chol.SolveVecTo(&b, xy))
	var rs []residual
	for k, x := range xs {
		if !shared[k] {
			continue
		}
		v := mat.NewVecDense(n, x)
		must(chol.SolveVecTo(&gx, v))
		fit := mat.Dot(&b, v)
		left := ys[k] - (ys[k]-fit)/max(1-mat.Dot(&gx, v), 0.05)
		p := logRatio(left)
		rs = append(rs, residual{group: class*len(d.workloads) + workload, p: p, err: p - logRatio(ys[k])})
	}
	coef := make([]float32, n)
	for i := range coef {
		coef[i] = float32(b.AtVec(i))
	}
	return coef, rs
}

// must panics on what the mathematics excludes: gonum reports a system close
// to singular as an error although it has solved it.
func must(err error) {
	var nearSingular mat.Condition
	if err != nil && !errors.As(err, &nearSingular) {
		panic(err)
	}
}

// linearFeatures counts the tasks beside the one that is asked about, then 1.
func linearFeatures(ms []member, workload, n int) []float64 {
	x := make([]float64, n+1)
	for _, m := range ms {
		x[m.workload] = float64(m.count)
	}
	x[workload]--
	x[n] = 1
	return x
}

func (*linear) kind() string { return KindLinear }

func (l *linear) answer(c, m int, rows [][]member, out [][]Estimate) {
	for i, ms := range rows {
		for j, t := range ms {
			if !l.known[c][m][t.workload] {
				continue
			}
			b := l.coef[c][m][t.workload]
			v := float64(b[len(l.workloads)] - b[t.workload])
			for _, o := range ms {
				v += float64(b[o.workload]) * float64(o.count)
			}
			out[i][j] = l.noise[m].estimate(c*len(l.workloads)+t.workload, logRatio(v), 0)
		}
	}
}
