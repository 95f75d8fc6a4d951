package harmony

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place"
	place_harmony "github.com/cotenant/cotenant/place/harmony"
	"github.com/cotenant/cotenant/rl"
)

// OnlineOptions steer Online. Zero values mean the defaults named.
type OnlineOptions struct {
	Seed uint64
	// Noted is the share of decisions to learn from, which are drawn from the
	// policy instead of taking what it scores highest (0.1).
	Noted float64
	// Every is how many of them make an update (256).
	Every int
	// Rate is the learning rate (1e-4), a tenth of that of offline training.
	Rate float64
	// Horizon is the time in which the worth of a reward falls to 1/e, in units
	// of the mean duration of the jobs that finished (3), as in Config.
	Horizon float64
	Reward  Reward // Completion
}

// settled is how many jobs must have finished before their mean duration is
// taken for what jobs last.
const settled = 30

// Online is a policy that goes on learning from what really happens: besides
// what it meets of speeds (place/harmony's Policy.Observe), the network is
// improved by small steps, from the progress that was measured while its
// decisions held. It decides as the policy that it wraps, but for a small share
// of decisions that it draws, to see what comes of others. The same seed gives
// the same decisions. It is not safe for concurrent use.
type Online struct {
	policy  *place_harmony.Policy
	options OnlineOptions
	learner *rl.Learner
	sampler rl.Sampler
	rand    *rand.Rand
	noted   *rl.Trajectory // since the last update

	now     time.Duration // until when rewards are noted
	waiting int           // jobs that waited after the last decision
	sites   float64
	started map[string]time.Duration // of jobs that run
	mean    float64                  // duration of jobs that finished, in seconds
	count   float64                  // of them
	err     error
}

// NewOnline makes a policy learn while it works. Its own network stays as it
// is: a copy learns.
func NewOnline(p *place_harmony.Policy, o OnlineOptions) (*Online, error) {
	if o.Noted == 0 {
		o.Noted = 0.1
	}
	if o.Every == 0 {
		o.Every = 256
	}
	if o.Rate == 0 {
		o.Rate = 1e-4
	}
	if o.Horizon == 0 {
		o.Horizon = 3
	}
	if o.Reward == "" {
		o.Reward = Completion
	}
	if !(o.Noted > 0 && o.Noted <= 1) || o.Every < 1 || !(o.Horizon > 0) {
		return nil, fmt.Errorf("learning online by %+v: a share of decisions up to 1, at least 1 of them for an update, and a horizon above 0 are wanted", o)
	}
	l := rl.DefaultOptions()
	l.Rate, l.Entropy, l.Trace = rl.Constant(o.Rate), rl.Constant(0), rl.Trace{Decision: 0.97}
	l.Minibatch, l.Epochs, l.Divergence = 128, 2, 0.01
	net := p.Net().Clone()
	learner, err := rl.NewLearner(net, l, o.Seed)
	if err != nil {
		return nil, err
	}
	online := &Online{
		policy: p, options: o, learner: learner, rand: num.Rand(o.Seed, 5), started: map[string]time.Duration{},
		sampler: rl.Sampler{Net: net, Rand: num.Rand(o.Seed, 6)},
	}
	online.begin()
	p.Use(net, online)
	return online, nil
}

func (l *Online) begin() { l.noted = rl.NewTrajectory(rl.Discount(math.Exp(-1))) }

// Updates is how often the network was changed so far.
func (l *Online) Updates() int { return l.learner.Updates() }

// Place implements place.Policy.
func (l *Online) Place(req place.Request) (place.Decision, error) {
	if l.sites == 0 {
		for i := range req.View.Nodes() {
			l.sites += float64(max(1, len(req.View.Nodes()[i].Devices)))
		}
	}
	d, err := l.policy.Place(req)
	if err == nil {
		err = l.err
	}
	held := map[string]bool{}
	for _, h := range d.Hold {
		held[string(h.Task)] = true
	}
	l.waiting = 0
	for i := range req.Pending {
		if tasks := req.Pending[i].Tasks; len(tasks) > 0 && held[string(tasks[0].ID)] {
			l.waiting++
		}
	}
	return d, err
}

// Pick implements place/harmony.Picker.
func (l *Online) Pick(candidates num.Matrix, context []float32) int {
	if candidates.Rows == 1 {
		return 0
	}
	if l.noted.Len() >= l.options.Every {
		l.update(candidates, context)
	}
	if l.count < settled || l.rand.Float64() >= l.options.Noted {
		return l.sampler.Best(candidates, context)
	}
	c := l.sampler.Choose(candidates, context)
	l.noted.Add(candidates, context, c)
	return c.Index
}

// update learns from what was noted; what is still to come is worth what the
// critic says of the state of now.
func (l *Online) update(candidates num.Matrix, context []float32) {
	l.noted.Cut(candidates, context)
	if _, err := l.learner.Update([]*rl.Trajectory{l.noted}); err != nil && l.err == nil {
		l.err = fmt.Errorf("learn online: %w", err)
	}
	l.begin()
}

// Observe implements place.Observer.
func (l *Online) Observe(o place.Outcome) {
	l.policy.Observe(o)
	if o.View != nil {
		l.flow(o)
	}
	for _, name := range o.Finished {
		if at, ok := l.started[name]; ok {
			l.count++
			l.mean += ((o.Now - at).Seconds() - l.mean) / l.count
			delete(l.started, name)
		}
	}
	l.now = max(l.now, o.Now)
}

// flow notes the reward of the time in which a view held.
func (l *Online) flow(o place.Outcome) {
	running := o.View.Running()
	sum, last := 0.0, ""
	for i := range running {
		r := &running[i]
		if i > 0 && r.Group == last {
			continue
		}
		last = r.Group
		l.started[r.Group] = r.Started
		if l.options.Reward == Progress {
			sum += o.Performance[r.ID]
		} else {
			sum--
		}
	}
	if l.options.Reward == Completion {
		sum -= float64(l.waiting)
	}
	if l.count >= settled && l.sites > 0 && o.Now > l.now {
		l.noted.Flow(sum/l.sites, (o.Now-l.now).Seconds()/(l.options.Horizon*l.mean))
	}
}
