package num

import "math"

// Pass runs Scorers and keeps what it needs to go backwards. It grows with the
// largest batch seen and then allocates nothing. A Pass is for one goroutine
// at a time; the zero Pass is ready.
type Pass struct {
	// Scores holds one number for each candidate, Values one for each decision,
	// in the units of the rewards. They are overwritten by the next run.
	Scores, Values []float32

	net     *Scorer
	batch   Batch
	starts  [2]int
	shift   Matrix   // (decisions, hidden[0]): the context's share of the first layer
	hidden  []Matrix // after each layer
	slope   []Matrix
	pooled  Matrix // (decisions, context + 2 hidden[last])
	largest []int  // (decisions x hidden[last]): the candidate row of each maximum
	inner   Matrix // (decisions, hidden[last]): the critic's layer
	innerD  Matrix
	raw     Matrix // (decisions, 1): values in units of std

	up, down, dPooled, dInner Matrix // gradients on the way back
	turned                    Matrix
}

// Score computes the scores of one decision's candidates and returns them; they
// stay valid until the next run of p. The value is left out.
func (p *Pass) Score(s *Scorer, candidates Matrix, context []float32) []float32 {
	p.starts = [2]int{0, candidates.Rows}
	p.embed(s, Batch{candidates, Matrix{1, len(context), context}, p.starts[:]}, false)
	p.score()
	return p.Scores
}

// Forward computes the scores and values of a batch. It panics where the
// batch does not have the shape of s.
func (p *Pass) Forward(s *Scorer, b Batch) {
	p.embed(s, b, true)
	p.score()
	p.values()
}

func (p *Pass) embed(s *Scorer, b Batch, slopes bool) {
	mustMatch("features of a candidate", b.Candidates.Cols, s.Shape.Features)
	mustMatch("features of the context", b.Context.Cols, s.Shape.Context)
	mustMatch("rows of the context", b.Context.Rows, b.Len())
	mustMatch("end of the last decision", b.Starts[b.Len()], b.Candidates.Rows)
	p.net, p.batch = s, b
	n := len(s.Shape.Hidden)
	if len(p.hidden) != n {
		p.hidden, p.slope = make([]Matrix, n), make([]Matrix, n)
	}
	p.shift = p.shift.sized(b.Len(), s.Shape.Hidden[0])
	s.context.Forward(p.shift, b.Context)
	h := p.hidden[0].sized(b.Candidates.Rows, s.Shape.Hidden[0])
	for d := range b.Len() {
		from := p.shift.Row(d)
		for k := b.Starts[d]; k < b.Starts[d+1]; k++ {
			copy(h.Row(k), from)
		}
	}
	Mul(h, b.Candidates, s.candidate.Value, false, false, 1)
	p.activate(0, h, slopes)
	for i, l := range s.layers {
		h := p.hidden[i+1].sized(b.Candidates.Rows, s.Shape.Hidden[i+1])
		l.Forward(h, p.hidden[i])
		p.activate(i+1, h, slopes)
	}
}

func (p *Pass) activate(i int, h Matrix, slopes bool) {
	p.hidden[i] = h
	var d Matrix
	if slopes {
		p.slope[i] = p.slope[i].sized(h.Rows, h.Cols)
		d = p.slope[i]
	}
	SiLU(h, d, h)
}

func (p *Pass) score() {
	s, last := p.net, p.hidden[len(p.hidden)-1]
	p.Scores = grown(p.Scores, last.Rows)
	w := s.score.Value.Data
	for k := range p.Scores {
		p.Scores[k] = dot(last.Row(k), w)
	}
	if f := s.Shape.Prior - 1; f >= 0 {
		scale := s.prior.Value.Data[0]
		for k := range p.Scores {
			p.Scores[k] += scale * p.batch.Candidates.Row(k)[f]
		}
	}
}

func (p *Pass) values() {
	s, b, last := p.net, p.batch, p.hidden[len(p.hidden)-1]
	g, h := s.Shape.Context, last.Cols
	p.pooled = p.pooled.sized(b.Len(), g+2*h)
	p.largest = grown(p.largest, b.Len()*h)
	for d := range b.Len() {
		row := p.pooled.Row(d)
		copy(row, b.Context.Row(d))
		mean, top, at := row[g:g+h], row[g+h:], p.largest[d*h:(d+1)*h]
		first := b.Starts[d]
		clear(mean)
		addRows(mean, last, first, b.Starts[d+1])
		copy(top, last.Row(first))
		for j := range at {
			at[j] = first
		}
		for k := first + 1; k < b.Starts[d+1]; k++ {
			for j, v := range last.Row(k) {
				if v > top[j] {
					top[j], at[j] = v, k
				}
			}
		}
		share := 1 / float32(b.Starts[d+1]-first)
		for j := range mean {
			mean[j] *= share
		}
	}
	p.inner = p.inner.sized(b.Len(), s.pooled.W.Value.Cols)
	p.innerD = p.innerD.sized(p.inner.Rows, p.inner.Cols)
	s.pooled.Forward(p.inner, p.pooled)
	SiLU(p.inner, p.innerD, p.inner)
	p.raw = p.raw.sized(b.Len(), 1)
	p.Values = grown(p.Values, b.Len())
	w, bias := s.value.W.Value.Data, s.value.B.Value.Data[0]
	for d := range p.Values {
		p.raw.Data[d] = dot(p.inner.Row(d), w) + bias
		p.Values[d] = s.scale[0] + s.scale[1]*p.raw.Data[d]
	}
}

