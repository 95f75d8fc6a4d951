package interference

import (
	"math"
	"slices"

	"github.com/cotenant/cotenant/internal/num"
)

// encoderVersion numbers the features below. Files name it; old versions stay
// readable.
const encoderVersion = 1

// encoder turns a co-location on a class into the input of the networks:
// for each workload the square root of its number of tasks (the first
// neighbour hurts more than the fifth) and whether it is there at all (a cache
// beside its client helps whatever their number), then log(1 + tasks), and the
// class. It sees counts only, so it cannot depend on an order of tasks. The
// first layer multiplies each feature by a learned vector, an embedding of the
// workload, and sums: a deep set (Zaheer et al., 2017, equation 4).
type encoder struct {
	workloads, classes int
	mean, scale        []float32 // per feature
}

func (e encoder) width() int {
	if e.classes > 1 {
		return 2*e.workloads + 1 + e.classes
	}
	return 2*e.workloads + 1 // one class says nothing
}

// encode writes the standardised features of one co-location to x.
func (e encoder) encode(x []float32, class int, ms []member) {
	e.raw(x, class, ms)
	for i := range x {
		x[i] = (x[i] - e.mean[i]) / e.scale[i]
	}
}

func (e encoder) raw(x []float32, class int, ms []member) {
	clear(x)
	tasks := 0
	for _, m := range ms {
		x[m.workload] = float32(math.Sqrt(float64(m.count)))
		x[e.workloads+m.workload] = 1
		tasks += m.count
	}
	x[2*e.workloads] = float32(math.Log1p(float64(tasks)))
	if e.classes > 1 {
		x[2*e.workloads+1+class] = 1
	}
}

// network is one member of the ensemble: two hidden layers over the
// co-location, an output per (metric, workload), and a linear way past them,
// so that what is nearly linear need not be learned by the layers.
type network struct{ in, mid, out, skip *num.Linear }

const hidden = 64

func newNetwork(features, outputs int, seed uint64, member int) *network {
	rng := num.Rand(seed, 1, uint64(member))
	return &network{
		in:   num.NewLinear(features, hidden, rng),
		mid:  num.NewLinear(hidden, hidden, rng),
		out:  scaled(num.NewLinear(hidden, outputs, rng), 0.3),
		skip: num.ZeroLinear(features, outputs),
	}
}

// scaled makes a layer start small: the output begins near its mean.
func scaled(l *num.Linear, by float32) *num.Linear {
	for i := range l.W.Value.Data {
		l.W.Value.Data[i] *= by
	}
	return l
}

func (n *network) params() []*num.Param {
	ps := append(n.in.Params(), n.mid.Params()...)
	return append(append(ps, n.out.Params()...), &n.skip.W)
}

// activations of one batch: x in, h and g after the hidden layers, y out. The
// slopes of the nonlinearities are kept for going backwards; without rows,
// they are not.
type activations struct{ x, h, dh, g, dg, y num.Matrix }

func newActivations(batch, features, outputs int, backwards bool) *activations {
	a := &activations{
		x: num.New(batch, features), h: num.New(batch, hidden), g: num.New(batch, hidden), y: num.New(batch, outputs),
	}
	if backwards {
		a.dh, a.dg = num.New(batch, hidden), num.New(batch, hidden)
	}
	return a
}

// head is the first n rows, forwards only.
func (a *activations) head(n int) *activations {
	return &activations{x: a.x.Head(n), h: a.h.Head(n), g: a.g.Head(n), y: a.y.Head(n)}
}

func (n *network) forward(a *activations) {
	n.in.Forward(a.h, a.x)
	num.SiLU(a.h, a.dh, a.h)
	n.mid.Forward(a.g, a.h)
	num.SiLU(a.g, a.dg, a.g)
	n.out.Forward(a.y, a.g)
	n.skip.Add(a.y, a.x)
}

// backward takes the gradient of the loss in a.y, adds to the gradients of the
// parameters, and uses d as scratch.
func (n *network) backward(a *activations, d [2]num.Matrix) {
	n.skip.Backward(num.Matrix{}, a.y, a.x)
	n.out.Backward(d[0], a.y, a.g)
	num.Scale(d[0], a.dg)
	n.mid.Backward(d[1], d[0], a.h)
	num.Scale(d[1], a.dh)
	n.in.Backward(num.Matrix{}, d[1], a.x)
}

// neural is an ensemble of networks. Each was trained without one fold of the
// co-locations, so that the residuals on what it had not seen say how far to
// trust the whole, and the members disagree where data is thin.
type neural struct {
	space
	encoder encoder
	metrics []int // learned; output column k*len(workloads)+w is workload w of metrics[k]
	// mean and scale of each output, by class: [class*outputs + output].
	mean, scale []float32
	noise       []noise // by position in metrics; groups are class x workload
	members     []*network
	kin         *kin // nil: the networks answer alone
}

func (*neural) kind() string { return KindNeural }

func (n *neural) outputs() int { return len(n.metrics) * len(n.workloads) }

// predictBatch bounds the memory of Predict, and is large enough for gemm.
const predictBatch = 256

func (n *neural) answer(c, m int, rows [][]member, out [][]Estimate) {
	k := slices.Index(n.metrics, m)
	if k < 0 {
		return
	}
	a := newActivations(min(predictBatch, len(rows)), n.encoder.width(), n.outputs(), false)
	ys := make([]num.Matrix, len(n.members))
	for i := range ys {
		ys[i] = num.New(a.x.Rows, n.outputs())
	}
	for from := 0; from < len(rows); from += predictBatch {
		part := rows[from:min(from+predictBatch, len(rows))]
		b := a.head(len(part))
		for i, ms := range part {
			n.encoder.encode(b.x.Row(i), c, ms)
		}
		for j, member := range n.members {
			b.y = ys[j].Head(len(part))
			member.forward(b)
		}
		for i, ms := range part {
			for j, t := range ms {
				if n.known[c][m][t.workload] {
					out[from+i][j] = n.estimate(c, k, ms, j, i, ys)
				}
			}
		}
	}
}

// estimate pools what the networks say of member j of a co-location, in row i
// of each of ys, and blends it with what its kin say.
func (n *neural) estimate(class, k int, ms []member, j, i int, ys []num.Matrix) Estimate {
	workload := ms[j].workload
	o := k*len(n.workloads) + workload
	var sum float64
	for _, y := range ys {
		sum += float64(y.Data[i*y.Cols+o])
	}
	mean := sum / float64(len(ys))
	var m2 float64
	for _, y := range ys {
		d := float64(y.Data[i*y.Cols+o]) - mean
		m2 += d * d
	}
	scale := float64(n.scale[class*n.outputs()+o])
	p := float64(n.mean[class*n.outputs()+o]) + scale*mean
	spread := scale * math.Sqrt(m2/float64(max(len(ys)-1, 1)))
	if n.kin != nil {
		at := class*len(n.metrics) + k
		if share := float64(n.kin.networks[at]); share < 1 {
			mean, std := n.kin.logRatio(at, ms, j)
			p, spread = blendOf(share, p, spread, mean, std)
		}
	}
	return n.noise[k].estimate(class*len(n.workloads)+workload, p, spread)
}
