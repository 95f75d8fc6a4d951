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
	// Updates in all (270), Episodes in each (32), on Workers goroutines (2).
	// Takes is how many of them play the same scene (8): what they all meet is
	// luck, and is taken from what each is credited with.
	Updates, Episodes, Takes, Workers int
	// Parts is how many updates pass from one of the sub-policy that chooses
	// parts to the next (4); the others are of the one that chooses nodes. The last
	// third is of the one that chooses whose turn it is.
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
	// Validation how many seeds of each world those are (64).
	Every, Validation int
	Rl                *rl.Options
}

func (c *Config) defaults() {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&c.Updates, 270)
	set(&c.Episodes, 32)
	set(&c.Takes, 8)
	set(&c.Workers, 2)
	set(&c.Parts, 4)
	set(&c.Shortlist, 16)
	set(&c.Every, 10)
	set(&c.Validation, 64)
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
	Config   Config
	learners [levels]*rl.Learner
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
	t := &Trainer{Config: c, looked: -1}
	for range c.Workers {
		t.memories = append(t.memories, map[interference.Model]*memory{})
	}
	nodeShape, partShape, turnShape := place_metis.Shapes(c.Prior)
	var updates [levels]int
	for n := range c.Updates {
		updates[c.due(n)]++
	}
	for l, shape := range [levels]num.ScorerShape{nodeShape, partShape, turnShape} {
		net, err := num.NewScorer(shape, num.Rand(c.Seed, uint64(l)+1))
		if err != nil {
			return nil, err
		}
		if t.learners[l], err = rl.NewLearner(net, c.options(updates[l]), c.Seed^uint64(l)<<62); err != nil {
			return nil, err
		}
	}
	t.steady = clone(t.nets())
	return t, nil
}

// level is a kind of decision, by a sub-policy of its own.
type level int

// The levels, in the order of the networks in Nets.
const (
	nodes level = iota
	parts
	turns
	levels
)

func (l level) String() string { return [...]string{"node", "part", "turn"}[l] }

func (t *Trainer) nets() place_metis.Nets {
	return place_metis.Nets{Node: t.learners[nodes].Net, Part: t.learners[parts].Net, Turn: t.learners[turns].Net}
}

func list(n place_metis.Nets) [levels]*num.Scorer { return [...]*num.Scorer{n.Node, n.Part, n.Turn} }

func clone(n place_metis.Nets) place_metis.Nets {
	return place_metis.Nets{Node: n.Node.Clone(), Part: n.Part.Clone(), Turn: n.Turn.Clone()}
}

// world is the one that an episode's seed draws from.
func (t *Trainer) world(seed uint64) *World {
	return &t.Config.Worlds[seed%uint64(len(t.Config.Worlds))]
}

// Updates is how many are made.
func (t *Trainer) Updates() (n int) {
	for _, l := range t.learners {
		n += l.Updates()
	}
	return n
}

// Done says whether all updates are made.
func (t *Trainer) Done() bool { return t.Updates() >= t.Config.Updates }

// due is the level that is updated after n updates.
func (c *Config) due(n int) level {
	switch {
	case n >= c.Updates-c.Updates/3:
		return turns
	case n%c.Parts == c.Parts-1:
		return parts
	}
	return nodes
}

// step rolls out episodes and updates the sub-policy of a level once, or that of
// the nodes where the level had nothing to decide; it says which.
func (t *Trainer) step(ctx context.Context, of level) (level, rl.Stats, error) {
	c := t.Config
	learner := t.learners[of]
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
		return t.rollout(worker, of, scene, take)
	})
	if err != nil {
		return of, rl.Stats{}, err
	}
	switch {
	case len(kept) == 0 && of != nodes:
		// Rules over several nodes leave no parts to choose among.
		return t.step(ctx, nodes)
	case len(kept) == 0:
		return of, rl.Stats{}, fmt.Errorf("no episode of the %d had a decision to learn from: give the worlds more tasks or nodes", len(scenes)*c.Takes)
	}
	stats, err := learner.Update(kept)
	if err == nil {
		t.settle()
	}
	return of, stats, err
}

// trainingSeed sets the seeds of training apart from the small ones, which are
// for validation and tests.
const trainingSeed = 1 << 48

// SeedRange is from which to which seed training draws its episodes.
func SeedRange() (from, to uint64) { return trainingSeed, trainingSeed<<1 - 1 }

// settle moves the averages towards the networks of now.
func (t *Trainer) settle() {
	const weight = 0.15
	for l, net := range list(t.steady) {
		now := t.learners[l].Net.Tensors()
		for i, x := range net.Tensors() {
			for k := range x.Data {
				x.Data[k] += weight * (now[i].Data[k] - x.Data[k])
			}
		}
	}
}
