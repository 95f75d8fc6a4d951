package harmony

import (
	"context"
	"fmt"
	"math"

	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place"
	place_harmony "github.com/cotenant/cotenant/place/harmony"
	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/rl"
	"github.com/cotenant/cotenant/sim"
)

// Rival is a policy by rule, as jobs.New makes it, with its parameters.
type Rival struct {
	Name   string
	Values map[string]float64
}

// Rivals are those that training is watched against.
var Rivals = []Rival{{Name: "spread"}, {Name: "greedy-wait"}}

// champion is the network that did best on the validation seeds so far.
type champion struct {
	net    *num.Scorer // nil before the first look
	score  float64
	update int
}

// Judge plays the validation seeds of every world by a network: for each rival
// the geometric mean of its mean JCT over the rival's.
func (t *Trainer) Judge(ctx context.Context, net *num.Scorer, rivals ...Rival) ([]float64, error) {
	ours, err := t.play(ctx, func(speeds *jobs.Speeds) (place.Policy, error) {
		return place_harmony.New(net, speeds, place_harmony.Options{MaxWait: t.Config.MaxWait, Threshold: t.Config.Threshold}), nil
	})
	if err != nil {
		return nil, err
	}
	ratios := make([]float64, len(rivals))
	for i, r := range rivals {
		theirs, err := t.rival(ctx, r)
		if err != nil {
			return nil, err
		}
		sum := 0.0
		for k := range ours {
			sum += ours[k] - theirs[k]
		}
		ratios[i] = math.Exp(sum / float64(len(ours)))
	}
	return ratios, nil
}

// rival plays the validation seeds by a rule, once.
func (t *Trainer) rival(ctx context.Context, r Rival) ([]float64, error) {
	key := fmt.Sprint(r.Name, r.Values)
	if known, ok := t.rivals[key]; ok {
		return known, nil
	}
	theirs, err := t.play(ctx, func(speeds *jobs.Speeds) (place.Policy, error) {
		return jobs.New(r.Name, jobs.Settings{Speeds: speeds, Values: r.Values})
	})
	if err != nil {
		return nil, fmt.Errorf("validation of %s: %w", r.Name, err)
	}
	if t.rivals == nil {
		t.rivals = map[string][]float64{}
	}
	t.rivals[key] = theirs
	return theirs, nil
}

// play runs a policy on the validation seeds of every world: the logarithms of
// mean JCT.
func (t *Trainer) play(ctx context.Context, policy func(*jobs.Speeds) (place.Policy, error)) ([]float64, error) {
	const low = 1<<32 - 1
	var seeds []uint64
	for w := range t.Config.Worlds {
		for i := range t.Config.Validation {
			seeds = append(seeds, uint64(w)<<32|uint64(validationSeed+i))
		}
	}
	return rl.Rollouts(ctx, t.Config.Workers, seeds, func(worker int, seed uint64) (float64, error) {
		w := &t.Config.Worlds[seed>>32]
		e, err := w.Draw(seed & low)
		if err != nil {
			return 0, err
		}
		p, err := policy(t.speeds(worker, w))
		if err != nil {
			return 0, err
		}
		c := t.simulation(worker, w, e, p)
		c.Stop = func() bool { return ctx.Err() != nil }
		r, err := sim.Run(c)
		switch {
		case err != nil:
			return 0, err
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case len(r.Unfinished) > 0:
			return 0, fmt.Errorf("world %s, validation seed %d: %d jobs are left unfinished: %s", w.Name, seed&low, len(r.Unfinished), r.Why)
		}
		return math.Log(r.MeanJCT), nil
	})
}

// Look judges the network as it is now by Rivals, and keeps it if it is the
// best so far against the last of them.
func (t *Trainer) Look(ctx context.Context) ([]float64, error) {
	ratios, err := t.Judge(ctx, t.learner.Net, Rivals...)
	if err != nil {
		return nil, err
	}
	if score := ratios[len(ratios)-1]; t.best.net == nil || score < t.best.score {
		t.best = champion{t.learner.Net.Clone(), score, t.learner.Updates()}
	}
	t.looked = t.learner.Updates()
	return ratios, nil
}

// Best is the network that did best on the validation seeds, and after how
// many updates; before the first Look it is that of now.
func (t *Trainer) Best() (net *num.Scorer, update int) {
	if t.best.net == nil {
		return t.learner.Net, t.learner.Updates()
	}
	return t.best.net, t.best.update
}

// Updates is how many are made.
func (t *Trainer) Updates() int { return t.learner.Updates() }
