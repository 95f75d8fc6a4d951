package metis

import (
	"context"
	"fmt"
	"math"

	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
	place_metis "github.com/cotenant/cotenant/place/metis"
	"github.com/cotenant/cotenant/rl"
)

// champion is what did best on the validation seeds so far.
type champion struct {
	nets   place_metis.Nets // empty before the first look
	score  float64
	update int
}

// validationSeed is the first of the seeds on which training is judged.
const validationSeed = 1 << 20

// ValidationSeeds are the first and the last of the seeds on which training is
// judged: as many of each world, in turn.
func (t *Trainer) ValidationSeeds() (first, last uint64) {
	n := len(t.Config.Worlds)
	first = uint64(validationSeed / n * n)
	return first, first + uint64(n*t.Config.Validation) - 1
}

// Judge plays the validation seeds by networks: for each world by how much,
// in the mean, they are above greedy, as a share of what greedy reaches.
func (t *Trainer) Judge(ctx context.Context, nets place_metis.Nets) ([]float64, error) {
	if t.rivals == nil {
		r, err := t.play(ctx, func(e *Episode) place.Policy { return baseline.Greedy{Model: e.Model} })
		if err != nil {
			return nil, fmt.Errorf("validation of greedy: %w", err)
		}
		t.rivals = r
	}
	ours, err := t.play(ctx, func(e *Episode) place.Policy { return place_metis.New(nets, e.Model, place_metis.Options{}) })
	if err != nil {
		return nil, fmt.Errorf("validation: %w", err)
	}
	above := make([]float64, len(t.Config.Worlds))
	for i, v := range ours {
		above[i%len(above)] += (v/t.rivals[i] - 1) / float64(t.Config.Validation)
	}
	return above, nil
}

// play runs a policy on the validation seeds, those of all worlds in turn.
func (t *Trainer) play(ctx context.Context, policy func(*Episode) place.Policy) ([]float64, error) {
	first, last := t.ValidationSeeds()
	seeds := make([]uint64, last-first+1)
	for i := range seeds {
		seeds[i] = first + uint64(i)
	}
	return rl.Rollouts(ctx, t.Config.Workers, seeds, func(_ int, seed uint64) (float64, error) {
		w := t.world(seed)
		e, err := w.Draw(seed)
		if err != nil {
			return 0, err
		}
		v, err := reached(&e, policy(&e), func() bool { return ctx.Err() != nil })
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case err != nil:
			return 0, fmt.Errorf("world %s, seed %d: %w", w.Name, seed, err)
		case math.IsNaN(v) || v <= 0:
			return 0, fmt.Errorf("world %s, seed %d: a mean performance of %g; its model must know every co-location", w.Name, seed, v)
		}
		return v, nil
	})
}

// Look judges the networks as they are now, averaged over the last updates,
// and keeps them if they are the best so far in the mean over worlds.
func (t *Trainer) Look(ctx context.Context) ([]float64, error) {
	above, err := t.Judge(ctx, t.steady)
	if err != nil {
		return nil, err
	}
	score := 0.0
	for _, a := range above {
		score += a / float64(len(above))
	}
	if t.best.nets.Node == nil || score > t.best.score {
		t.best = champion{clone(t.steady), score, t.Updates()}
	}
	t.looked = t.Updates()
	return above, nil
}

// Best are the networks that did best on the validation seeds, and after how
// many updates; before the first Look they are those of now.
func (t *Trainer) Best() (nets place_metis.Nets, update int) {
	if t.best.nets.Node == nil {
		return t.steady, t.Updates()
	}
	return t.best.nets, t.best.update
}
