package balance

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	core "github.com/cotenant/cotenant/balance"
	"github.com/cotenant/cotenant/internal/num"
)

// Schedule is a training job in virtual time whose ranks crash, join and
// stall, with a coordinator that crashes too and a network that loses, delays
// and repeats messages. Play runs the shipped Balancer under a model of how
// ranks agree on shares:
//
//   - At the end of iteration k all ranks start one gather, which is complete
//     when iteration k+1 ends: every rank's report of k, and from rank 0 the
//     shares that it holds. Before k+2 all ranks have the same.
//   - Rank 0 alone talks to the coordinator, and drops answers of another
//     generation than its own.
//   - A gather that lacks a rank fails for all. The iteration under way is not
//     applied; those who are left, and who waits to join, form the next
//     generation and take up at the last applied iteration.
//   - A coordinator that can't be reached stops nobody: the last agreed shares
//     stay, or equal ones where they do not fit the new ranks.
type Schedule struct {
	Ranks       int
	GlobalBatch int
	Data        int     // samples of an epoch
	Iterations  int     // to be applied
	Crash       float64 // probability, per rank and iteration, of each of these
	Stall       float64
	Join        float64 // per iteration
	Down        float64 // of the coordinator, per iteration
	Lose        float64 // of a message; as likely is it repeated
	Allocator   string
	Seed        uint64
}

// Played is what came of a schedule.
type Played struct {
	Generations, Applied, Aborted, Crashes, Joins, Stalls, Outages int
	// Moves counts the iterations that began with other shares than the one before.
	Moves   int
	Seconds float64
	// Events are what happened to the job, in order: real processes can go
	// through the same.
	Events []Event
}

// Timeout is how long a gather waits for a rank before it is held for dead,
// in seconds.
const Timeout = 30.0

type rank struct {
	name    string
	speed   float64
	shares  []int
	pending []core.Shares // received, not yet in force
}

// answer is what the coordinator said, on its way to rank 0.
type answer struct {
	at     float64
	shares core.Shares
}

// gathered is the content of a gather.
type gathered struct {
	reports []core.Report
	shares  *core.Shares
}

type play struct {
	Schedule
	rng        *rand.Rand
	now        float64
	ranks      []*rank
	named      int
	generation int64
	iteration  int64
	offset     int // samples applied in all
	seen       []int
	coordinator
	gather  *gathered // started at the end of the last iteration
	held    *core.Shares
	answers []answer
	result  Played
}

type coordinator struct {
	b     *core.Balancer
	until float64 // unreachable before
	saved []byte
}

// Play runs a schedule. The error says which promise was broken: ranks with
// different shares, shares that do not sum to the global batch, a sample lost
// or repeated, or no progress.
func Play(s Schedule) (Played, error) {
	if s.Ranks < 1 || s.GlobalBatch < 1 || s.Data < 1 || s.Iterations < 1 {
		return Played{}, fmt.Errorf("schedule: %d ranks, global batch %d, %d samples, %d iterations: all must be positive", s.Ranks, s.GlobalBatch, s.Data, s.Iterations)
	}
	p := &play{Schedule: s, rng: num.Rand(s.Seed, 0xa9), seen: make([]int, s.Data)}
	for range s.Ranks {
		p.enlist()
	}
	if err := p.form(); err != nil {
		return p.result, err
	}
	// A schedule that hangs plays on without applying anything.
	for tries := 0; p.result.Applied < s.Iterations; tries++ {
		if tries > 50*s.Iterations+1000 {
			return p.result, fmt.Errorf("no progress: %d of %d iterations applied after %d tries", p.result.Applied, s.Iterations, tries)
		}
		if err := p.step(); err != nil {
			return p.result, fmt.Errorf("seed %d, generation %d, iteration %d: %w", s.Seed, p.generation, p.iteration, err)
		}
	}
	p.result.Seconds = p.now
	return p.result, p.everySampleOnce()
}

// everySampleOnce checks that no sample is an epoch ahead of another.
func (p *play) everySampleOnce() error {
	whole, part := p.offset/p.Data, p.offset%p.Data
	for i, n := range p.seen {
		want := whole
		if i < part {
			want++
		}
		if n != want {
			return fmt.Errorf("sample %d was seen %d times, want %d", i, n, want)
		}
	}
	return nil
}

func (p *play) enlist() {
	p.ranks = append(p.ranks, &rank{name: fmt.Sprint("rank", p.named), speed: 20 + 180*p.rng.Float64()})
	p.named++
}

