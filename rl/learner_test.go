package rl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/rl"
	"pgregory.net/rapid"
)

// fullOptions turns everything on, so that a checkpoint has to hold everything.
func fullOptions() rl.Options {
	o := rl.DefaultOptions()
	o.Minibatch, o.Remember, o.Decay = 64, 300, 0.01
	o.Imitation = rl.Schedule{From: 0.5, To: 0, Steps: 5}
	o.Entropy = rl.Schedule{From: 0.1, To: 0.001, Steps: 6, Geometric: true}
	o.Rate = rl.Schedule{From: 3e-3, To: 1e-4, Steps: 6}
	return o
}

// state is everything that a learner would save.
func state(tb testing.TB, l *rl.Learner) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := l.Save(&b); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func TestResumeEqualsUninterrupted(t *testing.T) {
	epsilon := rl.Schedule{From: 0.3, To: 0, Steps: 5}
	whole := learner(t, scorer(t, banditShape, 1), fullOptions(), 1)
	train(t, whole, 6, 16, epsilon, banditEpisode)

	first := learner(t, scorer(t, banditShape, 1), fullOptions(), 1)
	train(t, first, 3, 16, epsilon, banditEpisode)
	// Another process would begin with another network and seed.
	second := learner(t, scorer(t, banditShape, 7), fullOptions(), 7)
	if err := second.Restore(bytes.NewReader(state(t, first))); err != nil {
		t.Fatal(err)
	}
	if a, b := first.Rand(1).Uint64(), second.Rand(1).Uint64(); a != b {
		t.Error("the sources for the caller differ after a resume")
	}
	train(t, second, 3, 16, epsilon, banditEpisode)
	if !bytes.Equal(state(t, whole), state(t, second)) {
		t.Error("resumed after 3 of 6 updates, training ends elsewhere")
	}
}

func TestWorkersDoNotChangeTheResult(t *testing.T) {
	run := func(workers int) []byte {
		o := fullOptions()
		o.Workers = workers
		l := learner(t, scorer(t, banditShape, 1), o, 1)
		train(t, l, 3, 16, rl.Constant(0.2), banditEpisode)
		return state(t, l)
	}
	one := run(1)
	for _, workers := range []int{2, 3, 9} {
		if !bytes.Equal(one, run(workers)) {
			t.Errorf("%d workers reach another network than 1", workers)
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	l := learner(t, scorer(t, banditShape, 1), fullOptions(), 1)
	train(t, l, 2, 16, rl.Constant(0), banditEpisode)
	good := state(t, l)
	other := learner(t, scorer(t, num.ScorerShape{Features: 2, Hidden: []int{4}}, 1), fullOptions(), 1)
	for what, err := range map[string]error{
		"another shape": other.Restore(bytes.NewReader(good)),
		"half a file":   l.Restore(bytes.NewReader(good[:len(good)/2])),
		"nothing":       l.Restore(bytes.NewReader(nil)),
	} {
		if err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	if !bytes.Equal(good, state(t, l)) {
		t.Error("a refused checkpoint changed the learner")
	}
}

func FuzzRestore(f *testing.F) {
	// As small as can be: the fuzzer shortens what it finds byte by byte.
	shape := num.ScorerShape{Features: 1, Hidden: []int{1}}
	o := fullOptions()
	o.Remember = 4
	episode := func() *rl.Trajectory {
		t := rl.NewTrajectory(0.9)
		for range 2 {
			t.Add(num.New(2, 1), nil, rl.Choice{Expert: -1, LogProb: -0.7, Behaviour: -0.7})
			t.Flow(1, 1)
		}
		t.End()
		return t
	}
	l := learner(f, scorer(f, shape, 1), o, 1)
	if _, err := l.Update([]*rl.Trajectory{episode()}); err != nil {
		f.Fatal(err)
	}
	f.Add(state(f, l))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := learner(t, scorer(t, shape, 1), o, 1)
		if l.Restore(bytes.NewReader(b)) != nil {
			return
		}
		// What was accepted can be learned from, or says why not.
		if _, err := l.Update([]*rl.Trajectory{episode()}); err != nil && !strings.Contains(err.Error(), "diverged") {
			t.Error(err)
		}
	})
}

func TestLearnerRefuses(t *testing.T) {
	l := learner(t, scorer(t, banditShape, 1), rl.DefaultOptions(), 1)
	open, empty, wide, wild := rl.NewTrajectory(1), rl.NewTrajectory(1), rl.NewTrajectory(1), rl.NewTrajectory(1)
	choice := rl.Choice{Expert: -1}
	open.Add(num.New(2, 3), make([]float32, 3), choice)
	empty.End()
	wide.Add(num.New(2, 4), make([]float32, 3), choice)
	wide.End()
	wild.Add(num.New(2, 3), make([]float32, 3), choice)
	wild.Gain(math.Inf(1))
	wild.End()
	for want, ts := range map[string][]*rl.Trajectory{"no trajectories": nil, "open": {open}, "without decisions": {empty}, "4 features": {wide}, "not finite": {wild}} {
		if _, err := l.Update(ts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("update: %v; want an error with %q", err, want)
		}
	}
	o := rl.DefaultOptions()
	o.Average = true
	ended := rl.NewTrajectory(1)
	ended.Add(num.New(2, 3), make([]float32, 3), choice)
	ended.End()
	if _, err := learner(t, scorer(t, banditShape, 1), o, 1).Update([]*rl.Trajectory{ended}); err == nil {
		t.Error("an ended trajectory is accepted for the average reward")
	}
	for _, change := range []func(*rl.Options){
		func(o *rl.Options) { o.Trace.Decision = 1.1 }, func(o *rl.Options) { o.Clip = math.NaN() }, func(o *rl.Options) { o.Epochs = 0 },
		func(o *rl.Options) { o.Minibatch = 0 }, func(o *rl.Options) { o.Remember = -1 }, func(o *rl.Options) { o.Rate = rl.Constant(-1) },
	} {
		o := rl.DefaultOptions()
		change(&o)
		if _, err := rl.NewLearner(scorer(t, banditShape, 1), o, 1); err == nil {
			t.Errorf("options %+v are accepted", o)
		}
	}
}

// The probability that a choice carries is how often it is taken.
func TestSamplerKnowsItsOdds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64Range(0, 1<<40).Draw(t, "seed")
		net := scorer(t, banditShape, seed)
		for _, p := range net.Params() {
			for i := range p.Value.Data {
				p.Value.Data[i] += 0.3
			}
		}
		rng := num.Rand(seed)
		candidates, context, _, _ := bandit(rng)
		experts := rapid.SliceOfN(rapid.IntRange(-1, candidates.Rows-1), 0, 3).Draw(t, "experts")
		s := rl.Sampler{Net: net, Rand: rng, Epsilon: rapid.SampledFrom([]float64{0, 0.3, 1}).Draw(t, "epsilon")}
		const n = 4000
		taken, odds := make([]float64, candidates.Rows), make([]float64, candidates.Rows)
		for range n {
			c := s.Choose(candidates, context, experts...)
			taken[c.Index] += 1.0 / n
			odds[c.Index] = math.Exp(float64(c.Behaviour))
			if s.Epsilon < 1 && math.Exp(float64(c.LogProb-c.Behaviour)) > 1/(1-s.Epsilon)+1e-4 {
				t.Fatalf("importance %g exceeds 1 / (1 - %g)", math.Exp(float64(c.LogProb-c.Behaviour)), s.Epsilon)
			}
		}
		for k := range taken {
			if math.Abs(taken[k]-odds[k]) > 5*math.Sqrt(odds[k]/n)+2.0/n {
				t.Fatalf("candidate %d is taken with frequency %.4f, says %.4f; experts %v, epsilon %g", k, taken[k], odds[k], experts, s.Epsilon)
			}
		}
	})
}

