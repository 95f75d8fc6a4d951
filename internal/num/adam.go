package num

import (
	"fmt"
	"math"
)

// Adam is the optimiser of Kingma and Ba (2015, algorithm 1) with the
// decoupled weight decay of Loshchilov and Hutter (2019, algorithm 2).
type Adam struct {
	// Decay multiplies the learning rate: each step takes rate x Decay of every
	// decaying parameter away.
	Decay  float32
	params []*Param
	m, v   [][]float32
	b1, b2 float64 // beta^t, for the bias correction
}

// The usual constants of the paper.
const (
	beta1   = 0.9
	beta2   = 0.999
	epsilon = 1e-8
)

// NewAdam keeps moments for params, which every Step updates.
func NewAdam(params []*Param, decay float32) *Adam {
	a := &Adam{Decay: decay, params: params, b1: 1, b2: 1}
	for _, p := range params {
		a.m = append(a.m, make([]float32, len(p.Value.Data)))
		a.v = append(a.v, make([]float32, len(p.Value.Data)))
	}
	return a
}

// Step moves every parameter against its gradient and sets the gradient to 0.
func (a *Adam) Step(rate float32) {
	a.b1 *= beta1
	a.b2 *= beta2
	scale := rate / float32(1-a.b1)
	unbias := float32(1 / (1 - a.b2))
	for k, p := range a.params {
		keep := float32(1)
		if p.Decay {
			keep = 1 - rate*a.Decay
		}
		value, grad := p.Value.Data, p.Grad.Data
		m, v := a.m[k], a.v[k]
		grad, m, v = grad[:len(value)], m[:len(value)], v[:len(value)]
		for i, g := range grad {
			m[i] = beta1*m[i] + (1-beta1)*g
			v[i] = beta2*v[i] + (1-beta2)*g*g
			value[i] = keep*value[i] - scale*m[i]/(float32(math.Sqrt(float64(v[i]*unbias)))+epsilon)
			grad[i] = 0
		}
	}
}

// AdamState is all that an Adam remembers between steps.
type AdamState struct {
	First, Second [][]float32 // the moments, for each parameter
	Beta1, Beta2  float64     // the powers of the two decays reached so far
}

// State is shared with a: copy it, or write it out, before the next Step.
func (a *Adam) State() AdamState { return AdamState{a.m, a.v, a.b1, a.b2} }

// SetState goes on from a State of an Adam over parameters of the same sizes.
func (a *Adam) SetState(s AdamState) error {
	for _, moments := range [][][]float32{s.First, s.Second} {
		if len(moments) != len(a.m) {
			return fmt.Errorf("moments of %d parameters, want %d", len(moments), len(a.m))
		}
		for k := range moments {
			if len(moments[k]) != len(a.m[k]) {
				return fmt.Errorf("moments of parameter %d have size %d, want %d", k, len(moments[k]), len(a.m[k]))
			}
		}
	}
	for k := range a.m {
		copy(a.m[k], s.First[k])
		copy(a.v[k], s.Second[k])
	}
	a.b1, a.b2 = s.Beta1, s.Beta2
	return nil
}

// Cosine is the learning rate of a step of total: it rises linearly over the
// first warm steps, then falls to 0 along half a cosine.
func Cosine(peak float64, step, total, warm int) float32 {
	rate := peak * (1 + math.Cos(math.Pi*float64(step)/float64(total))) / 2
	if step < warm {
		rate *= float64(step+1) / float64(warm)
	}
	return float32(rate)
}
