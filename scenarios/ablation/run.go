package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place"
	place_harmony "github.com/cotenant/cotenant/place/harmony"
	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/rl"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
	"github.com/cotenant/cotenant/sim/contention"
	"github.com/cotenant/cotenant/train/harmony"
	"github.com/cotenant/cotenant/train/worlds"
)

// loads of the test streams.
var loads = []float64{0.7, 0.9, 1.1}

// firstTest is the first of the seeds of the test streams: neither training
// nor validation draws it.
const firstTest = 1

// lab holds what all runs share.
type lab struct {
	settings
	world *compare.World
	// beliefs by the kind of their model, from the same measurements.
	beliefs map[string]*jobs.Speeds
}

func newLab(s settings) (*lab, error) {
	w, err := compare.Contention(compare.ContentionConfig{
		Servers: s.Servers, Profile: contention.SamplesConfig{Colocations: s.Profile, Noise: 0.03, Seed: 1},
	})
	return &lab{s, w, map[string]*jobs.Speeds{}}, err
}

// believe gives beliefs of a model of a kind; "" is the learned one, by which
// all policies go when they are judged.
func (l *lab) believe(kind string) (*jobs.Speeds, error) {
	if kind == "" {
		kind = interference.KindNeural
	}
	if s := l.beliefs[kind]; s != nil {
		return s, nil
	}
	m, err := l.world.Fit(compare.Belief{Observed: 1, Seed: 1, Kind: kind})
	if err != nil {
		return nil, err
	}
	l.beliefs[kind] = l.world.Speeds(m, 0)
	return l.beliefs[kind], nil
}

// run does one run.
func (l *lab) run(ctx context.Context, v variant, seed uint64) (*record, error) {
	r := &record{Variant: v.name, Seed: seed, Settings: l.settings, Cores: runtime.GOMAXPROCS(0)}
	if v.name == rules {
		return r, l.rules(ctx, r)
	}
	speeds, err := l.believe(v.kind)
	if err != nil {
		return nil, err
	}
	w, err := worlds.Convert("contention", l.world, speeds, worlds.Options{Jobs: l.Jobs})
	if err != nil {
		return nil, err
	}
	before := l.world.Calls()
	t, err := harmony.NewTrainer(l.config(v, w, seed))
	if err != nil {
		return nil, err
	}
	start := t.Net().Clone()
	if !v.untrained {
		if err := train(ctx, t, r); err != nil {
			return nil, err
		}
	}
	r.TruthCalls = l.world.Calls() - before
	net, at := t.Best()
	r.Best = at
	return r, l.judge(ctx, r, net, start)
}

// config is that of the training of a variant.
func (l *lab) config(v variant, w harmony.World, seed uint64) harmony.Config {
	c := harmony.Config{
		Worlds: []harmony.World{w}, Seed: seed, Updates: l.Updates, Episodes: l.Episodes,
		Every: max(1, l.Updates/4), Workers: runtime.GOMAXPROCS(0),
	}
	if v.change != nil {
		v.change(&c)
	}
	return c
}

// train makes all updates and notes the looks.
func train(ctx context.Context, t *harmony.Trainer, r *record) error {
	begin, cpu := time.Now(), cpuSeconds()
	err := t.Run(ctx, func(p harmony.Report) error {
		if p.Ratios != nil {
			r.Curve = append(r.Curve, look{p.Update, time.Since(begin).Seconds(), cpuSeconds() - cpu, p.Ratios[0], p.Ratios[1]})
		}
		return nil
	})
	r.Seconds, r.CPUSeconds = time.Since(begin).Seconds(), cpuSeconds()-cpu
	return err
}

// judge plays the test streams by a network, in the true world.
func (l *lab) judge(ctx context.Context, r *record, net, start *num.Scorer) error {
	speeds, err := l.believe("")
	if err != nil {
		return err
	}
	r.Streams, err = l.streams(ctx, func(worker int, s *stream) error {
		c := comparison{net: net, start: start}
		p := place_harmony.New(net, speeds.Fork(), place_harmony.Options{Picker: &c})
		if err := l.play(ctx, s, r.Variant, p); err != nil {
			return err
		}
		s.Choices, s.Differ = c.choices, c.differ
		return nil
	})
	return err
}

// comparison picks as its network does, and counts how often the one that it
// started from would not.
type comparison struct {
	net, start      *num.Scorer
	pass            num.Pass
	choices, differ int
}

// Pick implements place/harmony.Picker.
func (c *comparison) Pick(candidates num.Matrix, context []float32) int {
	if candidates.Rows == 1 {
		return 0
	}
	k := num.Highest(c.pass.Score(c.net, candidates, context))
	c.choices++
	if num.Highest(c.pass.Score(c.start, candidates, context)) != k {
		c.differ++
	}
	return k
}

// greedyWait and oracle are the rivals besides spread.
const (
	greedyWait = "greedy-wait"
	oracle     = "greedy:truth"
)

// rules plays the test streams by those that all are held against.
func (l *lab) rules(ctx context.Context, r *record) error {
	speeds, err := l.believe("")
	if err != nil {
		return err
	}
	begin := time.Now()
	r.Streams, err = l.streams(ctx, func(worker int, s *stream) error {
		for _, text := range []string{compare.Spread, greedyWait, oracle} {
			spec, err := compare.ParseSpec(text)
			if err != nil {
				return err
			}
			p, end, err := spec.New(ctx, l.world, speeds.Fork(), compare.PolicyOptions{})
			if err != nil {
				return err
			}
			err = l.play(ctx, s, text, p)
			end()
			if err != nil {
				return err
			}
		}
		return nil
	})
	r.Seconds = time.Since(begin).Seconds()
	return err
}

// streams has each test stream played.
func (l *lab) streams(ctx context.Context, play func(worker int, s *stream) error) ([]stream, error) {
	numbers := make([]uint64, len(loads)*l.TestSeeds)
	for i := range numbers {
		numbers[i] = uint64(i)
	}
	return rl.Rollouts(ctx, runtime.GOMAXPROCS(0), numbers, func(worker int, i uint64) (stream, error) {
		s := stream{
			Load: loads[i/uint64(l.TestSeeds)], Seed: firstTest + i%uint64(l.TestSeeds),
			JCT: map[string]float64{}, Wait: map[string]float64{},
		}
		return s, play(worker, &s)
	})
}

// play plays a test stream by a policy and notes what came of it.
func (l *lab) play(ctx context.Context, s *stream, name string, p place.Policy) error {
	list, err := l.world.Generate(compare.Load{Jobs: l.TestJobs, Load: s.Load}, s.Seed)
	if err != nil {
		return err
	}
	result, err := sim.Run(sim.Config{
		Nodes: l.world.Nodes, Workloads: l.world.Declared, Jobs: list, Truth: l.world.Truth(), Policy: p,
		Seed: s.Seed, Backfill: true, Stop: func() bool { return ctx.Err() != nil },
	})
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case len(result.Unfinished) > 0:
		return fmt.Errorf("%s at load %g, seed %d: %d jobs are left unfinished: %s", name, s.Load, s.Seed, len(result.Unfinished), result.Why)
	}
	s.JCT[name], s.Wait[name] = result.MeanJCT, result.MaxWait
	return nil
}

// cpuSeconds is what the process used so far, of all cores: in hundredths, as
// Linux tells (proc(5), stat); 0 elsewhere.
func cpuSeconds() float64 {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, err1 := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return (user + system) / 100
}
