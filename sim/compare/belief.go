package compare

import (
	"fmt"
	"math"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
)

// Belief is what policies that learn may know before a run.
type Belief struct {
	// Observed is the share of the co-locations in World.Samples whose speeds are
	// shown to them, 0 to 1, drawn by Seed. Rates alone and what does not fit are
	// always known.
	Observed float64
	Seed     uint64
	// Kind of the model that is fitted to what was observed, and which that
	// overrides; "" means neural.
	Kind string
	// Steps of training of a neural model; 0 means its default.
	Steps    int
	Parallel func(n int, f func(i int))
}

// Fit is the model that a policy believes.
func (w *World) Fit(b Belief) (interference.Model, error) {
	seen, _, err := w.Split(b)
	if err != nil {
		return nil, err
	}
	if b.Kind == "" {
		b.Kind = interference.KindNeural
	}
	return interference.Fit(b.Kind, seen, interference.Options{Seed: b.Seed, Metrics: rateOnly, Steps: b.Steps, Parallel: b.Parallel})
}

// Split parts the samples into those observed and those hidden.
func (w *World) Split(b Belief) (seen, hidden []history.Sample, err error) {
	if !(b.Observed >= 0 && b.Observed <= 1) {
		return nil, nil, fmt.Errorf("observed %g: a share of the measured co-locations, 0 to 1", b.Observed)
	}
	singles, shared := 0, 0
	met := map[string]bool{}
	for _, s := range w.Samples {
		key := s.Class + "\x00" + s.Colocation.Key()
		if met[key] {
			continue
		}
		met[key] = true
		if s.Colocation.Alone() {
			singles++
		} else {
			shared++
		}
	}
	return interference.Split(w.Samples, singles+int(math.Round(b.Observed*float64(shared))), b.Seed)
}
