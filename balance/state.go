package balance

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/cotenant/cotenant/internal/num"
)

// stateVersion grows when older states can't be read any more.
const stateVersion = 1

// state is all of a Balancer.
type state struct {
	Version    int                `json:"version"`
	Options    Options            `json:"options"`
	Workers    []Worker           `json:"workers"`
	Generation int64              `json:"generation"`
	Sizes      []int              `json:"sizes,omitempty"`
	Decided    []Shares           `json:"decided,omitempty"`
	Fresh      bool               `json:"fresh,omitempty"`
	Untrained  bool               `json:"untrained,omitempty"`
	Known      map[string]*memory `json:"known"`
	Learning   *byGPU             `json:"learning,omitempty"`
	Forecaster *forecaster        `json:"forecaster"`
}

// State is all that the Balancer knows, as JSON. The same Balancer gives the
// same bytes.
func (b *Balancer) State() ([]byte, error) { return b.Snapshot()() }

// Snapshot copies what changes, and gives the function that makes State of it:
// the text of a thousand workers' curves takes long, and the Balancer may be
// used meanwhile.
func (b *Balancer) Snapshot() func() ([]byte, error) {
	b.forecaster.complete()
	s := state{
		Version: stateVersion, Options: b.options, Workers: b.workers, Generation: b.generation, Sizes: b.sizes, Decided: slices.Clone(b.decided),
		Fresh: b.fresh, Untrained: b.untrained, Known: make(map[string]*memory, len(b.known)), Forecaster: &forecaster{Seed: b.forecaster.Seed},
	}
	for name, m := range b.known {
		s.Known[name] = m.clone()
	}
	if g, ok := b.allocator.(*byGPU); ok {
		s.Learning = &byGPU{Since: g.Since, Spent: g.Spent, Again: g.Again, Tried: g.Tried, Studied: g.Studied, Bold: g.Bold}
	}
	if n := b.forecaster.NARX; n != nil {
		s.Forecaster.NARX = &narx{Steps: n.Steps, Weights: weightsOf(n.net.params()), Moments: momentsOf(n.net.adam)}
	}
	if e := b.forecaster.RNN; e != nil {
		s.Forecaster.RNN = &elman{Steps: e.Steps, Weights: weightsOf(e.params()), Moments: momentsOf(e.adam)}
	}
	return func() ([]byte, error) {
		text, err := json.Marshal(s)
		if err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
		return text, nil
	}
}

// clone is a copy that learning leaves alone: a curve's Mean and its like are
// replaced, never changed.
func (m *memory) clone() *memory {
	c := *m
	c.Rows = slices.Clone(m.Rows)
	c.Curve.Cells, c.Curve.Old, c.Curve.Recent = slices.Clone(m.Curve.Cells), slices.Clone(m.Curve.Old), slices.Clone(m.Curve.Recent)
	return &c
}

// Restore makes the Balancer of a State: it decides what the other would have
// decided, to the byte. It is an error if the bytes are no sound State.
func Restore(text []byte) (*Balancer, error) {
	var s state
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	if s.Version != stateVersion {
		return nil, fmt.Errorf("state: %w: version: %d, this program reads %d", ErrInvalid, s.Version, stateVersion)
	}
	s.Options.Last = nil
	b, err := New(s.Workers, s.Options)
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	bad := func(field string, value any) error {
		return fmt.Errorf("state: %w: %s: %v", ErrInvalid, field, value)
	}
	if s.Generation < 1 {
		return nil, bad("generation", s.Generation)
	}
	b.generation, b.fresh, b.untrained = s.Generation, s.Fresh, s.Untrained
	if s.Sizes != nil {
		if !holds(b.limits, s.Sizes, b.options.GlobalBatch) {
			return nil, bad("sizes", s.Sizes)
		}
		b.sizes = s.Sizes
	}
	if len(s.Decided) > maxDecided || s.Sizes == nil && len(s.Decided) > 0 {
		return nil, bad("decided", len(s.Decided))
	}
	for i, d := range s.Decided {
		if d.Generation != s.Generation || !holds(b.limits, d.BatchSizes, b.options.GlobalBatch) || i > 0 && d.Iteration <= s.Decided[i-1].Iteration {
			return nil, bad("decided", d)
		}
	}
	b.decided = s.Decided
	if len(s.Known) > 2*len(b.workers)+maxWorkers {
		return nil, bad("known", len(s.Known))
	}
	for name, m := range s.Known {
		if m == nil {
			return nil, bad("known", short(name))
		}
		if err := m.check(b.allocator); err != nil {
			return nil, fmt.Errorf("state: worker %q: %w", short(name), err)
		}
		b.known[name] = m
	}
	for i, w := range b.workers {
		b.forecaster.all[i] = b.known[w.Name]
	}
	if g, ok := b.allocator.(*byGPU); ok {
		if s.Learning == nil || s.Learning.Since < 0 || math.IsNaN(s.Learning.Spent) {
			return nil, bad("learning", s.Learning)
		}
		if s.Learning.Bold != nil && !holds(b.limits, s.Learning.Bold, b.options.GlobalBatch) {
			return nil, bad("bold", len(s.Learning.Bold))
		}
		*g = *s.Learning
	}
	if s.Forecaster == nil {
		return nil, bad("forecaster", "missing")
	}
	if err := b.forecaster.restore(s.Forecaster); err != nil {
		return nil, fmt.Errorf("state: forecaster: %w", err)
	}
	return b, nil
}

