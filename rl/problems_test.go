package rl_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/rl"
)

func scorer(tb interface {
	Helper()
	Fatal(...any)
}, shape num.ScorerShape, seed uint64,
) *num.Scorer {
	tb.Helper()
	s, err := num.NewScorer(shape, num.Rand(seed))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func learner(tb testing.TB, net *num.Scorer, o rl.Options, seed uint64) *rl.Learner {
	tb.Helper()
	l, err := rl.NewLearner(net, o, seed)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// train runs updates of some episodes each.
func train(tb testing.TB, l *rl.Learner, updates, episodes int, epsilon rl.Schedule, run func(*rl.Sampler) *rl.Trajectory) rl.Stats {
	tb.Helper()
	var stats rl.Stats
	for range updates {
		seeds := make([]uint64, episodes)
		for i := range seeds {
			seeds[i] = uint64(l.Updates()*episodes + i)
		}
		trajectories, err := rl.Rollouts(context.Background(), 2, seeds, func(_ int, seed uint64) (*rl.Trajectory, error) {
			return run(&rl.Sampler{Net: l.Net, Rand: num.Rand(seed, 9), Epsilon: epsilon.At(l.Updates())}), nil
		})
		if err != nil {
			tb.Fatal(err)
		}
		if stats, err = l.Update(trajectories); err != nil {
			tb.Fatal(err)
		}
	}
	return stats
}

// bandit is a decision among 2 to 6 candidates of which the context names the
// feature that pays.
func bandit(rng *rand.Rand) (candidates num.Matrix, context []float32, rewards []float64, best int) {
	candidates, context = num.New(2+rng.IntN(5), 3), make([]float32, 3)
	for i := range candidates.Data {
		candidates.Data[i] = rng.Float32()
	}
	pays := rng.IntN(3)
	context[pays] = 1
	for k := range candidates.Rows {
		rewards = append(rewards, float64(candidates.Row(k)[pays]))
		if rewards[k] > rewards[best] {
			best = k
		}
	}
	return candidates, context, rewards, best
}

var banditShape = num.ScorerShape{Features: 3, Context: 3, Hidden: []int{32, 32}}

func banditEpisode(s *rl.Sampler) *rl.Trajectory {
	t := rl.NewTrajectory(1e-6) // decisions are independent
	for range 16 {
		candidates, context, rewards, best := bandit(s.Rand)
		c := s.Choose(candidates, context, best)
		t.Add(candidates, context, c)
		t.Gain(rewards[c.Index] + s.Rand.NormFloat64()*0.1)
		t.Flow(0, 1)
	}
	t.End()
	return t
}

// banditShare is what the network reaches of the best, above choosing blindly.
func banditShare(net *num.Scorer) float64 {
	s, rng := rl.Sampler{Net: net}, num.Rand(77)
	var got, best, blind float64
	for range 2000 {
		candidates, context, rewards, b := bandit(rng)
		got += rewards[s.Best(candidates, context)]
		best += rewards[b]
		for _, r := range rewards {
			blind += r / float64(len(rewards))
		}
	}
	return (got - blind) / (best - blind)
}

func banditOptions() rl.Options {
	o := rl.DefaultOptions()
	o.Trace.Decision = 0
	o.Minibatch = 128
	o.Rate = rl.Schedule{From: 3e-3, To: 3e-4, Steps: 60}
	return o
}

func TestBanditInContext(t *testing.T) {
	for name, change := range map[string]func(*rl.Options){
		"clipped": func(*rl.Options) {},
		"plain actor-critic": func(o *rl.Options) {
			o.Clip, o.Epochs, o.Minibatch, o.Divergence = math.Inf(1), 1, 128, 0
			o.Rate = rl.Schedule{From: 1e-2, To: 1e-3, Steps: 60}
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := banditOptions()
			change(&o)
			l := learner(t, scorer(t, banditShape, 1), o, 1)
			stats := train(t, l, 60, 64, rl.Constant(0), banditEpisode)
			if share := banditShare(l.Net); share < 0.95 {
				t.Errorf("reaches %.3f of the best, want 0.95; %+v", share, stats)
			} else {
				t.Logf("reaches %.3f of the best; %+v", share, stats)
			}
		})
	}
}

func TestImitationFollowsTheExpert(t *testing.T) {
	l := learner(t, scorer(t, banditShape, 1), banditOptions(), 1)
	var shown []*rl.Trajectory
	for seed := range uint64(64) {
		shown = append(shown, banditEpisode(&rl.Sampler{Net: l.Net, Rand: num.Rand(seed, 5)}))
	}
	first, last := rl.Stats{}, rl.Stats{}
	for i := range 60 {
		var err error
		if last, err = l.Imitate(shown); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = last
		}
	}
	if share := banditShare(l.Net); share < 0.95 || last.Imitation > first.Imitation/2 {
		t.Errorf("after imitation %.3f of the best, want 0.95; loss from %.3f to %.3f", share, first.Imitation, last.Imitation)
	}
}

