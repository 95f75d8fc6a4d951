package interference

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"
)

// kin is a Gaussian process over workloads and their neighbours, for data too
// thin for networks: many workloads, each met by each of the others once or
// never. On one class, for one metric, with m the tasks beside one of w,
//
//	log ratio = always[w] + sum over v of sqrt(m[v]) effect[w, v]
//
// and 0 where m is empty. Kinship makes unmeasured pairs known: the same
// program at another batch size, which is what names such as resnet-50/32 and
// resnet-50/64 say, suffers alike and does alike to its neighbours. A priori,
//
//	cov(always[w], always[w'])       = constantVariance + targetVariance S[w, w']
//	cov(effect[w, v], effect[w', v']) = (neighbourVariance + pairVariance S[w, w']) S[v, v']
//
// with S the kinship below: product kernels as in Bonilla, Chai and Williams,
// Multi-task Gaussian process prediction (2008). The function is linear in its
// unknowns, so that the posterior mean is a table and costs as little as the
// linear model to ask.
type kin struct {
	width int // workloads
	// weight by class, metric and workload asked about: effects by neighbour,
	// then always.
	weight []float32
	// std by class, metric, workload asked about and neighbour: the posterior
	// standard deviation of always + effect, what is not known of the pair. Of
	// several neighbours the least known counts.
	std []float32
	// least and most ratio measured, as logarithms, by class and metric: a rate
	// that nobody exceeds (a job alone on its device) is a limit, and kin keep
	// to it.
	least, most []float32
	// networks is the weight of the ensemble by class and metric, 1 - networks
	// that of kin.
	networks []float32
}

// The prior, in the squared logarithm; tried on pairs of training jobs, where
// factors of three change the error by less than a tenth of itself.
const (
	constantVariance, targetVariance = 0.2, 0.1
	neighbourVariance, pairVariance  = 0.1, 0.15
	// kinLength is the number of doublings of batch size over which kin grow
	// apart, ownShare what no kin share.
	kinLength, ownShare = 2.4, 0.05
	// mostKin bounds the unknowns, workloads x (workloads + 1), whose cube is the
	// cost: 44 workloads. With more, the networks answer alone.
	mostKin = 2000
)

// kinNoise are the variances of a measurement's error that are tried; the one
// that predicts left-out co-locations best is taken.
var kinNoise = []float64{0.0003, 0.001, 0.003, 0.01, 0.03, 0.1}

// kinShares are the weights of the networks that are tried.
var kinShares = []float64{0, 0.25, 0.5, 0.75, 1}

// family splits the batch size from a workload's name: the first part between
// slashes that is a number. Without one, the workload has no kin.
func family(name string) (rest string, log2size float64) {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		if size, err := strconv.ParseUint(p, 10, 32); err == nil && size > 0 && i > 0 {
			parts[i] = "/"
			return strings.Join(parts, "/"), math.Log2(float64(size))
		}
	}
	return name, 0
}

// kinship of all pairs of workloads: 1 with itself, near 1 between batch sizes
// of one program, 0 between strangers.
func kinship(workloads []string) *mat.SymDense {
	n := len(workloads)
	s := mat.NewSymDense(n, nil)
	for a := range n {
		fa, sizeA := family(workloads[a])
		s.SetSym(a, a, 1)
		for b := range a {
			if fb, sizeB := family(workloads[b]); fa == fb {
				d := (sizeA - sizeB) / kinLength
				s.SetSym(a, b, (1-ownShare)*math.Exp(-d*d/2))
			}
		}
	}
	return s
}

// inverseOf constant + slope S; the kinship keeps it positive definite.
func inverseOf(s *mat.SymDense, constant, slope float64) (*mat.SymDense, bool) {
	n := s.SymmetricDim()
	k := mat.NewSymDense(n, nil)
	for a := range n {
		for b := range a + 1 {
			k.SetSym(a, b, constant+slope*s.At(a, b))
		}
	}
	var chol mat.Cholesky
	inverse := mat.NewSymDense(n, nil)
	if !chol.Factorize(k) || chol.InverseTo(inverse) != nil {
		return nil, false
	}
	return inverse, true
}

// kinPrior is the inverse of the prior covariance of all unknowns; nil where
// there are too many.
func kinPrior(workloads []string) *mat.SymDense {
	n := len(workloads)
	if n*(n+1) > mostKin {
		return nil
	}
	s := kinship(workloads)
	always, ok1 := inverseOf(s, constantVariance, targetVariance)
	target, ok2 := inverseOf(s, neighbourVariance, pairVariance)
	neighbour, ok3 := inverseOf(s, 0, 1)
	if !ok1 || !ok2 || !ok3 {
		return nil
	}
	p := mat.NewSymDense(n*(n+1), nil)
	for w := range n {
		for x := range n {
			at, to := w*(n+1), x*(n+1)
			for u := range n {
				for v := range n {
					if at+u >= to+v {
						p.SetSym(at+u, to+v, target.At(w, x)*neighbour.At(u, v))
					}
				}
			}
			if w >= x {
				p.SetSym(at+n, to+n, always.At(w, x))
			}
		}
	}
	return p
}

// kinCell is one measured cell: where its features are and what they are.
type kinCell struct {
	row, member int
	at          []int
	x           []float64
	y           float64
}

// features of the task of member j in a co-location of at least two tasks.
func (k *kin) features(ms []member, j int) (at []int, x []float64) {
	base := ms[j].workload * (k.width + 1)
	for i, m := range ms {
		n := m.count
		if i == j {
			n--
		}
		if n > 0 {
			at, x = append(at, base+m.workload), append(x, math.Sqrt(float64(n)))
		}
	}
	if len(at) == 0 {
		return nil, nil
	}
	return append(at, base+k.width), append(x, 1)
}

