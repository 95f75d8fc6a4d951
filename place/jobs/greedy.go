package jobs

import (
	"fmt"
	"math"

	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

var greedyEntry = entry{
	name:  "greedy",
	moves: true,
	make:  func(numbers, Settings) (placer, error) { return taskwise{&Greedy{}}, nil },
}

var linearEntry = entry{
	name: "linear",
	make: func(_ numbers, s Settings) (placer, error) {
		if m := s.Speeds.model; m == nil || m.Kind() != interference.KindLinear {
			return nil, fmt.Errorf("needs Speeds of a model of the kind %s: it is the white-box rival; others are what greedy is for", interference.KindLinear)
		}
		return taskwise{&Greedy{}}, nil
	},
}

// Greedy puts a task where the sum of progress over all gangs gains most. A
// gang of several tasks is tried task by task over the whole cluster and on
// each node alone, and goes where it gains most as a whole. It never holds
// what fits, however much it loses. Ties go to the first site.
type Greedy struct {
	// wait is nil in plain greedy.
	wait *waiting
}

// Choose implements Chooser.
func (g *Greedy) Choose(b *Board, t int) (site int, why Refusal) {
	list, why := b.Candidates(t)
	if len(list) == 0 {
		return -1, why
	}
	b.inquire(t, list)
	single := len(b.gangs[b.tasks[t].gang].tasks) == 1
	best, most := -1, math.Inf(-1)
	for _, c := range list {
		gain := b.gain(int32(t), c.Site)
		if single && g.wait != nil && !g.wait.accepts(b, int32(t), c.Site, gain) {
			continue
		}
		if gain > most {
			best, most = int(c.Site), gain
		}
	}
	if best < 0 {
		return -1, Waits
	}
	return best, Fits
}

func (*Greedy) reason(b *Board, t, s int) place.Reason {
	gain := b.Gain(t, s)
	return place.Reason{
		Words:  fmt.Sprintf("on %s the sum of progress changes by %+.3f, more than elsewhere", b.siteName(s), gain),
		Scores: map[string]float64{"gain": gain},
	}
}

// placeGang implements whole.
func (g *Greedy) placeGang(b *Board, gang int) Refusal {
	mark := b.Mark()
	most, why := g.all(b, gang)
	if why != Fits || b.apart(gang) {
		best := int32(-1)
		if why != Fits {
			most = math.Inf(-1)
		}
		b.Undo(mark)
		tried := map[uint64]bool{}
		for n := range b.nodes {
			if !b.mayHold(int32(n), gang) {
				continue
			}
			key := b.nodeKey(int32(n))
			if tried[key] && b.rules == nil {
				continue
			}
			tried[key] = true
			b.onlyNode = int32(n)
			gain, no := g.all(b, gang)
			b.onlyNode = -1
			if no == Fits && gain > most {
				best, most = int32(n), gain
			}
			b.Undo(mark)
		}
		b.onlyNode = best
		_, why = g.all(b, gang)
		b.onlyNode = -1
	}
	if why == Fits && g.wait != nil && !g.wait.acceptsGang(b, gang, most) {
		return Waits
	}
	return why
}

// all places the tasks of a gang one after another. The gain is that of the
// whole gang.
func (g *Greedy) all(b *Board, gang int) (gain float64, why Refusal) {
	b.delta = 0
	for _, t := range b.gangs[gang].tasks {
		s, why := g.Choose(b, int(t))
		if why != Fits {
			return 0, why
		}
		b.give(g, t, s)
	}
	return b.delta, Fits
}

// apart reports whether the placed tasks of a gang are on several nodes.
func (b *Board) apart(gang int) bool {
	node := int32(-1)
	for _, t := range b.gangs[gang].tasks {
		s := b.tasks[t].site
		if s < 0 {
			continue
		}
		if n := b.sites[s].node; node >= 0 && n != node {
			return true
		} else {
			node = n
		}
	}
	return false
}

// mayHold is a quick look at whether a node can have a whole gang.
func (b *Board) mayHold(n int32, gang int) bool {
	k, st := &b.gangs[gang], &b.state[n]
	return !st.closed && b.room(n) >= k.wants && (st.slots < 0 || int(st.slots) >= len(k.tasks))
}