func (p *play) workers() []core.Worker {
	w := make([]core.Worker, len(p.ranks))
	for i, r := range p.ranks {
		w[i].Name = r.name
	}
	return w
}

func (p *play) reachable() bool { return p.now >= p.until && p.rng.Float64() >= p.Lose }

// form makes a generation of the current ranks: rank 0 opens the job at the
// coordinator, and broadcasts inside the new group what holds from now on.
func (p *play) form() error {
	last := core.Shares{Generation: p.generation, Iteration: p.iteration, BatchSizes: p.ranks[0].shares}
	p.generation++
	p.result.Generations++
	p.gather, p.held = nil, nil
	sizes := p.local(last.BatchSizes)
	if p.reachable() {
		if err := p.open(last); err != nil {
			return err
		}
		if g := p.b.Generation(); g < p.generation {
			return fmt.Errorf("the coordinator is at generation %d, the ranks are at %d", g, p.generation)
		}
		p.generation = p.b.Generation()
		sizes = p.b.Next(p.iteration).BatchSizes
	}
	for _, r := range p.ranks {
		r.shares, r.pending = slices.Clone(sizes), nil
	}
	return nil
}

// open makes the coordinator know the job's ranks: a new Balancer after its
// memory was lost, a change of the one there is otherwise.
func (p *play) open(last core.Shares) error {
	if p.b == nil {
		var err error
		p.b, err = core.New(p.workers(), core.Options{
			GlobalBatch: p.GlobalBatch, Allocator: p.Allocator, Predictor: core.EMA, Seed: p.Seed,
			Last: &core.Shares{Generation: p.generation, Iteration: p.iteration, BatchSizes: p.local(last.BatchSizes)},
		})
		return err
	}
	if err := p.b.Change(p.workers()); err != nil {
		return err
	}
	if p.b.Generation() < p.generation {
		return p.b.Adopt(core.Shares{Generation: p.generation, Iteration: p.iteration, BatchSizes: p.local(last.BatchSizes)})
	}
	return nil
}

// local are the shares that rank 0 decides on without a coordinator: the last
// ones if they fit the ranks, else equal ones.
func (p *play) local(last []int) []int {
	if len(last) == len(p.ranks) {
		return last
	}
	n := len(p.ranks)
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = p.GlobalBatch / n
		if i < p.GlobalBatch%n {
			sizes[i]++
		}
	}
	return sizes
}

// step plays one iteration, applied or aborted.
func (p *play) step() error {
	if p.rng.Float64() < p.Down {
		p.outage()
	}
	if err := p.agree(); err != nil {
		return err
	}
	// Each rank computes its share; some die or stall on the way.
	end := p.now
	var dead []*rank
	for i, r := range p.ranks {
		took := float64(r.shares[i])/r.speed + 0.01
		switch {
		case p.rng.Float64() < p.Crash:
			p.result.Crashes++
			p.note(Crash, i, 0)
			dead = append(dead, r)
			continue
		case p.rng.Float64() < p.Stall:
			p.result.Stalls++
			stall := Timeout * 2 * p.rng.Float64()
			p.note(Stall, i, stall)
			took += stall
		}
		if took > Timeout {
			dead = append(dead, r) // the others can't tell
			continue
		}
		end = max(end, p.now+took)
	}
	joins := 0
	if p.rng.Float64() < p.Join {
		joins = 1
		p.result.Joins++
		p.note(Join, 0, 0)
	}
	if len(dead) > 0 {
		return p.abort(dead, joins)
	}

	p.now = end
	if err := p.apply(); err != nil {
		return err
	}
	if joins > 0 && len(p.ranks) < p.GlobalBatch {
		// Between iterations the group breaks up and forms anew.
		p.enlist()
		return p.form()
	}
	return nil
}

// agree lets due shares come into force and checks that all ranks have the
// same ones.
func (p *play) agree() error {
	var first []int
	for i, r := range p.ranks {
		before := r.shares
		r.pending = slices.DeleteFunc(r.pending, func(s core.Shares) bool {
			if s.Iteration > p.iteration {
				return false
			}
			r.shares = s.BatchSizes
			return true
		})
		if i == 0 {
			first = r.shares
			if !slices.Equal(before, first) {
				p.result.Moves++
			}
		} else if !slices.Equal(first, r.shares) {
			return fmt.Errorf("%s has the shares %v, rank 0 has %v", r.name, r.shares, first)
		}
	}
	sum := 0
	for _, s := range first {
		sum += s
	}
	if len(first) != len(p.ranks) || sum != p.GlobalBatch || slices.Min(first) < 0 {
		return fmt.Errorf("shares %v of %d ranks do not sum to %d", first, len(p.ranks), p.GlobalBatch)
	}
	return nil
}

