package metis

import (
	"math"

	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/encode"
	place_metis "github.com/cotenant/cotenant/place/metis"
	"github.com/cotenant/cotenant/rl"
	"github.com/cotenant/cotenant/sim/services"
)

// explorer is the place/metis.Picker of training. One kind of level learns at
// a time; at the other the network decides. It notes a share of the decisions
// and explores in those only.
type explorer struct {
	sampler *rl.Sampler
	into    *rl.Trajectory
	of      level // that learns
	share   float64
	sum     float64 // of performance, as it was last told
	step    float64 // time that a placement takes
}

// Node implements place/metis.Picker.
func (x *explorer) Node(candidates num.Matrix, context, scores []float32) int {
	return x.pick(nodes, candidates, context, scores, encode.ServiceLead)
}

// Part implements place/metis.Picker.
func (x *explorer) Part(candidates num.Matrix, context, scores []float32) int {
	return x.pick(parts, candidates, context, scores, encode.PartLead)
}

// Turn implements place/metis.Picker.
func (x *explorer) Turn(candidates num.Matrix, context, scores []float32) int {
	return x.pick(turns, candidates, context, scores, encode.TurnLead)
}

func (x *explorer) pick(at level, candidates num.Matrix, context, scores []float32, prior int) int {
	if at != x.of {
		return num.Highest(scores)
	}
	if candidates.Rows == 1 {
		return 0
	}
	if x.share < 1 && x.sampler.Rand.Float64() >= x.share {
		return num.Highest(scores)
	}
	expert := 0
	for k := range candidates.Rows {
		if candidates.Row(k)[prior] > candidates.Row(expert)[prior] {
			expert = k
		}
	}
	c := x.sampler.Choose(candidates, context, expert)
	x.into.Add(candidates, context, c)
	return c.Index
}

// Placed implements place/metis.Picker.
func (x *explorer) Placed(gain float64) {
	x.into.Gain(gain)
	x.into.Flow(0, x.step)
	x.sum += gain
}

// rollout plays an episode with a policy that explores and notes what came of
// it.
//
// Rewards are changes of the sum of performances, as they happen. In a batch
// they add up to what was reached. In a stream, where the worth of a reward
// falls to 1/e in a mean lifetime, their discounted sum is that of the
// performance over time but for a constant: with the sum as the potential of a
// state, shaping (Ng, Harada, Russell: Policy invariance under reward
// transformations, ICML 1999) cancels what flows between events.
func (t *Trainer) rollout(worker int, of level, seed, take uint64) (*rl.Trajectory, error) {
	e, err := t.world(seed).Draw(seed)
	if err != nil {
		return nil, err
	}
	into := rl.NewTrajectory(1)
	learner, divide := t.learners[of], place_metis.Flat
	if of != nodes {
		divide = place_metis.Hierarchy
	}
	x := &explorer{
		sampler: &rl.Sampler{Net: learner.Net, Rand: num.Rand(seed, 3, take), Epsilon: t.Config.Explore.At(learner.Updates())},
		into:    into, of: of, share: 1,
	}
	m := t.memory(worker, e.Model)
	o := place_metis.Options{Divide: divide, Picker: x, Shortlist: t.Config.Shortlist, Memory: &m.values}
	if e.Stream == nil {
		x.step = 1
		p := place_metis.New(t.nets(), e.Model, o)
		if _, err := p.Place(e.Batch); err != nil {
			return nil, err
		}
		into.End()
		return into, nil
	}
	into.Discount = rl.Discount(math.Exp(-1))
	x.share = t.Config.Noted
	c := *e.Stream
	c.Policy, c.Memory = place_metis.New(t.nets(), e.Model, o), &m.truth
	life := c.Lifetime.Seconds()
	c.Watch = func(s services.Stretch) {
		into.Gain(s.Sum - x.sum)
		x.sum = s.Sum
		into.Flow(0, (s.To-s.From).Seconds()/life)
	}
	if _, err := services.Run(c); err != nil {
		return nil, err
	}
	into.End()
	return into, nil
}

// memory is what a worker keeps of a model from episode to episode.
type memory struct {
	values place.Memory
	truth  services.Memory
}

// models is of how many models a worker keeps a memory.
const models = 8

func (t *Trainer) memory(worker int, m interference.Model) *memory {
	all := t.memories[worker]
	if all[m] == nil {
		if len(all) >= models {
			clear(all)
		}
		all[m] = &memory{}
	}
	return all[m]
}

// reached is what a policy makes of an episode: the mean performance.
func reached(e *Episode, p place.Policy, stop func() bool) (float64, error) {
	if e.Stream != nil {
		c := *e.Stream
		c.Policy, c.Stop = p, stop
		r, err := services.Run(c)
		return r.Performance, err
	}
	d, err := p.Place(e.Batch)
	if err != nil {
		return 0, err
	}
	v, err := place.Evaluate(e.Batch, d, e.Model)
	return v.Value, err
}
