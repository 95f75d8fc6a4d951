package balance

import (
	"math"

	"github.com/cotenant/cotenant/internal/num"
)

// Problem is something to minimise by SGD, in float64.
type Problem interface {
	// Len is the number of samples.
	Len() int
	// Start are the first weights.
	Start(seed uint64) []float64
	// Gradient adds the gradient of the sum of the samples' losses to sum.
	Gradient(weights []float64, samples []int, sum []float64)
	// Loss is the mean loss over all samples.
	Loss(weights []float64) float64
}

// data are samples of some features with a label of 0 or 1.
type data struct {
	x [][]float64
	y []float64
}

// logistic is L2-regularised logistic regression: convex.
type logistic struct {
	data
	decay float64
}

// NewLogistic draws a problem of logistic regression: normal features, labels
// by a hidden plane with a tenth of them flipped.
func NewLogistic(samples, features int, seed uint64) Problem {
	rng := num.Rand(seed, 0x10)
	plane := make([]float64, features)
	for i := range plane {
		plane[i] = rng.NormFloat64()
	}
	p := &logistic{decay: 1e-3}
	for range samples {
		x, z := make([]float64, features), 0.0
		for i := range x {
			x[i] = rng.NormFloat64()
			z += x[i] * plane[i]
		}
		p.x, p.y = append(p.x, x), append(p.y, label(z > 0 != (rng.Float64() < 0.1)))
	}
	return p
}

func label(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (p *logistic) Len() int { return len(p.x) }

func (p *logistic) Start(uint64) []float64 { return make([]float64, len(p.x[0])) }

func (p *logistic) Gradient(w []float64, samples []int, sum []float64) {
	for _, s := range samples {
		d := sigmoid(dot(w, p.x[s])) - p.y[s]
		for i, x := range p.x[s] {
			sum[i] += d*x + p.decay*w[i]
		}
	}
}

func (p *logistic) Loss(w []float64) float64 {
	total := 0.0
	for s, x := range p.x {
		total += crossEntropy(dot(w, x), p.y[s])
	}
	return total/float64(len(p.x)) + p.decay/2*dot(w, w)
}

// perceptron is a network with one hidden layer of tanh: not convex.
type perceptron struct {
	data
	hidden int
}

// NewPerceptron draws a problem for a small network: two features, and labels
// by which of two rings around the origin a sample lies in.
func NewPerceptron(samples, hidden int, seed uint64) Problem {
	rng := num.Rand(seed, 0x11)
	p := &perceptron{hidden: hidden}
	for range samples {
		outer := rng.IntN(2) == 1
		angle := 2 * math.Pi * rng.Float64()
		radius := 0.7 + 0.15*rng.NormFloat64()
		if outer {
			radius += 0.8
		}
		p.x = append(p.x, []float64{radius * math.Cos(angle), radius * math.Sin(angle)})
		p.y = append(p.y, label(outer))
	}
	return p
}

func (p *perceptron) Len() int { return len(p.x) }

func (p *perceptron) Start(seed uint64) []float64 {
	rng := num.Rand(seed, 0x12)
	w := make([]float64, p.hidden*(len(p.x[0])+2)+1)
	for i := range w {
		w[i] = 0.7 * rng.NormFloat64()
	}
	return w
}

// forward fills h with the hidden units and gives the logit.
func (p *perceptron) forward(w, x, h []float64) float64 {
	in := len(x) + 1
	z := w[len(w)-1]
	for k := range h {
		u := w[k*in : (k+1)*in]
		h[k] = math.Tanh(dot(u[:len(x)], x) + u[len(x)])
		z += w[p.hidden*in+k] * h[k]
	}
	return z
}

func (p *perceptron) Gradient(w []float64, samples []int, sum []float64) {
	h := make([]float64, p.hidden)
	for _, s := range samples {
		x := p.x[s]
		in := len(x) + 1
		d := sigmoid(p.forward(w, x, h)) - p.y[s]
		sum[len(w)-1] += d
		for k, v := range h {
			sum[p.hidden*in+k] += d * v
			back := d * w[p.hidden*in+k] * (1 - v*v)
			for i := range x {
				sum[k*in+i] += back * x[i]
			}
			sum[k*in+len(x)] += back
		}
	}
}

func (p *perceptron) Loss(w []float64) float64 {
	h := make([]float64, p.hidden)
	total := 0.0
	for s, x := range p.x {
		total += crossEntropy(p.forward(w, x, h), p.y[s])
	}
	return total / float64(len(p.x))
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i, v := range a {
		s += v * b[i]
	}
	return s
}

func sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// crossEntropy is -log of the probability that a logit gives the label.
func crossEntropy(z, y float64) float64 {
	if y == 0 {
		z = -z
	}
	if z < -30 {
		return -z
	}
	return math.Log1p(math.Exp(-z))
}
