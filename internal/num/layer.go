package num

import (
	"math"
	"math/rand/v2"
)

// Param is a learned matrix with the gradient of the loss by it.
type Param struct {
	Value, Grad Matrix
	// Decay says whether weight decay pulls it to 0.
	Decay bool
}

// Linear is the layer y = x W + b. Shapes: x (batch, in), W (in, out),
// b (1, out), y (batch, out).
type Linear struct{ W, B Param }

// NewLinear draws W from a normal distribution of variance 1/in, which keeps
// the scale of what passes through (LeCun et al., Efficient BackProp, 1998,
// section 4.6); b is 0.
func NewLinear(in, out int, rng *rand.Rand) *Linear {
	l := ZeroLinear(in, out)
	scale := float32(1 / math.Sqrt(float64(max(in, 1))))
	for i := range l.W.Value.Data {
		l.W.Value.Data[i] = float32(rng.NormFloat64()) * scale
	}
	l.W.Decay = true
	return l
}

// ZeroLinear is a layer of zeros whose weights do not decay.
func ZeroLinear(in, out int) *Linear {
	return &Linear{
		W: Param{Value: New(in, out), Grad: New(in, out)},
		B: Param{Value: New(1, out), Grad: New(1, out)},
	}
}

// Params lists what Adam updates.
func (l *Linear) Params() []*Param { return []*Param{&l.W, &l.B} }

// Forward computes y = x W + b.
func (l *Linear) Forward(y, x Matrix) {
	mustMatch("batch of y", y.Rows, x.Rows)
	for i := range y.Rows {
		copy(y.Row(i), l.B.Value.Data)
	}
	Mul(y, x, l.W.Value, false, false, 1)
}

// Add computes y += x W, leaving the bias out: for a second input to the
// same output.
func (l *Linear) Add(y, x Matrix) { Mul(y, x, l.W.Value, false, false, 1) }

// Backward takes dy, the gradient of the loss by y, adds to the gradients of
// W and b, and writes the gradient by x to dx unless dx has no rows.
func (l *Linear) Backward(dx, dy, x Matrix) {
	Mul(l.W.Grad, x, dy, true, false, 1)
	addRows(l.B.Grad.Data, dy, 0, dy.Rows)
	if dx.Rows > 0 {
		Mul(dx, dy, l.W.Value, false, true, 0)
	}
}

// SiLU computes y = x sigmoid(x) element by element (Elfwing et al., Sigmoid-
// weighted linear units, 2018) and, unless slope has no rows, the derivative
// of y by x, with which Scale goes backwards. y may be x.
func SiLU(y, slope, x Matrix) {
	in := x.Data
	out := y.Data[:len(in)]
	n := 0
	if wide {
		n = len(in) &^ 7
	}
	if slope.Rows == 0 {
		if n > 0 {
			silu8(&out[0], &in[0], n)
		}
		for i := n; i < len(in); i++ {
			out[i] = in[i] / (1 + Exp(-in[i]))
		}
		return
	}
	d := slope.Data[:len(in)]
	if n > 0 {
		siluSlope8(&out[0], &d[0], &in[0], n)
	}
	for i := n; i < len(in); i++ {
		v := in[i]
		s := 1 / (1 + Exp(-v))
		out[i] = v * s
		d[i] = s * (1 + v*(1-s))
	}
}

// Scale multiplies dy by slope element by element.
func Scale(dy, slope Matrix) {
	s := slope.Data[:len(dy.Data)]
	for i := range dy.Data {
		dy.Data[i] *= s[i]
	}
}

// Exp is e^x with a relative error below 2e-7, several times faster than
// math.Exp. Beyond +-87, where float32 leaves its normal range, it clamps.
func Exp(x float32) float32 {
	const (
		log2e = 1.44269504088896341
		ln2Hi = 0.693359375 // exact in few bits, so that x - k ln2Hi is exact
		ln2Lo = -2.12194440e-4
	)
	if x > 87 {
		x = 87
	} else if !(x >= -87) { // NaN too: a diverged network must not index out of range
		x = -87
	}
	k := int32(x*log2e + 0.5)
	if x < 0 {
		k = int32(x*log2e - 0.5)
	}
	r := x - float32(k)*ln2Hi - float32(k)*ln2Lo
	// Taylor to r^6 / 720: |r| <= ln 2 / 2, so the rest is below 1e-7.
	p := 1 + r*(1+r*(0.5+r*(1.0/6+r*(1.0/24+r*(1.0/120+r*(1.0/720))))))
	return p * math.Float32frombits(uint32(k+127)<<23)
}
