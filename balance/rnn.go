package balance

import (
	"math"

	"github.com/cotenant/cotenant/internal/num"
)

// elman is a plain recurrent network (Elman, Cognitive Science 1990) over a
// worker's last speeds: h_t = tanh(W x_t + U h_t-1), next step = V h. It sees
// no outside inputs, and all workers share the weights.
type elman struct {
	Steps   uint64        `json:"steps"`
	Weights [][]float32   `json:"weights"`
	Moments num.AdamState `json:"moments"`
	in      *num.Linear   // W
	back    *num.Linear   // U
	out     *num.Linear   // V
	adam    *num.Adam
	x, h    [rnnLags]num.Matrix
}

const (
	rnnLags   = 8
	rnnHidden = 8
)

func newElman(seed uint64) *elman {
	rng := num.Rand(seed, 0xe1)
	e := &elman{in: num.NewLinear(1, rnnHidden, rng), back: num.NewLinear(rnnHidden, rnnHidden, rng), out: num.ZeroLinear(rnnHidden, 1)}
	for i := range e.back.W.Value.Data {
		e.back.W.Value.Data[i] *= 0.7 // a memory that fades
	}
	e.adam = num.NewAdam(e.params(), netDecay)
	return e
}

func (e *elman) params() []*num.Param {
	return append(append(e.in.Params(), &e.back.W), e.out.Params()...)
}

// lags fills row i of the inputs with the rows that end at at.
func (e *elman) lags(i int, rows []row, at int) {
	level := meanOf(rows[:at+1], func(r row) float64 { return r.Speed })
	for k := range rnnLags {
		e.x[k].Data[i] = float32(rows[max(at-rnnLags+1+k, 0)].Speed-level) * netScale
	}
}

func (e *elman) size(n int) {
	for k := range rnnLags {
		e.x[k], e.h[k] = sized(e.x[k], n, 1), sized(e.h[k], n, rnnHidden)
		clear(e.x[k].Data)
	}
}

func (e *elman) forward(y num.Matrix) {
	for k := range rnnLags {
		e.in.Forward(e.h[k], e.x[k])
		if k > 0 {
			e.back.Add(e.h[k], e.h[k-1])
		}
		for i, v := range e.h[k].Data {
			e.h[k].Data[i] = float32(math.Tanh(float64(v)))
		}
	}
	e.out.Forward(y, e.h[rnnLags-1])
}

// train makes a few steps of Adam by backpropagation through time.
func (e *elman) train(all []*memory, seed uint64) {
	from := trainable(all)
	if len(from) == 0 {
		return
	}
	y, dh, before := num.New(netBatch, 1), num.New(netBatch, rnnHidden), num.New(netBatch, rnnHidden)
	want := make([]float32, netBatch)
	for range netSteps {
		e.size(netBatch)
		rng := num.Rand(seed, 0xe2, e.Steps)
		e.Steps++
		for i := range netBatch {
			rows := from[rng.IntN(len(from))].Rows
			at := speedLags - 1 + rng.IntN(len(rows)-speedLags)
			e.lags(i, rows, at)
			want[i] = float32(rows[at+1].Speed-rows[at].Speed) * netScale
		}
		e.forward(y)
		for i := range y.Data {
			y.Data[i] = clip(y.Data[i]-want[i]) / netBatch
		}
		e.out.Backward(dh, y, e.h[rnnLags-1])
		for k := rnnLags - 1; k >= 0; k-- {
			for i, h := range e.h[k].Data {
				dh.Data[i] *= 1 - h*h
			}
			e.in.Backward(num.Matrix{}, dh, e.x[k])
			if k > 0 {
				num.Mul(e.back.W.Grad, e.h[k-1], dh, true, false, 1)
				num.Mul(before, dh, e.back.W.Value, false, true, 0)
				dh, before = before, dh
			}
		}
		e.adam.Step(netRate)
	}
}

// predict adds the network's step to the forecasts of workers with enough rows.
func (e *elman) predict(all []*memory) {
	e.size(len(all))
	for i, m := range all {
		if len(m.Rows) >= speedLags {
			e.lags(i, m.Rows, len(m.Rows)-1)
		}
	}
	y := num.New(len(all), 1)
	e.forward(y)
	for i, m := range all {
		if len(m.Rows) >= speedLags {
			m.Forecasts[rnnModel] += finite(float64(y.Data[i]) / netScale)
		}
	}
}
