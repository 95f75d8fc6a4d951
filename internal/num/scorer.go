package num

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Batch is a number of decisions side by side. Decision d chooses among the
// rows Starts[d] to Starts[d+1] of Candidates, at least one, in the light of
// row d of Context.
type Batch struct {
	Candidates Matrix // (all candidates, features)
	Context    Matrix // (decisions, context features)
	Starts     []int  // one more than there are decisions, from 0
}

// Len is the number of decisions.
func (b Batch) Len() int { return len(b.Starts) - 1 }

// ScorerShape says how large a Scorer is.
type ScorerShape struct {
	Features int   `json:"features"` // of a candidate, at least 1
	Context  int   `json:"context"`  // features of the decision, 0 or more
	Hidden   []int `json:"hidden"`   // widths of the layers, at least one
	// Prior is 1 + the index of the candidate feature that is added to the score
	// with a learned scale; 0 is none.
	Prior int `json:"prior,omitempty"`
	// PriorScale is that scale before anything is learned.
	PriorScale float32 `json:"prior_scale,omitempty"`
}

// Scorer is an actor and a critic for decisions among any number of
// candidates, with weights shared by all candidates (Zaheer et al., Deep Sets,
// NeurIPS 2017, for the critic):
//
//	embedding_k = layers(candidate_k, context)
//	score_k     = w . embedding_k + scale candidate_k[prior]
//	value       = mean + std head(context, mean_k embedding_k, max_k embedding_k)
//
// An action is drawn from the softmax of the scores. The network's share of
// the score starts at 0, so that an untrained Scorer prefers what the prior
// feature prefers, and is undecided without one.
//
// A Scorer that is not being trained may be read by many goroutines, each with
// a Pass of its own.
type Scorer struct {
	Shape ScorerShape

	candidate Param // (features, hidden[0])
	context   *Linear
	layers    []*Linear
	score     Param // (1, hidden[last])
	prior     Param // (1, 1)
	pooled    *Linear
	value     *Linear
	scale     []float32 // mean and std of the values
}

// NewScorer draws the layers from rng. It is an error if the shape has a size
// that is not positive or a prior that is no feature.
func NewScorer(shape ScorerShape, rng *rand.Rand) (*Scorer, error) {
	if shape.Features < 1 || shape.Context < 0 || len(shape.Hidden) == 0 {
		return nil, fmt.Errorf("a scorer of %d features, %d of context and %d layers: it needs at least 1 feature, 0 of context and 1 layer", shape.Features, shape.Context, len(shape.Hidden))
	}
	for i, h := range shape.Hidden {
		if h < 1 {
			return nil, fmt.Errorf("layer %d of a scorer has width %d: it needs at least 1", i, h)
		}
	}
	if shape.Prior < 0 || shape.Prior > shape.Features {
		return nil, fmt.Errorf("prior %d of a scorer of %d features: it is 0 for none or 1 + the index of a feature", shape.Prior, shape.Features)
	}
	first, last := shape.Hidden[0], shape.Hidden[len(shape.Hidden)-1]
	s := &Scorer{
		Shape:     shape,
		candidate: Param{Value: New(shape.Features, first), Grad: New(shape.Features, first), Decay: true},
		context:   NewLinear(shape.Context, first, rng),
		score:     Param{Value: New(1, last), Grad: New(1, last)},
		prior:     Param{Value: New(1, 1), Grad: New(1, 1)},
		scale:     []float32{0, 1},
	}
	spread := float32(1 / math.Sqrt(float64(shape.Features)))
	for i := range s.candidate.Value.Data {
		s.candidate.Value.Data[i] = float32(rng.NormFloat64()) * spread
	}
	for i, h := range shape.Hidden[1:] {
		s.layers = append(s.layers, NewLinear(shape.Hidden[i], h, rng))
	}
	s.prior.Value.Data[0] = shape.PriorScale
	s.pooled = NewLinear(shape.Context+2*last, last, rng)
	s.value = ZeroLinear(last, 1)
	return s, nil
}

