package jobs

import (
	"fmt"

	"github.com/cotenant/cotenant/place"
)

var horizonParam = Param{
	Key: "horizon", Meaning: "seconds over which what a move or a resize gains is counted against its cost",
	Low: 60, High: 1e6, Default: 7200, Log: true,
}

// Mover proposes moves, once a policy has placed what it would: it searches
// from where tasks are, those of gangs one by one, moving a task or swapping
// two, as long as that gains
//
//	Horizon * change of the sum of progress - Cost * progress of each task's gang that moved
//
// where the price of a move is fixed at what the gang makes before any. A task
// that comes back to where it ran costs nothing; nor does one that was only
// placed in this decision.
type Mover struct {
	// Cost is the time, in seconds, for which a job that moves stands still.
	Cost float64
	// Horizon is the seconds over which a gain in progress is counted.
	Horizon float64

	price []float64 // by task, in seconds of progress
}

// rounds of moving and placing: what moves can make room for who waits.
const rounds = 3

// Improve moves what is on the board. Where that changed anything and gangs
// still wait, place is called to place those that fit now.
func (m *Mover) Improve(b *Board, place func()) {
	m.price = zeros(m.price, len(b.tasks))
	for _, t := range b.running {
		m.price[t] = m.Cost * b.gangs[b.tasks[t].gang].progress
	}
	for range rounds {
		before := len(b.log)
		m.search(b)
		if len(b.log) == before {
			return
		}
		before = len(b.log)
		if !b.anyHeld() {
			return
		}
		place()
		if len(b.log) == before {
			return
		}
	}
}

func (b *Board) anyHeld() bool {
	for i := range b.waiting {
		if b.placed[b.waiting[i].gang] < b.waiting[i].tasks {
			return true
		}
	}
	return false
}

// search climbs until no move and no swap gains: each step takes the best
// that one task can do.
func (m *Mover) search(b *Board) {
	movers := m.movers(b)
	// Every step gains, so it ends; the bound is for time.
	for range 4 * len(movers) {
		improved := false
		for i, t := range movers {
			if b.req.Stopped() {
				return
			}
			improved = m.best(b, t, movers[i+1:]) || improved
		}
		if !improved {
			return
		}
	}
}

// movers are the tasks that may go elsewhere: those that run and are movable,
// and those placed just now.
func (m *Mover) movers(b *Board) []int32 {
	var list []int32
	for _, t := range b.running {
		if b.tasks[t].movable {
			list = append(list, t)
		}
	}
	for i := range b.waiting {
		for _, t := range b.gangs[b.waiting[i].gang].tasks {
			if b.tasks[t].site >= 0 {
				list = append(list, t)
			}
		}
	}
	return list
}

// leastGain is the gain for which a move is made, in seconds of progress: less is
// rounding.
const leastGain = 1e-6

// best makes the best move or swap of a task, if one gains.
func (m *Mover) best(b *Board, t int32, others []int32) bool {
	b.delta = 0
	mark, most := b.Mark(), leastGain
	to, with := int32(-1), int32(-1)
	from := b.tasks[t].site
	b.Lift(int(t))
	lifted := b.Mark()
	lo, hi := b.Range(int(t))
	for s := lo; s < hi; s++ {
		if int32(s) == from || b.fit(t, int32(s)) != Fits {
			continue
		}
		b.Put(int(t), s)
		if g := m.Horizon*b.delta - m.costs(b, t, from); g > most {
			most, to = g, int32(s)
		}
		b.Undo(lifted)
	}
	for _, o := range others {
		at := b.tasks[o].site
		if at == from || b.alikeTasks(t, o) {
			continue
		}
		if m.swap(b, t, o, from, at) {
			if g := m.Horizon*b.delta - m.costs(b, t, from) - m.costs(b, o, at); g > most {
				most, to, with = g, at, o
			}
		}
		b.Undo(lifted)
	}
	b.Undo(mark)
	if to < 0 {
		return false
	}
	b.Lift(int(t))
	if with >= 0 {
		m.swap(b, t, with, from, to)
		m.explain(b, with, most)
	} else {
		b.Put(int(t), int(to))
	}
	m.explain(b, t, most)
	return true
}

// costs is what it costs, in seconds of progress, that a task is where it is
// and no longer on a site; negative where it came home.
func (m *Mover) costs(b *Board, t, from int32) float64 {
	x := &b.tasks[t]
	switch {
	case x.home < 0 || (x.site == x.home) == (from == x.home):
		return 0
	case x.site == x.home:
		return -m.price[t]
	}
	return m.price[t]
}

func (m *Mover) explain(b *Board, t int32, gain float64) {
	if !b.Explain {
		return
	}
	b.tasks[t].reason = place.Reason{
		Words: fmt.Sprintf("moved to %s, alone or against another: that is worth %.0f s of progress within %.0f s, less %.0f s of standstill for each job that moves",
			b.siteName(int(b.tasks[t].site)), gain, m.Horizon, m.Cost),
		Scores: map[string]float64{"gain_s": gain},
	}
}

// swap puts t, which was lifted from a site, where o is, and o there.
func (m *Mover) swap(b *Board, t, o, from, at int32) bool {
	b.Lift(int(o))
	if !b.takes(t, at) || b.fit(t, at) != Fits {
		return false
	}
	b.Put(int(t), int(at))
	if !b.takes(o, from) || b.fit(o, from) != Fits {
		return false
	}
	b.Put(int(o), int(from))
	return true
}

// takes reports whether the site is of those that a task can be put on.
func (b *Board) takes(t, s int32) bool {
	lo, hi := b.Range(int(t))
	return int(s) >= lo && int(s) < hi
}

// alikeTasks reports whether a swap would change nothing but names.
func (b *Board) alikeTasks(t, o int32) bool {
	x, y := &b.tasks[t], &b.tasks[o]
	return x.workload == y.workload && b.gangs[x.gang].scale == b.gangs[y.gang].scale && len(b.gangs[x.gang].tasks) == 1 && len(b.gangs[y.gang].tasks) == 1
}
