package rl

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/cotenant/cotenant/internal/num"
)

// Learner improves a network from trajectories. Everything that it draws comes
// from its seed and the number of the update, so that it holds no hidden state.
type Learner struct {
	Net     *num.Scorer
	Options Options

	seed   uint64
	adam   *num.Adam
	params []*num.Param
	replay *Replay
	shards [shards]shard

	updates, imitations int
	// rate is the average reward per second, mean and square the moments of
	// returns: all moving averages over the updates.
	rate, mean, square float64
}

// shards is into how many parts a minibatch is cut, whatever the number of
// workers: the sum of their gradients, in order, is the same for all.
const shards = 4

// NewLearner trains net in place. It is an error if an option is out of range.
func NewLearner(net *num.Scorer, options Options, seed uint64) (*Learner, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	l := &Learner{Net: net, Options: options, seed: seed, params: net.Params(), replay: NewReplay(options.Remember, options.Power)}
	l.adam = num.NewAdam(l.params, float32(options.Decay))
	for i := range l.shards {
		l.shards[i].net = net.Twin()
		l.shards[i].params = l.shards[i].net.Params()
	}
	return l, nil
}

// Updates is how many times Update has run: what schedules count.
func (l *Learner) Updates() int { return l.updates }

// Imitations is how many times Imitate has run.
func (l *Learner) Imitations() int { return l.imitations }

// Rand is a source for a purpose of the caller at this update (an episode, say),
// the same after a resume.
func (l *Learner) Rand(purpose ...uint64) *rand.Rand {
	return num.Rand(l.seed, append([]uint64{2, uint64(l.updates)}, purpose...)...)
}

// Stats says how an update went. Losses are means over decisions, before their
// weights.
type Stats struct {
	Decisions int `json:"decisions"`
	Epochs    int `json:"epochs"` // begun, before the policy had moved too far
	// Reward is the mean per second; Return and Advantage the means over decisions.
	Reward    float64 `json:"reward"`
	Return    float64 `json:"return"`
	Advantage float64 `json:"advantage"`
	Policy    float64 `json:"policy_loss"`
	Value     float64 `json:"value_loss"` // in units of the squared std of returns
	Entropy   float64 `json:"entropy"`    // in nats
	Imitation float64 `json:"imitation_loss"`
	Good      float64 `json:"good_loss"`
	// Shared is the share of the advantages' variance that was the luck of groups.
	Shared float64 `json:"shared"`
	// Explained is the share of the variance of returns that the critic foresaw
	// before the update.
	Explained  float64 `json:"explained"`
	Divergence float64 `json:"divergence"` // of the last epoch, in nats
	Clipped    float64 `json:"clipped"`    // share of decisions past the clip
	Gradient   float64 `json:"gradient"`   // mean norm before it was shortened
	Remembered int     `json:"remembered"` // decisions in the replay
}

// Update improves the network by trajectories that it took itself (perhaps
// with exploration) since the last Update. It is an error if there are none or
// one is open, has no decision, or does not suit the network.
func (l *Learner) Update(trajectories []*Trajectory) (Stats, error) {
	s, items, err := l.assess(trajectories)
	if err != nil {
		return Stats{}, err
	}
	o := l.Options
	w := weights{
		policy: 1, entropy: o.Entropy.At(l.updates), value: o.Value, imitation: o.Imitation.At(l.updates),
		good: o.Good.At(l.updates), clip: o.Clip,
	}
	if o.Remember == 0 {
		w.good = 0
	}
	err = l.epochs(&s, items, w, o.Epochs, o.Rate.At(l.updates), num.Rand(l.seed, 0, uint64(l.updates)))
	l.updates++
	return s, err
}

// Imitate moves the policy towards the experts' candidates that trajectories
// note, and the critic towards their returns: a warm start. The trajectories may
// come from any policy, and be used again. Errors are those of Update.
func (l *Learner) Imitate(trajectories []*Trajectory) (Stats, error) {
	s, items, err := l.assess(trajectories)
	if err != nil {
		return Stats{}, err
	}
	w := weights{value: l.Options.Value, imitation: 1, clip: math.Inf(1)}
	err = l.epochs(&s, items, w, 1, l.Options.ImitationRate, num.Rand(l.seed, 1, uint64(l.imitations)))
	l.imitations++
	return s, err
}