func TestRolloutsKeepTheOrderOfSeeds(t *testing.T) {
	seeds := []uint64{5, 3, 9, 1, 4}
	for workers := range 7 {
		got, err := rl.Rollouts(context.Background(), workers, seeds, func(worker int, seed uint64) (uint64, error) {
			if worker < 0 || worker >= max(workers, 1) {
				return 0, fmt.Errorf("worker %d of %d", worker, workers)
			}
			return 10 * seed, nil
		})
		if err != nil || !slices.Equal(got, []uint64{50, 30, 90, 10, 40}) {
			t.Errorf("%d workers: %v, %v", workers, got, err)
		}
		_, err = rl.Rollouts(context.Background(), workers, seeds, func(_ int, seed uint64) (int, error) {
			if seed == 3 || seed == 1 {
				return 0, fmt.Errorf("seed %d", seed)
			}
			return 0, nil
		})
		if err == nil || err.Error() != "seed 3" {
			t.Errorf("%d workers: error %v, want the earliest seed's", workers, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := rl.Rollouts(ctx, 2, seeds, func(int, uint64) (int, error) { return 0, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled, it says %v", err)
	}
}

func BenchmarkUpdate(b *testing.B) {
	const features, candidates, decisions = 24, 25, 2048
	net := scorer(b, num.ScorerShape{Features: features, Context: 16, Hidden: []int{64, 64}}, 1)
	s, rng := rl.Sampler{Net: net, Rand: num.Rand(1)}, num.Rand(2)
	t := rl.NewTrajectory(0.999)
	c, g := num.New(candidates, features), make([]float32, 16)
	for range decisions {
		for i := range c.Data {
			c.Data[i] = float32(rng.NormFloat64())
		}
		t.Add(c, g, s.Choose(c, g))
		t.Flow(rng.Float64(), 1)
	}
	t.End()
	o := rl.DefaultOptions()
	o.Divergence = 0
	l := learner(b, net, o, 1)
	for b.Loop() {
		if _, err := l.Update([]*rl.Trajectory{t}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(decisions*float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
	b.ReportMetric(decisions*float64(o.Epochs*b.N)/b.Elapsed().Seconds(), "decisions-epochs/s")
}