// Params lists what is learned, always in the same order.
func (s *Scorer) Params() []*Param {
	params := append([]*Param{&s.candidate}, s.context.Params()...)
	for _, l := range s.layers {
		params = append(params, l.Params()...)
	}
	params = append(params, &s.score)
	if s.Shape.Prior > 0 {
		params = append(params, &s.prior)
	}
	params = append(params, s.pooled.Params()...)
	return append(params, s.value.Params()...)
}

// Twin shares the parameters of s and has gradients of its own, so that parts
// of a batch can go backwards side by side.
func (s *Scorer) Twin() *Scorer {
	param := func(p Param) Param {
		p.Grad = New(p.Value.Rows, p.Value.Cols)
		return p
	}
	linear := func(l *Linear) *Linear { return &Linear{W: param(l.W), B: param(l.B)} }
	t := *s
	t.candidate, t.score, t.prior = param(s.candidate), param(s.score), param(s.prior)
	t.context, t.pooled, t.value = linear(s.context), linear(s.pooled), linear(s.value)
	t.layers = nil
	for _, l := range s.layers {
		t.layers = append(t.layers, linear(l))
	}
	return &t
}

// Clone shares nothing with s; its gradients are 0.
func (s *Scorer) Clone() *Scorer {
	t := s.Twin()
	for _, p := range append(t.Params(), &t.prior) {
		p.Value.Data = append([]float32(nil), p.Value.Data...)
	}
	t.scale = append([]float32(nil), s.scale...)
	return t
}

// ValueScale is the mean and the standard deviation of values: the head
// learns (value - mean) / std.
func (s *Scorer) ValueScale() (mean, std float32) { return s.scale[0], s.scale[1] }

// Rescale changes the scale of the values and the head with it, so that every
// value stays what it was (van Hasselt et al., Learning values across many
// orders of magnitude, NeurIPS 2016, section 2.1). std must be positive.
func (s *Scorer) Rescale(mean, std float32) {
	ratio := s.scale[1] / std
	for i := range s.value.W.Value.Data {
		s.value.W.Value.Data[i] *= ratio
	}
	b := &s.value.B.Value.Data[0]
	*b = (s.scale[1]**b + s.scale[0] - mean) / std
	s.scale[0], s.scale[1] = mean, std
}

// Tensor is a named array of a network, shared with it: writing to Data loads
// the network.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// Tensors lists everything that a file must hold, always in the same order.
func (s *Scorer) Tensors() []Tensor {
	var all []Tensor
	add := func(name string, m Matrix) { all = append(all, Tensor{name, []int{m.Rows, m.Cols}, m.Data}) }
	linear := func(name string, l *Linear) {
		add(name+".w", l.W.Value)
		add(name+".b", l.B.Value)
	}
	add("candidate.w", s.candidate.Value)
	linear("context", s.context)
	for i, l := range s.layers {
		linear(fmt.Sprintf("layer%d", i+1), l)
	}
	add("score.w", s.score.Value)
	if s.Shape.Prior > 0 {
		add("prior.scale", s.prior.Value)
	}
	linear("pooled", s.pooled)
	linear("value", s.value)
	add("value.scale", Matrix{1, 2, s.scale})
	return all
}

// Numbers are the elements of all tensors, shared with them.
func (s *Scorer) Numbers() [][]float32 {
	var out [][]float32
	for _, t := range s.Tensors() {
		out = append(out, t.Data)
	}
	return out
}

// SetNumbers copies what Numbers of a network of the same shape gave. After an
// error, which is that of another shape, nothing was copied.
func (s *Scorer) SetNumbers(data [][]float32) error {
	tensors := s.Tensors()
	if len(data) != len(tensors) {
		return fmt.Errorf("%d tensors, want %d", len(data), len(tensors))
	}
	for i, t := range tensors {
		if len(data[i]) != len(t.Data) {
			return fmt.Errorf("tensor %s has %d elements, want %d", t.Name, len(data[i]), len(t.Data))
		}
	}
	for i, t := range tensors {
		copy(t.Data, data[i])
	}
	return nil
}