func (f *forecaster) restore(s *forecaster) error {
	if n := f.NARX; n != nil {
		if s.NARX == nil {
			return fmt.Errorf("%w: narx: missing", ErrInvalid)
		}
		n.Steps = s.NARX.Steps
		if err := restoreNet(n.net.params(), n.net.adam, s.NARX.Weights, s.NARX.Moments); err != nil {
			return fmt.Errorf("narx: %w", err)
		}
	}
	if e := f.RNN; e != nil {
		if s.RNN == nil {
			return fmt.Errorf("%w: rnn: missing", ErrInvalid)
		}
		e.Steps = s.RNN.Steps
		if err := restoreNet(e.params(), e.adam, s.RNN.Weights, s.RNN.Moments); err != nil {
			return fmt.Errorf("rnn: %w", err)
		}
	}
	return nil
}

func weightsOf(params []*num.Param) [][]float32 {
	out := make([][]float32, len(params))
	for i, p := range params {
		out[i] = slices.Clone(p.Value.Data)
	}
	return out
}

func momentsOf(a *num.Adam) num.AdamState {
	s := a.State()
	s.First, s.Second = slices.Clone(s.First), slices.Clone(s.Second)
	for k := range s.First {
		s.First[k], s.Second[k] = slices.Clone(s.First[k]), slices.Clone(s.Second[k])
	}
	return s
}

func restoreNet(params []*num.Param, adam *num.Adam, weights [][]float32, moments num.AdamState) error {
	if len(weights) != len(params) {
		return fmt.Errorf("%w: weights of %d layers, want %d", ErrInvalid, len(weights), len(params))
	}
	for i, p := range params {
		if len(weights[i]) != len(p.Value.Data) {
			return fmt.Errorf("%w: %d weights in layer %d, want %d", ErrInvalid, len(weights[i]), i, len(p.Value.Data))
		}
		copy(p.Value.Data, weights[i])
	}
	return adam.SetState(moments)
}

// check refuses a memory that no sequence of reports leaves behind, as far as
// the code relies on it.
func (m *memory) check(a allocator) error {
	bad := func(field string, value any) error { return fmt.Errorf("%w: %s: %v", ErrInvalid, field, value) }
	switch {
	case m.Iteration < -1:
		return bad("iteration", m.Iteration)
	case len(m.Rows) > maxRows:
		return bad("rows", len(m.Rows))
	case m.Fits < 0 || m.Fits > maxBatch:
		return bad("fits", m.Fits)
	case m.Burst < 0 || m.Burst > maxBatch:
		return bad("burst", m.Burst)
	case m.Burst > 0 && m.Fits >= m.Burst:
		return bad("fits", m.Fits)
	case !(m.Upload >= 0 && m.Upload <= maxDuration.Seconds()):
		return bad("upload", m.Upload)
	}
	for _, r := range m.Rows {
		// Within the logarithms of what a checked report can hold.
		if !(math.Abs(r.Speed) <= 60) || !(r.CPU >= 0 && r.CPU <= maxUse) || !(r.Memory >= 0 && r.Memory <= maxUse) {
			return bad("rows", r)
		}
	}
	for p, f := range m.Forecasts {
		if !(math.Abs(f) <= 62) || !(m.Errors[p] >= 0) {
			return bad("forecasts", f)
		}
	}
	_, learns := a.(*byGPU)
	return m.Curve.check(learns)
}

func (c *curve) check(learns bool) error {
	bad := func(field string, value any) error { return fmt.Errorf("%w: curve: %s: %v", ErrInvalid, field, value) }
	n := len(c.Mean)
	switch {
	case !learns && (n > 0 || len(c.Cells) > 0):
		return bad("cells", "of an allocator that learns none")
	case len(c.SD) != n || len(c.Step) != n || len(c.Told) != n || n > 2*maxGrains:
		return bad("mean", n)
	case n > 0 && (c.Lo < 1 || c.Lo > maxBatch || c.Grain < 1 || c.Grain > maxBatch):
		return bad("lo", c.Lo)
	case !(math.Abs(c.Shift) <= 200):
		return bad("shift", c.Shift)
	case len(c.Recent) > maxRecent || c.UpRun < 0 || c.DownRun < 0:
		return bad("recent", len(c.Recent))
	}
	for _, cells := range [][]cell{c.Cells, c.Old} {
		last := 0
		for _, m := range cells {
			if m.Size <= last {
				return bad("cells", m)
			}
			last = m.Size
		}
	}
	for _, m := range slices.Concat(c.Cells, c.Old, c.Recent) {
		if m.Size < 1 || m.Size > maxBatch || !(m.N >= 1 && m.N <= maxN) || !(math.Abs(m.Mean) <= 60) {
			return bad("cells", m)
		}
	}
	for k, v := range c.Mean {
		if !(math.Abs(v) <= 1e3) || !(c.SD[k] >= 0 && c.SD[k] <= 1e3) || !(c.Told[k] >= 0 && c.Told[k] <= 1) || !(math.Abs(c.Step[k]) <= 1e3) {
			return bad("mean", v)
		}
	}
	for _, v := range []float64{c.Up, c.Down, c.Squares, c.Free} {
		if !(v >= 0 && v <= 1e9) {
			return bad("sums", v)
		}
	}
	return nil
}