// Backward follows a Forward. It adds the gradient of a loss to the gradients
// of the Scorer's parameters. dScores is the loss's gradient by each score;
// dValues by each value as the head learns it, (value - mean) / std.
func (p *Pass) Backward(dScores, dValues []float32) {
	s, b, last := p.net, p.batch, p.hidden[len(p.hidden)-1]
	mustMatch("gradients of scores", len(dScores), b.Candidates.Rows)
	mustMatch("gradients of values", len(dValues), b.Len())
	g, h := s.Shape.Context, last.Cols

	// The critic, down to its pools.
	p.dInner = p.dInner.sized(p.inner.Rows, p.inner.Cols)
	p.back(s.value, p.dInner, Matrix{b.Len(), 1, dValues}, p.inner)
	Scale(p.dInner, p.innerD)
	p.dPooled = p.dPooled.sized(b.Len(), g+2*h)
	p.back(s.pooled, p.dPooled, p.dInner, p.pooled)

	// Each embedding: from its score, from the mean, from where it was largest.
	down := p.down.sized(last.Rows, h)
	w := s.score.Value.Data
	Mul(s.score.Grad, Matrix{last.Rows, 1, dScores}, last, true, false, 1)
	for d := range b.Len() {
		row := p.dPooled.Row(d)
		mean, top := row[g:g+h], row[g+h:]
		share := 1 / float32(b.Starts[d+1]-b.Starts[d])
		for k := b.Starts[d]; k < b.Starts[d+1]; k++ {
			ds, to := dScores[k], down.Row(k)
			for j := range to {
				to[j] = ds*w[j] + share*mean[j]
			}
		}
		for j, k := range p.largest[d*h : (d+1)*h] {
			down.Data[k*h+j] += top[j]
		}
	}
	if f := s.Shape.Prior - 1; f >= 0 {
		for k, ds := range dScores {
			s.prior.Grad.Data[0] += ds * b.Candidates.Row(k)[f]
		}
	}

	// The shared layers.
	up := p.up
	for i := len(s.layers) - 1; i >= 0; i-- {
		Scale(down, p.slope[i+1])
		up = up.sized(last.Rows, s.Shape.Hidden[i])
		p.back(s.layers[i], up, down, p.hidden[i])
		down, up = up, down
	}
	Scale(down, p.slope[0])
	Mul(s.candidate.Grad, b.Candidates, down, true, false, 1)
	p.shift.Zero()
	for d := range b.Len() {
		addRows(p.shift.Row(d), down, b.Starts[d], b.Starts[d+1])
	}
	p.back(s.context, Matrix{}, p.shift, b.Context)
	p.down, p.up = down, up
}

// back is l.Backward by way of the transposed weights, which is faster for few
// of them and many rows.
func (p *Pass) back(l *Linear, dx, dy, x Matrix) {
	Mul(l.W.Grad, x, dy, true, false, 1)
	addRows(l.B.Grad.Data, dy, 0, dy.Rows)
	if dx.Rows == 0 {
		return
	}
	w := l.W.Value
	t := p.turned.sized(w.Cols, w.Rows)
	p.turned = t
	for i := range w.Rows {
		for j, v := range w.Row(i) {
			t.Data[j*w.Rows+i] = v
		}
	}
	Mul(dx, dy, t, false, false, 0)
}

// sized is a matrix of that size on the storage of m where it is large enough;
// what it holds is arbitrary.
func (m Matrix) sized(rows, cols int) Matrix { return Matrix{rows, cols, grown(m.Data, rows*cols)} }

func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// dot keeps four sums, which the processor adds side by side.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// Softmax turns scores into the probabilities of the candidates and returns
// log sum_k e^score_k, so that the log-probability of k is score_k minus it. It
// is safe for scores of any size. p may be scores; there must be at least one.
func Softmax(p, scores []float32) float32 {
	top := scores[0]
	for _, v := range scores[1:] {
		top = max(top, v)
	}
	p = p[:len(scores)]
	var sum float32
	for k, v := range scores {
		p[k] = Exp(v - top)
		sum += p[k]
	}
	share := 1 / sum
	for k := range p {
		p[k] *= share
	}
	return top + float32(math.Log(float64(sum)))
}

// Highest is the index of the highest score, the first of equals: how a policy
// decides once it is trained.
func Highest(scores []float32) int {
	best := 0
	for k, v := range scores {
		if v > scores[best] {
			best = k
		}
	}
	return best
}
