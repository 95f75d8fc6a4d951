package harmony

import (
	"math"
	"math/rand/v2"

	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/encode"
	place_harmony "github.com/cotenant/cotenant/place/harmony"
	"github.com/cotenant/cotenant/rl"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/learned"
)

// explorer is the place/harmony.Picker of training. It notes a share of the
// decisions, drawn by a coin that does not see them, and explores in those
// only: the others are taken as the trained policy would, and are part of what
// happens in between. So few deviations at a time tell what each is worth.
type explorer struct {
	sampler *rl.Sampler
	into    *rl.Trajectory
	rand    *rand.Rand
	share   float64
	aware   bool // explore by experts
	experts [4]int
}

// Pick implements place/harmony.Picker.
func (x *explorer) Pick(candidates num.Matrix, context []float32) int {
	if candidates.Rows == 1 {
		return 0
	}
	if x.rand.Float64() >= x.share {
		return x.sampler.Best(candidates, context)
	}
	c := x.sampler.Choose(candidates, context, x.ask(candidates)...)
	x.into.Add(candidates, context, c)
	return c.Index
}

// ask gives what the experts would take: greedy-wait (whom imitation follows),
// then, for exploration, greedy, spread and binpack.
func (x *explorer) ask(candidates num.Matrix) []int {
	x.experts[0] = best(candidates, encode.Prior, 1, true)
	if !x.aware {
		return x.experts[:1]
	}
	x.experts[1] = best(candidates, encode.Gain, 1, false)
	x.experts[2] = best(candidates, encode.Load, -1, false)
	x.experts[3] = best(candidates, encode.Load, 1, false)
	return x.experts[:]
}

// best is the candidate with the most of a feature, among all or those that
// do not wait.
func best(candidates num.Matrix, feature int, sign float32, wait bool) int {
	at := -1
	for k := range candidates.Rows {
		row := candidates.Row(k)
		if row[encode.Wait] == 1 && !wait {
			continue
		}
		if at < 0 || sign*row[feature] > sign*candidates.Row(at)[feature] {
			at = k
		}
	}
	return at
}

// rollout plays an episode with a policy that explores and notes what came of
// it.
func (t *Trainer) rollout(worker int, world *World, seed, take uint64) (*rl.Trajectory, error) {
	e, err := world.Draw(seed)
	if err != nil {
		return nil, err
	}
	o := t.Config
	work := 0.0
	for i := range e.Jobs {
		work += e.Jobs[i].Work / float64(len(e.Jobs))
	}
	// Time is told in horizons, so that returns are of one size in every world.
	horizon := o.Horizon * work
	into := rl.NewTrajectory(rl.Discount(math.Exp(-1)))
	x := &explorer{
		sampler: &rl.Sampler{Net: t.learner.Net, Rand: num.Rand(seed, 3, take), Epsilon: o.Explore.At(t.learner.Updates())},
		into:    into, rand: num.Rand(seed, 4, take), share: o.Noted, aware: !o.Unaware,
	}
	policy := place_harmony.New(t.learner.Net, t.speeds(worker, world), place_harmony.Options{Picker: x, MaxWait: o.MaxWait, Threshold: o.Threshold})
	c := t.simulation(worker, world, e, policy)
	sites := 0.0
	for i := range e.Nodes {
		sites += float64(max(1, len(e.Nodes[i].Devices)))
	}
	c.Watch = func(s sim.Stretch) {
		into.Flow(o.Reward.rate(&s)/sites, (s.To-s.From).Seconds()/horizon)
	}
	if _, err := sim.Run(c); err != nil {
		return nil, err
	}
	into.End()
	return into, nil
}

// Reward is what training maximises.
type Reward string

// The rewards, each per device.
const (
	// Progress is the sum of the jobs' progress: the paper's.
	Progress Reward = "progress"
	// Completion is minus the number of jobs that wait or run: its integral over
	// time is minus the sum of job completion times.
	Completion Reward = "completion"
)

// rate is the reward of a stretch of time, per second or whatever its unit.
func (r Reward) rate(s *sim.Stretch) float64 {
	sum, running := 0.0, s.View.Running()
	for i := range running {
		if i > 0 && running[i].Group == running[i-1].Group {
			continue
		}
		if r == Progress {
			sum += s.Rate[i]
		} else {
			sum--
		}
	}
	if r == Completion {
		sum -= float64(s.Queued)
	}
	return sum
}

// simulation is a run in the learned world.
func (t *Trainer) simulation(worker int, world *World, e Episode, p place.Policy) sim.Config {
	return sim.Config{
		Nodes: e.Nodes, Workloads: e.Workloads, Jobs: e.Jobs, Backfill: true,
		Truth: learned.New(t.truth(worker, world)), Policy: p,
	}
}