// apply counts the samples of an iteration, completes the gather of the one
// before, and starts this one's.
func (p *play) apply() error {
	at := p.offset
	g := &gathered{shares: p.held}
	p.held = nil
	for i, r := range p.ranks {
		for range r.shares[i] {
			p.seen[at%p.Data]++
			at++
		}
		g.reports = append(g.reports, core.Report{
			Worker: r.name, Generation: p.generation, Iteration: p.iteration, BatchSize: r.shares[i],
			Compute: time.Duration((float64(r.shares[i])/r.speed + 0.01) * math.Exp(0.1*p.rng.NormFloat64()) * float64(time.Second)),
		})
	}
	if at-p.offset != p.GlobalBatch {
		return fmt.Errorf("%d samples applied, want %d", at-p.offset, p.GlobalBatch)
	}
	p.offset = at
	p.result.Applied++
	if done := p.gather; done != nil {
		if done.shares != nil {
			for _, r := range p.ranks {
				r.pending = append(r.pending, *done.shares)
			}
		}
		if err := p.report(done.reports); err != nil {
			return err
		}
	}
	p.gather = g
	p.iteration++
	// Answers that have come by now are what rank 0 puts into the next gather.
	p.answers = slices.DeleteFunc(p.answers, func(a answer) bool {
		if a.at > p.now {
			return false
		}
		if a.shares.Generation == p.generation && (p.held == nil || a.shares.Iteration > p.held.Iteration) {
			p.held = &a.shares
		}
		return true
	})
	return nil
}

// report sends reports to the coordinator, once, twice or in vain.
func (p *play) report(reports []core.Report) error {
	for times := 1; times > 0; times-- {
		if !p.reachable() {
			return nil
		}
		if p.rng.Float64() < p.Lose {
			times++
		}
		if p.b == nil || p.b.Generation() != p.generation {
			// It lost its memory, or missed the last generation: rank 0 opens the job
			// again with what the ranks agreed on last.
			last := core.Shares{Generation: p.generation, Iteration: p.iteration, BatchSizes: p.ranks[0].shares}
			if err := p.reopen(last); err != nil {
				return err
			}
		}
		for _, r := range reports {
			if r.Generation != p.b.Generation() {
				continue
			}
			if err := p.b.Observe([]core.Report{r}); err != nil && !errors.Is(err, core.ErrDuplicate) {
				return fmt.Errorf("observe: %w", err)
			}
		}
		s := p.b.Next(p.iteration + 2)
		if again := p.b.Next(p.iteration + 2); !slices.Equal(s.BatchSizes, again.BatchSizes) {
			return fmt.Errorf("the coordinator gave %v, then %v for the same iteration", s, again)
		}
		p.answers = append(p.answers, answer{p.now + 2*p.rng.Float64(), s})
		if p.rng.Float64() < 0.2 {
			var err error
			if p.saved, err = p.b.State(); err != nil {
				return err
			}
		}
	}
	return nil
}

// reopen is open for ranks that already have a generation.
func (p *play) reopen(last core.Shares) error {
	if p.b != nil && p.b.Generation() < p.generation {
		if err := p.b.Change(p.workers()); err != nil {
			return err
		}
		if p.b.Generation() <= p.generation {
			return p.b.Adopt(last)
		}
	}
	var err error
	p.b, err = core.New(p.workers(), core.Options{GlobalBatch: p.GlobalBatch, Allocator: p.Allocator, Predictor: core.EMA, Seed: p.Seed, Last: &last})
	return err
}

// outage ends the coordinator, which comes back later with what it had saved,
// or with nothing.
func (p *play) outage() {
	p.result.Outages++
	lasts := 20 * p.rng.Float64()
	p.until = p.now + lasts
	p.b = nil
	if p.saved != nil && p.rng.Float64() < 0.5 {
		if b, err := core.Restore(p.saved); err == nil {
			p.b = b
		}
	}
	if p.b != nil {
		p.note(Outage, 0, lasts)
	} else {
		p.note(Amnesia, 0, lasts)
	}
}

// abort gives the iteration up: who is left forms a new generation.
func (p *play) abort(dead []*rank, joins int) error {
	p.result.Aborted++
	p.now += Timeout
	p.ranks = slices.DeleteFunc(p.ranks, func(r *rank) bool { return slices.Contains(dead, r) })
	for range joins {
		p.enlist()
	}
	if len(p.ranks) == 0 {
		p.enlist() // the elastic launcher starts anew, from a checkpoint
	}
	return p.form()
}
