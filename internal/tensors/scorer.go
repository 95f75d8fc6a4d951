package tensors

import (
	"fmt"
	"io"
	"math"

	"github.com/cotenant/cotenant/internal/num"
)

// MaxPolicy is what a policy file stays below, in bytes, so that a Kubernetes
// ConfigMap (1 MiB with its base64) holds it.
const MaxPolicy = 700_000

// maxLayers bounds the layers of a network that is read.
const maxLayers = 8

// SavePolicy is Save, of a file that is an error where it is larger than
// MaxPolicy: then nothing is written.
func (w *Writer) SavePolicy(out io.Writer, f Format, metadata map[string]string) error {
	var size counter
	if err := w.Save(&size, f, metadata); err != nil {
		return err
	}
	if size > MaxPolicy {
		return fmt.Errorf("policy to save: %d bytes, more than the %d that a ConfigMap holds; use smaller layers or shorter notes", size, MaxPolicy)
	}
	return w.Save(out, f, metadata)
}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// Scorer puts the tensors of a network, each name after the prefix. It is an
// error where a number is not finite.
func (w *Writer) Scorer(prefix string, s *num.Scorer) error {
	for _, x := range s.Tensors() {
		for i, v := range x.Data {
			if v := float64(v); math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("policy to save: element %d of tensor %s is %g", i, prefix+x.Name, v)
			}
		}
		w.Floats(prefix+x.Name, x.Data, x.Shape...)
	}
	return nil
}

// Scorer reads the network of a shape that Writer.Scorer wrote. A shape that
// no file of MaxPolicy holds is an error before memory is taken for it.
func (t *Reader) Scorer(prefix string, shape num.ScorerShape) (*num.Scorer, error) {
	if n := len(shape.Hidden); n > maxLayers || shape.Features > MaxPolicy || shape.Context > MaxPolicy {
		return nil, fmt.Errorf("shape %+v is none of a policy; %s", shape, t.format.Again)
	}
	size, in := 0, shape.Features+shape.Context
	for _, h := range shape.Hidden {
		if h < 1 || h > MaxPolicy/4 {
			return nil, fmt.Errorf("shape %+v: a layer of width %d; %s", shape, h, t.format.Again)
		}
		size += in * h
		in = h
	}
	size += (shape.Context + 2*in) * in // the critic
	if 4*size > MaxPolicy {
		return nil, fmt.Errorf("shape %+v: its weights are more than %d bytes; %s", shape, MaxPolicy, t.format.Again)
	}
	net, err := num.NewScorer(shape, num.Rand(0))
	if err != nil {
		return nil, err
	}
	for _, x := range net.Tensors() {
		data, err := t.Floats(prefix+x.Name, false, x.Shape...)
		if err != nil {
			return nil, err
		}
		copy(x.Data, data)
	}
	if _, std := net.ValueScale(); !(std > 0) {
		return nil, fmt.Errorf("the scale of values %g is not above 0; %s", std, t.format.Again)
	}
	return net, nil
}