// queue is admission to a server that serves one customer after another: at
// each arrival, turn it away or let it in, to be paid by its kind; those inside
// cost by the second. Times are exponential, so decisions come irregularly.
type queue struct {
	pay                  [2]float64
	share                float64 // of customers of kind 0
	arrive, serve, costs float64
	most                 int
	discount             rl.Discount
}

var shop = queue{pay: [2]float64{6, 3}, share: 0.3, arrive: 1.5, serve: 1.2, costs: 1, most: 8, discount: 0.97}

func (q queue) chance(kind int) float64 {
	if kind == 0 {
		return q.share
	}
	return 1 - q.share
}

// values solves for the worth of having n inside right after a decision, under
// a rule that says whom to let in, or the best rule if there is none. Between
// events the worth of n inside obeys
//
//	(b + arrive + serve [n > 0]) W(n) = -costs n + arrive E V(n, kind) + serve [n > 0] W(n-1)
//
// with V(n, kind) = pay + W(n+1) if let in, else W(n), and b = -ln discount.
func (q queue) values(in func(n, kind int) bool) (w []float64) {
	w = make([]float64, q.most+1)
	b := -math.Log(float64(q.discount))
	for range 20000 {
		for n := range w {
			total, rates := -q.costs*float64(n), b+q.arrive
			for kind := range 2 {
				v := w[n]
				if n < q.most {
					let := q.pay[kind] + w[n+1]
					if in == nil {
						v = max(v, let)
					} else if in(n, kind) {
						v = let
					}
				}
				total += q.arrive * q.chance(kind) * v
			}
			if n > 0 {
				total += q.serve * w[n-1]
				rates += q.serve
			}
			w[n] = total / rates
		}
	}
	return w
}

func (q queue) candidates(n int) num.Matrix {
	if n == q.most {
		return num.Matrix{Rows: 1, Cols: 1, Data: []float32{0}}
	}
	return num.Matrix{Rows: 2, Cols: 1, Data: []float32{0, 1}}
}

func (q queue) context(n, kind int) []float32 {
	return []float32{float32(n) / float32(q.most), float32(kind)}
}

func (q queue) episode(decisions int) func(s *rl.Sampler) *rl.Trajectory {
	return func(s *rl.Sampler) *rl.Trajectory {
		t, n := rl.NewTrajectory(q.discount), s.Rand.IntN(q.most+1)
		for range decisions {
			for { // until somebody arrives
				rate := q.arrive
				if n > 0 {
					rate += q.serve
				}
				t.Flow(-q.costs*float64(n), s.Rand.ExpFloat64()/rate)
				if s.Rand.Float64()*rate < q.arrive {
					break
				}
				n--
			}
			kind := 0
			if s.Rand.Float64() >= q.share {
				kind = 1
			}
			c := s.Choose(q.candidates(n), q.context(n, kind))
			t.Add(q.candidates(n), q.context(n, kind), c)
			if c.Index == 1 {
				t.Gain(q.pay[kind])
				n++
			}
		}
		t.Flow(-q.costs*float64(n), 1/q.arrive)
		t.Cut(q.candidates(n), q.context(n, 0))
		return t
	}
}

func (q queue) rule(net *num.Scorer) func(n, kind int) bool {
	s := rl.Sampler{Net: net}
	var in [64][2]bool
	for n := range q.most {
		for kind := range 2 {
			in[n][kind] = s.Best(q.candidates(n), q.context(n, kind)) == 1
		}
	}
	return func(n, kind int) bool { return in[n][kind] }
}