// logRatio is the posterior mean and its standard deviation of member j of a
// co-location; at numbers the class and metric, class*metrics + metric.
func (k *kin) logRatio(at int, ms []member, j int) (mean, std float64) {
	w := ms[j].workload
	weight := k.table(at)[w*(k.width+1):][:k.width+1]
	of := k.stds(at)[w*k.width:][:k.width]
	beside := false
	for i, m := range ms {
		n := m.count
		if i == j {
			n--
		}
		if n > 0 {
			mean += math.Sqrt(float64(n)) * float64(weight[m.workload])
			std = max(std, float64(of[m.workload]))
			beside = true
		}
	}
	if beside {
		mean = k.within(at, mean+float64(weight[k.width]))
	}
	return mean, std
}

func (k *kin) within(at int, mean float64) float64 {
	return min(float64(k.most[at]), max(float64(k.least[at]), mean))
}

// table is the part of weight that is of one class and metric, stds that of
// std.
func (k *kin) table(at int) []float32 {
	size := k.width * (k.width + 1)
	return k.weight[at*size:][:size]
}

func (k *kin) stds(at int) []float32 {
	size := k.width * k.width
	return k.std[at*size:][:size]
}

// cells of one class and metric (by its number in metrics), row by row.
func (k *kin) cells(d *dataset, class, metric int) []kinCell {
	var cells []kinCell
	for r, row := range d.rows {
		if row.class != class || row.obs[metric] == nil || row.tasks() < 2 {
			continue
		}
		for j, o := range row.obs[metric] {
			if !o.measured {
				continue
			}
			if at, x := k.features(row.members, j); at != nil {
				cells = append(cells, kinCell{r, j, at, x, logRatio(o.value)})
			}
		}
	}
	return cells
}

// posterior is what kin learned of one class and metric.
type posterior struct {
	mean       *mat.VecDense
	covariance *mat.SymDense
	// left is what it would say of each cell, and with what standard deviation,
	// had the cell's whole co-location not been measured; err the mean size of
	// that error.
	left, leftStd []float64
	err           float64
}

// std is the standard deviation of always + effect of one pair.
func (p posterior) std(width, workload, neighbour int) float64 {
	base := workload * (width + 1)
	c, e, a := p.covariance, base+neighbour, base+width
	return math.Sqrt(max(c.At(e, e)+2*c.At(e, a)+c.At(a, a), 0))
}

// fitKin finds the posterior for the best of kinNoise; ok is false where there
// is nothing to learn from.
func fitKin(prior *mat.SymDense, cells []kinCell) (best posterior, ok bool) {
	n := prior.SymmetricDim()
	gram, moment := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for _, c := range cells {
		for i, a := range c.at {
			moment.SetVec(a, moment.AtVec(a)+c.x[i]*c.y)
			for j, b := range c.at {
				if a <= b {
					gram.SetSym(a, b, gram.At(a, b)+c.x[i]*c.x[j])
				}
			}
		}
	}
	for _, noise := range kinNoise {
		precision := mat.NewSymDense(n, nil)
		precision.ScaleSym(1/noise, gram)
		precision.AddSym(precision, prior)
		var chol mat.Cholesky
		p := posterior{mean: mat.NewVecDense(n, nil), covariance: mat.NewSymDense(n, nil)}
		if len(cells) == 0 || !chol.Factorize(precision) || chol.InverseTo(p.covariance) != nil || chol.SolveVecTo(p.mean, moment) != nil {
			continue
		}
		p.mean.ScaleVec(1/noise, p.mean)
		if p.leaveOut(cells, noise) && (!ok || p.err < best.err) {
			best, ok = p, true
		}
	}
	return best, ok
}

// leaveOut predicts each cell without its co-location, from what was fitted
// with it: with H the part of the hat matrix between a co-location's cells,
// the errors become (I - H)^-1 times as large (Cook and Weisberg, Residuals
// and influence in regression, 1982, section 2.2), and so does the variance of
// a measurement.
func (p *posterior) leaveOut(cells []kinCell, noise float64) bool {
	p.left, p.leftStd = make([]float64, len(cells)), make([]float64, len(cells))
	for from := 0; from < len(cells); {
		to := from + 1
		for to < len(cells) && cells[to].row == cells[from].row {
			to++
		}
		block := cells[from:to]
		n := len(block)
		rest, residual := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil)
		for i, c := range block {
			fitted := 0.0
			for a, at := range c.at {
				fitted += c.x[a] * p.mean.AtVec(at)
			}
			residual.SetVec(i, c.y-fitted)
			for j, o := range block {
				h := 0.0
				for a, at := range c.at {
					for b, to := range o.at {
						h += c.x[a] * o.x[b] * p.covariance.At(at, to)
					}
				}
				rest.Set(i, j, -h/noise)
			}
			rest.Set(i, i, 1+rest.At(i, i))
		}
		var inverse mat.Dense
		var out mat.VecDense
		if inverse.Inverse(rest) != nil {
			return false
		}
		out.MulVec(&inverse, residual)
		for i, c := range block {
			p.left[from+i] = c.y - out.AtVec(i)
			p.leftStd[from+i] = math.Sqrt(noise * max(inverse.At(i, i)-1, 0))
			p.err += math.Abs(out.AtVec(i)) / float64(len(cells))
		}
		from = to
	}
	return true
}