// assess turns trajectories into items with advantages and targets, and the
// good ones into memories.
func (l *Learner) assess(trajectories []*Trajectory) (s Stats, items []item, err error) {
	if len(trajectories) == 0 {
		return s, nil, errors.New("no trajectories to learn from")
	}
	var reward, seconds float64
	for i, t := range trajectories {
		if err := t.check(l.Net.Shape); err != nil {
			return s, nil, fmt.Errorf("trajectory %d: %w", i, err)
		}
		if l.Options.Average && (t.Discount != 1 || t.Ended) {
			return s, nil, fmt.Errorf("trajectory %d: has discount %g and ended is %v: the average reward wants discount 1 and trajectories that are cut", i, t.Discount, t.Ended)
		}
		for d := range t.Len() {
			reward += t.Rewards[d]
			seconds += t.Seconds[d]
		}
		s.Decisions += t.Len()
	}
	if seconds > 0 {
		s.Reward = reward / seconds
	}
	share := max(0.05, 1/float64(l.updates+l.imitations+1))
	l.rate += max(0.2, share) * (s.Reward - l.rate)

	values := l.values(trajectories)
	if l.Options.Average {
		centre(values)
	}
	returns, advantages := make([][]float64, len(trajectories)), make([][]float64, len(trajectories))
	var all, missed moments
	for i, t := range trajectories {
		rewards := t.Rewards
		if l.Options.Average {
			rewards = make([]float64, t.Len())
			for d := range rewards {
				rewards[d] = t.Rewards[d] - l.rate*t.Seconds[d]
			}
		}
		returns[i], advantages[i] = make([]float64, t.Len()), make([]float64, t.Len())
		Advantages(advantages[i], rewards, t.Seconds, values[i], t.Discount, l.Options.Trace)
		for d, a := range advantages[i] {
			returns[i][d] = a + values[i][d]
			all.add(returns[i][d])
			missed.add(a)
		}
	}
	if v := all.mean() + all.std() + missed.std(); math.IsNaN(v) || math.IsInf(v, 0) {
		return s, nil, fmt.Errorf("returns of mean %g and advantages of mean %g are not finite: the rewards or the network have diverged", all.mean(), missed.mean())
	}
	s.Return, s.Advantage = all.mean(), missed.mean()
	if all.std() > 0 {
		s.Explained = 1 - missed.std()*missed.std()/(all.std()*all.std())
	}
	l.mean += share * (all.mean() - l.mean)
	l.square += share * (all.mean()*all.mean() + all.std()*all.std() - l.square)
	std := math.Sqrt(max(l.square-l.mean*l.mean, 0))
	if !(std > 1e-6*(1+math.Abs(l.mean))) {
		std = 1
	}
	l.Net.Rescale(float32(l.mean), float32(std))

	// The critic's targets stay whole; only the actor's advantages lose the luck.
	s.Shared = Shared(trajectories, advantages)
	var free moments
	for i, t := range trajectories {
		for d, a := range advantages[i] {
			if t.Starts[d+1]-t.Starts[d] > 1 {
				free.add(a)
			}
		}
	}
	spread := free.std()
	if !(spread > 1e-9) {
		spread = 1
	}
	for i, t := range trajectories {
		surplus := make([]float64, t.Len())
		for d, a := range advantages[i] {
			surplus[d] = a / std
			items = append(items, item{of: t, at: d, advantage: float32((a - free.mean()) / spread), target: float32((returns[i][d] - l.mean) / std)})
		}
		if l.Options.Remember > 0 {
			if math.IsNaN(t.Score) {
				var m moments
				for _, v := range surplus {
					m.add(v)
				}
				t.Score = m.mean()
			}
			l.replay.Add(t, returns[i], surplus)
		}
	}
	s.Remembered = l.replay.Len()
	return s, items, nil
}

// centre takes the mean from all values: where only differences count, nothing
// else holds them (Ma et al., Average-reward reinforcement learning with trust
// region methods, IJCAI 2021, section 4.3).
func centre(values [][]float64) {
	var m moments
	for _, vs := range values {
		for _, v := range vs {
			m.add(v)
		}
	}
	for _, vs := range values {
		for i := range vs {
			vs[i] -= m.mean()
		}
	}
}

// moments gathers a mean and a standard deviation (Welford, 1962).
type moments struct{ n, m, s float64 }

func (m *moments) add(v float64) {
	m.n++
	d := v - m.m
	m.m += d / m.n
	m.s += d * (v - m.m)
}

func (m *moments) mean() float64 { return m.m }
func (m *moments) std() float64 {
	if m.n == 0 {
		return 0
	}
	return math.Sqrt(m.s / m.n)
}
