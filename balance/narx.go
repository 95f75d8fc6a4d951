package balance

import (
	"math"
	"math/rand/v2"

	"github.com/cotenant/cotenant/internal/num"
)

// narx is a nonlinear autoregressive network with outside inputs (Lin et al.,
// IEEE Trans. Neural Networks 1996; LB-BSP, section 4.2): the next step of a
// worker's logarithmic speed from its last speeds, against their mean, and its
// node's last CPU and memory use. All workers share the weights and train them
// together, so that a job learns as fast as it has workers.
type narx struct {
	Steps   uint64        `json:"steps"`
	Weights [][]float32   `json:"weights"`
	Moments num.AdamState `json:"moments"`
	net     *mlp
	x, y    num.Matrix
}

const (
	speedLags  = 6
	useLags    = 3
	narxInputs = speedLags + 2*useLags
	narxHidden = 12
	netBatch   = 32
	netRate    = 0.01
	netDecay   = 1e-3
	netSteps   = 2 // a decision
)

// mlp is a network with one hidden layer.
type mlp struct {
	in, out *num.Linear
	adam    *num.Adam
	h, dh   num.Matrix
	slope   num.Matrix
}

func newMLP(inputs, hidden int, rng *rand.Rand) *mlp {
	m := &mlp{in: num.NewLinear(inputs, hidden, rng), out: num.ZeroLinear(hidden, 1)}
	m.out.W.Decay = true
	m.adam = num.NewAdam(m.params(), netDecay)
	return m
}

func (m *mlp) params() []*num.Param { return append(m.in.Params(), m.out.Params()...) }

func (m *mlp) forward(y, x num.Matrix) {
	m.h, m.slope = sized(m.h, x.Rows, m.in.W.Value.Cols), sized(m.slope, x.Rows, m.in.W.Value.Cols)
	m.in.Forward(m.h, x)
	num.SiLU(m.h, m.slope, m.h)
	m.out.Forward(y, m.h)
}

// step moves the weights against the gradient of the mean squared error.
func (m *mlp) step(y, x, want num.Matrix) {
	m.forward(y, x)
	for i := range y.Data {
		y.Data[i] = clip(y.Data[i]-want.Data[i]) / float32(x.Rows)
	}
	m.dh = sized(m.dh, x.Rows, m.h.Cols)
	m.out.Backward(m.dh, y, m.h)
	num.Scale(m.dh, m.slope)
	m.in.Backward(num.Matrix{}, m.dh, x)
	m.adam.Step(netRate)
}

// clip bounds an error's gradient, as Huber's loss does: a hiccup teaches no
// more than a large step.
func clip(e float32) float32 { return min(max(e, -0.3), 0.3) }

func sized(m num.Matrix, rows, cols int) num.Matrix {
	if cap(m.Data) < rows*cols {
		return num.New(rows, cols)
	}
	return num.Matrix{Rows: rows, Cols: cols, Data: m.Data[:rows*cols]}
}

func newNARX(seed uint64) *narx {
	return &narx{net: newMLP(narxInputs, narxHidden, num.Rand(seed, 0x4e))}
}

// narxRow fills in the inputs that predict row at+1 from those up to at.
func narxRow(x []float32, rows []row, at int) {
	level := meanOf(rows[:at+1], func(r row) float64 { return r.Speed })
	for k := range speedLags {
		x[k] = float32(rows[max(at-k, 0)].Speed-level) * netScale
	}
	for j, use := range []func(row) float64{func(r row) float64 { return r.CPU }, func(r row) float64 { return r.Memory }} {
		mean := meanOf(rows[:at+1], use)
		for k := range useLags {
			d := 0.0
			if mean > 0 {
				d = min(use(rows[max(at-k, 0)])/mean-1, 3)
			}
			x[speedLags+j*useLags+k] = float32(d)
		}
	}
}

// netScale brings relative speeds, which differ by tenths, to the size that
// networks like.
const netScale = 4

func meanOf(rows []row, of func(row) float64) float64 {
	s := 0.0
	for _, r := range rows {
		s += of(r)
	}
	return s / float64(len(rows))
}

// trainable are the workers that have rows to learn a step from.
func trainable(all []*memory) []*memory {
	var out []*memory
	for _, m := range all {
		if len(m.Rows) > speedLags+1 {
			out = append(out, m)
		}
	}
	return out
}

// train makes a few steps of Adam on rows drawn from all workers' windows.
func (n *narx) train(all []*memory, seed uint64) {
	from := trainable(all)
	if len(from) == 0 {
		return
	}
	x, want := num.New(netBatch, narxInputs), num.New(netBatch, 1)
	y := num.New(netBatch, 1)
	for range netSteps {
		rng := num.Rand(seed, 0x4f, n.Steps)
		n.Steps++
		for i := range netBatch {
			rows := from[rng.IntN(len(from))].Rows
			at := speedLags - 1 + rng.IntN(len(rows)-speedLags)
			narxRow(x.Row(i), rows, at)
			want.Data[i] = float32(rows[at+1].Speed-rows[at].Speed) * netScale
		}
		n.net.step(y, x, want)
	}
}

// predict adds the network's step to the forecasts of workers with enough rows.
func (n *narx) predict(all []*memory) {
	n.x, n.y = sized(n.x, len(all), narxInputs), sized(n.y, len(all), 1)
	clear(n.x.Data)
	for i, m := range all {
		if len(m.Rows) >= speedLags {
			narxRow(n.x.Row(i), m.Rows, len(m.Rows)-1)
		}
	}
	n.net.forward(n.y, n.x)
	for i, m := range all {
		if len(m.Rows) >= speedLags {
			m.Forecasts[narxModel] += finite(float64(n.y.Data[i]) / netScale)
		}
	}
}

func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
