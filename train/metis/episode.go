package metis

import (
	"math"

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
	parts   bool // the level that learns
	share   float64
	sum     float64 // of performance, as it was last told
	played  *played // batches only
}

// played is what became of a batch, task by task.
type played struct {
	into *rl.Trajectory
	node []int
	gain []float64
	next []int // the first decision that is not about the task or one before
	// nodes are those of all candidates, as a trajectory lists them; later is what
	// each brings in surplus after the decision.
	nodes []int32
	later []float32
}

// Node implements place/metis.Picker.
func (x *explorer) Node(candidates num.Matrix, nodes []int32, context, scores []float32) int {
	if x.parts {
		return num.Highest(scores)
	}
	return x.pick(candidates, nodes, context, scores, encode.ServiceLead)
}

// Part implements place/metis.Picker.
func (x *explorer) Part(candidates num.Matrix, nodes []int32, context, scores []float32) int {
	if !x.parts {
		return num.Highest(scores)
	}
	return x.pick(candidates, nodes, context, scores, encode.PartLead)
}

func (x *explorer) pick(candidates num.Matrix, nodes []int32, context, scores []float32, prior int) int {
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
	if x.played != nil {
		x.played.nodes = append(x.played.nodes, nodes...)
	}
	return c.Index
}

// Placed implements place/metis.Picker.
func (x *explorer) Placed(node int, gain float64) {
	x.sum += gain
	if p := x.played; p != nil {
		x.into.Flow(0, 1)
		p.node, p.gain, p.next = append(p.node, node), append(p.gain, gain), append(p.next, x.into.Len())
		return
	}
	x.into.Gain(gain)
}

// credit rewards the decisions of takes of one batch. A task's node is what it
// changed: to the gain of the task itself come those of the later tasks there,
// each less what the same task gained in the mean over the takes, in which it
// mostly went elsewhere. So a decision is not blamed for the hundreds of
// others in the batch; what it does to other nodes, by leaving them to others,
// shows in what these are credited with.
func credit(takes []*played) {
	fair := make([]float64, len(takes[0].gain))
	for _, p := range takes {
		for i, g := range p.gain {
			fair[i] += g / float64(len(takes))
		}
	}
	for _, p := range takes {
		p.later = make([]float32, len(p.nodes))
		surplus := map[int]float64{} // by node, of the tasks from i+1 on
		for i := len(p.gain) - 1; i >= 0; i-- {
			first := 0
			if i > 0 {
				first = p.next[i-1]
			}
			for d := first; d < p.next[i]; d++ {
				p.into.Rewards[d] = p.gain[i] + surplus[p.node[i]]
				for k := p.into.Starts[d]; k < p.into.Starts[d+1]; k++ {
					p.later[k] = float32(surplus[int(p.nodes[k])])
				}
			}
			surplus[p.node[i]] += p.gain[i] - fair[i]
		}
	}
}

// alone is a discount under which every decision stands for itself.
const alone = 1e-12

// rollout plays an episode with a policy that explores and notes what came of
// it.
//
// Rewards are changes of the sum of performances. In a batch they are made by
// credit. In a stream, where they come as they happen and the worth of a reward
// falls to 1/e in a mean lifetime, their discounted sum is that of the
// performance over time but for a constant: with the sum as the potential of a
// state, shaping (Ng, Harada, Russell: Policy invariance under reward
// transformations, ICML 1999) cancels what flows between events.
func (t *Trainer) rollout(parts bool, seed, take uint64) (*played, error) {
	e, err := t.world(seed).Draw(seed)
	if err != nil {
		return nil, err
	}
	into := rl.NewTrajectory(1)
	learner, divide := t.node, place_metis.Flat
	if parts {
		learner, divide = t.part, place_metis.Hierarchy
	}
	x := &explorer{
		sampler: &rl.Sampler{Net: learner.Net, Rand: num.Rand(seed, 3, take), Epsilon: t.Config.Explore.At(learner.Updates())},
		into:    into, parts: parts, share: 1,
	}
	o := place_metis.Options{Divide: divide, Picker: x, Shortlist: t.Config.Shortlist}
	if e.Stream == nil {
		into.Discount = alone
		x.played = &played{into: into}
		p := place_metis.New(t.nets(), e.Model, o)
		if _, err := p.Place(e.Batch); err != nil {
			return nil, err
		}
		into.End()
		return x.played, nil
	}
	into.Discount = rl.Discount(math.Exp(-1))
	x.share = t.Config.Noted
	c := *e.Stream
	c.Policy = place_metis.New(t.nets(), e.Model, o)
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
	return &played{into: into}, nil
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