func TestQueueAgainstValueIteration(t *testing.T) {
	for name, average := range map[string]bool{"discounted": false, "average reward": true} {
		t.Run(name, func(t *testing.T) {
			// The average reward is judged by a long view.
			judge, play := shop, shop
			if average {
				judge.discount, play.discount = 0.999, 1
			}
			best := judge.values(nil)
			all := judge.values(func(int, int) bool { return true })
			rich := judge.values(func(_, kind int) bool { return kind == 0 })
			if best[0]*0.9 < max(all[0], rich[0]) {
				t.Fatalf("the queue is too easy: best %.2f, letting all in %.2f, only those who pay well %.2f", best[0], all[0], rich[0])
			}
			o := rl.DefaultOptions()
			o.Rate = rl.Schedule{From: 3e-3, To: 3e-4, Steps: 60}
			o.Average = average
			l := learner(t, scorer(t, num.ScorerShape{Features: 1, Context: 2, Hidden: []int{32, 32}}, 1), o, 1)
			stats := train(t, l, 60, 16, rl.Constant(0), play.episode(100))
			got := judge.values(judge.rule(l.Net))
			t.Logf("worth %.2f, the best is %.2f, letting all in %.2f, only those who pay well %.2f; %+v", got[0], best[0], all[0], rich[0], stats)
			if got[0] < 0.95*best[0] {
				t.Error("the learned rule is worth less than 0.95 of the best")
			}
		})
	}
}

// lock is a row of doors: at each, one of four keys fits; a wrong one ends the
// episode, and only the last door pays. The context says where one is, the
// candidates which key.
const doors = 10

func lockEpisode(ask bool) func(s *rl.Sampler) *rl.Trajectory {
	keys := num.New(4, 4)
	for k := range 4 {
		keys.Row(k)[k] = 1
	}
	return func(s *rl.Sampler) *rl.Trajectory {
		t := rl.NewTrajectory(1)
		for at := range doors {
			context, fits := make([]float32, doors), at*at%4
			context[at] = 1
			var c rl.Choice
			if ask {
				c = s.Choose(keys, context, fits, -1)
			} else {
				c = s.Choose(keys, context)
			}
			t.Add(keys, context, c)
			t.Flow(0, 1)
			if c.Index != fits {
				break
			}
			if at == doors-1 {
				t.Gain(1)
			}
		}
		t.End()
		return t
	}
}

func TestExpertsOpenWhatChanceDoesNot(t *testing.T) {
	epsilon := rl.Schedule{From: 0.5, To: 0, Steps: 60}
	run := func(ask bool, remember int) (opened float64) {
		o := rl.DefaultOptions()
		o.Remember, o.Minibatch = remember, 128
		l := learner(t, scorer(t, num.ScorerShape{Features: 4, Context: doors, Hidden: []int{32, 32}}, 1), o, 1)
		train(t, l, 80, 64, epsilon, lockEpisode(ask))
		for seed := range uint64(200) {
			e := lockEpisode(false)(&rl.Sampler{Net: l.Net, Rand: num.Rand(seed, 3)})
			for _, r := range e.Rewards {
				opened += r / 200
			}
		}
		return opened
	}
	chance, memory, expert, both := run(false, 0), run(false, 2000), run(true, 0), run(true, 2000)
	t.Logf("opened: by chance %.2f, with memory %.2f, with an expert %.2f, with both %.2f", chance, memory, expert, both)
	if chance > 0.1 {
		t.Errorf("chance opens the lock in %.2f of episodes: it needs no expert", chance)
	}
	if both < 0.95 {
		t.Errorf("with an expert and memory the lock opens in %.2f of episodes, want 0.95", both)
	}
}

// Where luck outweighs what an action brings, episodes that share their luck
// tell the two apart.
func TestGroupsSeeThroughSharedLuck(t *testing.T) {
	run := func(group bool) (share float64, stats rl.Stats) {
		o := banditOptions()
		l := learner(t, scorer(t, banditShape, 1), o, 1)
		for update := range 40 {
			var trajectories []*rl.Trajectory
			for i := range 32 {
				luck := num.Rand(1, uint64(update), uint64(i/8))
				s := &rl.Sampler{Net: l.Net, Rand: num.Rand(2, uint64(update), uint64(i))}
				e := rl.NewTrajectory(1e-6)
				if group {
					e.Group = uint64(1 + i/8)
				}
				for range 16 {
					candidates, context, rewards, _ := bandit(s.Rand)
					c := s.Choose(candidates, context)
					e.Add(candidates, context, c)
					e.Gain(rewards[c.Index] + 5*luck.NormFloat64())
					e.Flow(0, 1)
				}
				e.End()
				trajectories = append(trajectories, e)
			}
			var err error
			if stats, err = l.Update(trajectories); err != nil {
				t.Fatal(err)
			}
		}
		return banditShare(l.Net), stats
	}
	alone, _ := run(false)
	together, stats := run(true)
	t.Logf("reaches %.3f of the best alone, %.3f in groups", alone, together)
	if together < 0.9 || together < alone+0.1 || stats.Shared < 0.8 {
		t.Errorf("reaches %.3f of the best alone, %.3f in groups, want 0.9; %+v", alone, together, stats)
	}
}
