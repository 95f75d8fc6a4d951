package metis

import (
	"context"
	"errors"
	"fmt"

	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/internal/num"
	place_metis "github.com/cotenant/cotenant/place/metis"
	"github.com/cotenant/cotenant/rl"
)

// Config of a Trainer. Zero values mean the defaults named.
type Config struct {
	Worlds []World
	Seed   uint64
	// Updates in all (120), Episodes in each (32), on Workers goroutines (2).
	// Takes is how many of them play the same scene (8): what they all meet is
	// luck, and is taken from what each is credited with.
	Updates, Episodes, Takes, Workers int
	// Parts is how many updates pass from one of the sub-policy that chooses
	// parts to the next (4); the others are of the one that chooses nodes.
	Parts int
	// Prior is the scale at which the untrained network follows greedy (20).
	Prior float32
	// Noted is the share of decisions in streams to learn from (0.5).
	Noted float64
	// Shortlist is place/metis.Options.Shortlist in training (16).
	Shortlist int
	// Explore is the probability that greedy decides; Forget leaves out the
	// replay.
	Explore rl.Schedule
	Forget  bool
	// Every is how many updates pass between looks at the validation seeds (10),
	// Validation how many seeds of each world those are (24).
	Every, Validation int
	Rl                *rl.Options
}

func (c *Config) defaults() {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&c.Updates, 120)
	set(&c.Episodes, 32)
	set(&c.Takes, 8)
	set(&c.Workers, 2)
	set(&c.Parts, 4)
	set(&c.Shortlist, 16)
	set(&c.Every, 10)
	set(&c.Validation, 24)
	if c.Prior == 0 {
		c.Prior = 20
	}
	if c.Noted == 0 {
		c.Noted = 0.5
	}
}

// options are those of a learner with so many updates to make.
func (c *Config) options(updates int) rl.Options {
	if c.Rl != nil {
		return *c.Rl
	}
	o := rl.DefaultOptions()
	o.Workers = c.Workers
	o.Minibatch = 512
	o.Entropy = rl.Constant(0.001)
	o.Rate = rl.Schedule{From: 2e-3, To: 2e-4, Steps: updates}
	o.Trace = rl.Trace{Decision: 0.96}
	if !c.Forget {
		o.Remember = 20_000
		o.Good = rl.Constant(0.05)
	}
	return o
}

// Trainer is a training run.
type Trainer struct {
	Config     Config
	node, part *rl.Learner
	// steady are averages over the last updates, which jump about less.
	steady   place_metis.Nets
	memories []map[interference.Model]*memory // by worker
	rivals   []float64                        // what greedy reaches on the validation seeds
	best     champion
	looked   int // the update of the last Look, -1 for none
}

// NewTrainer begins a training run.
func NewTrainer(c Config) (*Trainer, error) {
	c.defaults()
	if len(c.Worlds) == 0 {
		return nil, errors.New("no world to train in")
	}
	nodeShape, partShape := place_metis.Shapes(c.Prior)
	node, err := num.NewScorer(nodeShape, num.Rand(c.Seed, 1))
	if err != nil {
		return nil, err
	}
	part, err := num.NewScorer(partShape, num.Rand(c.Seed, 2))
	if err != nil {
		return nil, err
	}
	t := &Trainer{Config: c, looked: -1, steady: place_metis.Nets{Node: node.Clone(), Part: part.Clone()}}
	for range c.Workers {
		t.memories = append(t.memories, map[interference.Model]*memory{})
	}
	forParts := c.Updates / c.Parts
	if t.node, err = rl.NewLearner(node, c.options(c.Updates-forParts), c.Seed); err != nil {
		return nil, err
	}
	t.part, err = rl.NewLearner(part, c.options(forParts), c.Seed^1<<63)
	return t, err
}

func (t *Trainer) nets() place_metis.Nets {
	return place_metis.Nets{Node: t.node.Net, Part: t.part.Net}
}

// world is the one that an episode's seed draws from.
func (t *Trainer) world(seed uint64) *World {
	return &t.Config.Worlds[seed%uint64(len(t.Config.Worlds))]
}

// Updates is how many are made.
func (t *Trainer) Updates() int { return t.node.Updates() + t.part.Updates() }

// Done says whether all updates are made.
func (t *Trainer) Done() bool { return t.Updates() >= t.Config.Updates }

// Step rolls out episodes and updates a sub-policy once.
func (t *Trainer) Step(ctx context.Context) (rl.Stats, error) {
	return t.step(ctx, t.Updates()%t.Config.Parts == t.Config.Parts-1)
}

func (t *Trainer) step(ctx context.Context, parts bool) (rl.Stats, error) {
	c := t.Config
	learner := t.node
	if parts {
		learner = t.part
	}
	rng := learner.Rand(1)
	scenes := make([]uint64, max(1, c.Episodes/c.Takes))
	// All of one world: advantages are scaled by their spread in an update.
	n := uint64(len(c.Worlds))
	world := rng.Uint64() % n
	for i := range scenes {
		seed := trainingSeed | rng.Uint64()>>16
		scenes[i] = seed - seed%n + world
	}
	kept, err := rl.Takes(ctx, c.Workers, scenes, c.Takes, func(worker int, scene, take uint64) (*rl.Trajectory, error) {
		return t.rollout(worker, parts, scene, take)
	})
	if err != nil {
		return rl.Stats{}, err
	}
	switch {
	case len(kept) == 0 && parts:
		// Rules over several nodes leave no parts to choose among.
		return t.step(ctx, false)
	case len(kept) == 0:
		return rl.Stats{}, fmt.Errorf("no episode of the %d had a decision to learn from: give the worlds more tasks or nodes", len(scenes)*c.Takes)
	}
	stats, err := learner.Update(kept)
	if err == nil {
		t.settle()
	}
	return stats, err
}

// trainingSeed sets the seeds of training apart from the small ones, which are
// for validation and tests.
const trainingSeed = 1 << 48

// SeedRange is from which to which seed training draws its episodes.
func SeedRange() (from, to uint64) { return trainingSeed, trainingSeed<<1 - 1 }

// settle moves the averages towards the networks of now.
func (t *Trainer) settle() {
	const weight = 0.15
	for _, pair := range [][2]*num.Scorer{{t.steady.Node, t.node.Net}, {t.steady.Part, t.part.Net}} {
		now := pair[1].Tensors()
		for i, x := range pair[0].Tensors() {
			for k := range x.Data {
				x.Data[k] += weight * (now[i].Data[k] - x.Data[k])
			}
		}
	}
}
