package harmony

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place/encode"
	place_harmony "github.com/cotenant/cotenant/place/harmony"
	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/rl"
)

// Config of a Trainer. Zero values mean the defaults named.
type Config struct {
	Worlds []World
	Seed   uint64
	// Updates in all (300), Episodes in each (32), on Workers goroutines (2).
	// Takes is how many of them play the same scene (8): what they all meet is
	// luck, and is taken from what each is credited with.
	Updates, Episodes, Takes, Workers int
	// Warm is how many steps imitate greedy-wait before the updates (0: the prior
	// of the network does already what it does).
	Warm int
	// Prior is the scale at which the untrained network follows greedy-wait (20).
	Prior float32
	// Horizon is the time in which the worth of a reward falls to 1/e, in units
	// of the mean work of an episode's jobs (3).
	Horizon float64
	Reward  Reward // Completion
	// Noted is the share of decisions to learn from (0.25).
	Noted float64
	// Explore is the probability that an expert decides; Unaware leaves the
	// experts out (Explore is 0 then), and Forget the replay.
	Explore         rl.Schedule
	Unaware, Forget bool
	// MaxWait and Threshold (encode.DefaultThreshold of the first world) are handed to the policy.
	MaxWait   time.Duration
	Threshold encode.Threshold
	// Every is how many updates pass between looks at the validation seeds (10),
	// Validation how many seeds of each world those are (16).
	Every, Validation int
	Rl                *rl.Options
}

func (c *Config) defaults() {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&c.Updates, 300)
	set(&c.Episodes, 32)
	set(&c.Takes, 8)
	set(&c.Workers, 2)
	set(&c.Every, 10)
	set(&c.Validation, 16)
	if c.Prior == 0 {
		c.Prior = 20
	}
	if c.Threshold == (encode.Threshold{}) {
		c.Threshold = encode.DefaultThreshold(c.Worlds[0].Speeds.Scope())
	}
	if c.Horizon == 0 {
		c.Horizon = 3
	}
	if c.Reward == "" {
		c.Reward = Completion
	}
	if c.Noted == 0 {
		c.Noted = 0.25
	}
	switch {
	case c.Unaware:
		// greedy-wait stays an expert, for imitation: it is not to decide.
		c.Explore = rl.Schedule{}
	case c.Explore == (rl.Schedule{}):
		c.Explore = rl.Schedule{From: 0.1, To: 0.01, Steps: c.Updates}
	}
}

// Trainer is a training run.
type Trainer struct {
	Config  Config
	learner *rl.Learner
	forks   [][]*jobs.Speeds // by worker and world: beliefs of the policy
	truths  [][]*jobs.Speeds // and of the learned world
	rivals  map[string][]float64
	best    champion
	looked  int // the update of the last Look, -1 for none
}

// NewTrainer begins a training run.
func NewTrainer(c Config) (*Trainer, error) {
	if len(c.Worlds) == 0 {
		return nil, fmt.Errorf("no world to train in")
	}
	c.defaults()
	net, err := num.NewScorer(place_harmony.Shape(c.Prior), num.Rand(c.Seed, 1))
	if err != nil {
		return nil, err
	}
	o := rl.DefaultOptions()
	o.Workers = c.Workers
	o.Minibatch = 256
	o.Entropy = rl.Constant(0.002)
	o.Rate = rl.Schedule{From: 2e-3, To: 2e-4, Steps: c.Updates}
	// Many decisions fall on one instant, so advantages look ahead by time.
	o.Trace = rl.Trace{Decision: 1, Second: math.Exp(-2)}
	if !c.Forget {
		o.Remember = 50_000
		o.Good = rl.Constant(0.1)
	}
	if c.Rl != nil {
		o = *c.Rl
	}
	l, err := rl.NewLearner(net, o, c.Seed)
	if err != nil {
		return nil, err
	}
	t := &Trainer{Config: c, learner: l, looked: -1}
	for range c.Workers {
		var f, g []*jobs.Speeds
		for i := range c.Worlds {
			f = append(f, c.Worlds[i].Speeds.Fork())
			g = append(g, c.Worlds[i].Speeds.Fork())
		}
		t.forks, t.truths = append(t.forks, f), append(t.truths, g)
	}
	return t, nil
}

func (t *Trainer) speeds(worker int, w *World) *jobs.Speeds { return t.forks[worker][t.index(w)] }
func (t *Trainer) truth(worker int, w *World) *jobs.Speeds  { return t.truths[worker][t.index(w)] }

func (t *Trainer) index(w *World) int {
	for i := range t.Config.Worlds {
		if w == &t.Config.Worlds[i] {
			return i
		}
	}
	panic("harmony: a world of another trainer")
}

// Done says whether all updates are made.
func (t *Trainer) Done() bool { return t.learner.Updates() >= t.Config.Updates }

// Step rolls out episodes and updates the network once.
func (t *Trainer) Step(ctx context.Context) (rl.Stats, error) {
	c := t.Config
	imitate := t.learner.Imitations() < c.Warm
	rng := t.learner.Rand(1)
	if imitate {
		rng = t.learner.Rand(2, uint64(t.learner.Imitations()))
	}
	scenes := make([]uint64, max(1, c.Episodes/c.Takes))
	for i := range scenes {
		scenes[i] = rng.Uint64()>>1 | 1<<40 // apart from the small ones, which are for validation and tests
	}
	kept, err := rl.Takes(ctx, c.Workers, scenes, c.Takes, func(worker int, scene, take uint64) (*rl.Trajectory, error) {
		return t.rollout(worker, &t.Config.Worlds[scene%uint64(len(c.Worlds))], scene, take)
	})
	if err != nil {
		return rl.Stats{}, err
	}
	if len(kept) == 0 {
		return rl.Stats{}, nil
	}
	if imitate {
		return t.learner.Imitate(kept)
	}
	return t.learner.Update(kept)
}

// validationSeed is the first of the seeds on which training is judged.
const validationSeed = 1 << 20

// Validate is the mean JCT of a network over that of a rival by rule: the
// geometric mean over validation seeds and worlds.
func (t *Trainer) Validate(ctx context.Context, net *num.Scorer, rival string, values map[string]float64) (float64, error) {
	ratios, err := t.Judge(ctx, net, Rival{rival, values})
	if err != nil {
		return 0, err
	}
	return ratios[0], nil
}

// Net is the network as it is now.
func (t *Trainer) Net() *num.Scorer { return t.learner.Net }
