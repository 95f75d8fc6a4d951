package jobs

import (
	"fmt"

	"github.com/cotenant/cotenant/place"
)

// Scaler scales gangs within their bounds, once a policy has placed what it
// would. A change is made where
//
//	Horizon * change of the sum of progress - Cost * progress of each running gang that it resizes
//
// is above 0, progress being relative to a gang's own size. In that order:
//
//   - a gang that found no place starts with fewer workers, if the policy then
//     takes it, or other gangs give up workers for it, those first that lose
//     least;
//   - a gang shrinks where its last worker costs others, or the gang itself, more
//     than it brings;
//   - a gang grows onto a site that nobody who waits could use.
//
// A gang that is just being placed has its size for nothing. Every change of a
// running gang gains more than it costs, so that with nobody coming and nobody
// leaving the sum of progress only rises, and no gang goes back and forth. Where
// the cluster has constraints or taints nothing is scaled.
type Scaler struct {
	// Cost is the time, in seconds, for which a job that is resized stands still.
	Cost float64
	// Horizon is the seconds over which a gain in progress is counted.
	Horizon float64

	price  []float64 // by gang, in seconds of progress; 0 where it does not run yet
	elapse int       // changes tried
	wanted []int32   // a task of each kind that waits
	gangs  []int32
}

// Starter places the i-th pending gang as the board stands, by a policy's own
// judgement, or leaves the board as it is.
type Starter interface {
	Start(b *Board, i int) bool
}

const (
	// maxTries bounds the changes that one decision looks at.
	maxTries = 4096
	// maxWaiting bounds the kinds of gangs for which others are asked to shrink.
	maxWaiting = 16
	// maxGiven bounds the workers that are taken from others to let one gang in.
	maxGiven = 8
)

// Improve scales what is on the board.
func (s *Scaler) Improve(b *Board, starter Starter) {
	if b.rules != nil || !b.scalesAny() {
		return
	}
	s.elapse = 0
	s.price = zeros(s.price, len(b.gangs))
	for _, t := range b.running {
		g := b.tasks[t].gang
		s.price[g] = s.Cost * b.gangs[g].progress
	}
	s.admit(b, starter)
	for s.elapse < maxTries && !b.req.Stopped() && s.step(b) {
	}
}

// scalesAny is a quick look at whether any gang has bounds.
func (b *Board) scalesAny() bool {
	for _, t := range b.running {
		if b.gangs[b.tasks[t].gang].sizes != nil {
			return true
		}
	}
	for i := range b.waiting {
		if b.gangs[b.waiting[i].gang].sizes != nil {
			return true
		}
	}
	return false
}

// owed is what it costs that a gang is not of the size that it was.
func (s *Scaler) owed(b *Board, g int32) float64 {
	if b.gangs[g].net == 0 {
		return 0
	}
	return s.price[g]
}

// admit lets gangs in that found no place.
func (s *Scaler) admit(b *Board, starter Starter) {
	refused := map[int32]bool{}
	for i := range b.waiting {
		w := &b.waiting[i]
		if b.placed[w.gang] > 0 || !w.whole || w.tasks == 0 || refused[w.kind] {
			continue
		}
		if len(refused) == maxWaiting || s.elapse >= maxTries || b.req.Stopped() {
			return
		}
		kind, why := w.kind, b.why[i]
		var text string
		if b.Explain {
			text = b.words[i]
		}
		if s.smaller(b, starter, i) || s.given(b, starter, i) {
			continue
		}
		refused[kind] = true
		b.hold(i, why, text)
	}
}

// smaller starts a gang with fewer workers than its own, as many as gain most.
func (s *Scaler) smaller(b *Board, starter Starter, i int) bool {
	mark, before := b.Mark(), b.gained
	g := b.waiting[i].gang
	best, most := int32(0), leastGain
	for b.Shrinkable(int(g)) {
		b.Shrink(int(g))
		placing := b.Mark()
		s.elapse++
		if starter.Start(b, i) {
			if gain := s.Horizon * (b.gained - before); gain > most {
				best, most = b.gangs[g].workers, gain
			}
			b.Undo(placing)
		}
	}
	b.Undo(mark)
	if best == 0 {
		return false
	}
	return s.start(b, starter, i, best)
}

// start places a gang with a number of workers, at most its own.
func (s *Scaler) start(b *Board, starter Starter, i int, workers int32) bool {
	g := b.waiting[i].gang
	for b.gangs[g].workers > workers {
		b.Shrink(int(g))
	}
	return starter.Start(b, i)
}

// given lets others give up workers for a gang, one after the other, as many as
// gain most: what it makes is held against what they lose.
func (s *Scaler) given(b *Board, starter Starter, i int) bool {
	mark, before, costs := b.Mark(), b.gained, 0.0
	g := b.waiting[i].gang
	s.list(b)
	var donors []int32
	enough, workers, most := 0, int32(0), leastGain
	for range maxGiven {
		donor := s.donor(b, g)
		if donor < 0 || s.elapse >= maxTries || b.req.Stopped() {
			break
		}
		donors = append(donors, donor)
		costs -= s.owed(b, donor)
		b.Shrink(int(donor))
		costs += s.owed(b, donor)
		given, whole := b.Mark(), false
		for first := true; ; first = false {
			s.elapse++
			trial := b.Mark()
			if starter.Start(b, i) {
				whole = whole || first
				if gain := s.Horizon*(b.gained-before) - costs; gain > most {
					enough, workers, most = len(donors), b.gangs[g].workers, gain
				}
				b.Undo(trial)
			}
			if whole || !b.Shrinkable(int(g)) {
				break
			}
			b.Shrink(int(g))
		}
		b.Undo(given)
		if whole {
			break // more room would not make it larger
		}
	}
	b.Undo(mark)
	for _, donor := range donors[:enough] {
		b.Shrink(int(donor))
	}
	if enough == 0 || !s.start(b, starter, i, workers) {
		b.Undo(mark)
		return false
	}
	s.explainGiven(b, mark, g, most)
	return true
}

// list lists the gangs that scale and have their place.
func (s *Scaler) list(b *Board) {
	s.gangs = s.gangs[:0]
	b.stamp++
	add := func(g int32) {
		if k := &b.gangs[g]; k.sizes != nil && k.stamp != b.stamp {
			k.stamp = b.stamp
			s.gangs = append(s.gangs, g)
		}
	}
	for _, t := range b.running {
		add(b.tasks[t].gang)
	}
	for i := range b.waiting {
		if w := &b.waiting[i]; w.tasks > 0 && b.placed[w.gang] == w.tasks {
			add(w.gang)
		}
	}
}

// donor is the gang that loses least by giving up a worker from a site that some
// task of the receiver fits on afterwards; -1 for none.
func (s *Scaler) donor(b *Board, receiver int32) int32 {
	best, least := int32(-1), 0.0
	for _, g := range s.gangs {
		if g == receiver || !b.Shrinkable(int(g)) {
			continue
		}
		k := &b.gangs[g]
		site := b.tasks[b.worker(k, int(k.workers)-1)].site
		mark, before := b.Mark(), b.gained
		costs := -s.owed(b, g)
		s.elapse++
		b.Shrink(int(g))
		loss := s.Horizon*(before-b.gained) + costs + s.owed(b, g)
		useful := false
		for _, t := range b.gangs[receiver].tasks {
			useful = useful || b.takes(t, site) && b.fit(t, site) == Fits
		}
		b.Undo(mark)
		if useful && (best < 0 || loss < least) {
			best, least = g, loss
		}
	}
	return best
}

// step makes the one change of a size that gains most, if any gains.
func (s *Scaler) step(b *Board) bool {
	s.list(b)
	grows := s.mayGrow(b)
	gang, to, most := int32(-1), int32(-1), leastGain
	for _, g := range s.gangs {
		if s.elapse >= maxTries {
			break
		}
		if b.Shrinkable(int(g)) {
			if gain := s.shrinks(b, g); gain > most {
				gang, to, most = g, -1, gain
			}
		}
		if grows && b.slotsFreeFor(g) && b.Growable(int(g)) {
			if site, gain := s.growth(b, g); gain > most {
				gang, to, most = g, site, gain
			}
		}
	}
	if gang < 0 {
		return false
	}
	k := &b.gangs[gang]
	was := k.workers
	if to < 0 {
		t := b.worker(k, int(was)-1)
		b.Shrink(int(gang))
		s.explain(b, t, fmt.Sprintf("%s shrinks from %d to %d workers", k.name, was, k.workers), most)
		return true
	}
	t := b.Grow(int(gang))
	b.Put(t, int(to))
	s.explain(b, int32(t), fmt.Sprintf("%s grows from %d to %d workers, on %s", k.name, was, k.workers, b.siteName(int(to))), most)
	return true
}

// slotsFreeFor is a quick look at whether there is a device for one more worker.
func (b *Board) slotsFreeFor(g int32) bool {
	k := &b.gangs[g]
	for _, t := range k.tasks {
		if !b.tasks[t].ps {
			return int(b.tasks[t].wants) <= b.slotsFree
		}
	}
	return false
}

// mayGrow lists a task of each kind that waits, and reports whether it is known
// who else waits: where all that is pending was placed there may be more behind,
// of a caller who offers one gang at a time.
func (s *Scaler) mayGrow(b *Board) bool {
	s.wanted = s.wanted[:0]
	seen := map[int32]bool{}
	for i := range b.waiting {
		w := &b.waiting[i]
		if b.placed[w.gang] > 0 || w.tasks == 0 || seen[w.kind] {
			continue
		}
		seen[w.kind] = true
		s.wanted = append(s.wanted, b.gangs[w.gang].tasks[0])
	}
	return len(b.waiting) == 0 || len(s.wanted) > 0
}

// shrinks is what it gains, in seconds of progress, that a gang has a worker
// less.
func (s *Scaler) shrinks(b *Board, g int32) float64 {
	mark, before := b.Mark(), b.gained
	costs := -s.owed(b, g)
	s.elapse++
	b.Shrink(int(g))
	gain := s.Horizon*(b.gained-before) - costs - s.owed(b, g)
	b.Undo(mark)
	return gain
}

// growth is the site where one more worker of a gang gains most, and how much.
func (s *Scaler) growth(b *Board, g int32) (site int32, most float64) {
	mark, before := b.Mark(), b.gained
	site = -1
	costs := -s.owed(b, g)
	t := b.Grow(int(g))
	costs += s.owed(b, g)
	list, _ := b.Candidates(t)
	b.inquire(t, list)
	for _, c := range list {
		s.elapse++
		if s.isWanted(b, c.Site) {
			continue
		}
		gain := s.Horizon*(b.gained-before+b.gain(int32(t), c.Site)) - costs
		if site < 0 || gain > most {
			site, most = c.Site, gain
		}
	}
	b.Undo(mark)
	if site < 0 {
		return -1, 0
	}
	return site, most
}

// isWanted reports whether somebody who waits could use the site.
func (s *Scaler) isWanted(b *Board, site int32) bool {
	for _, t := range s.wanted {
		if b.takes(t, site) && b.fit(t, site) == Fits {
			return true
		}
	}
	return false
}

func (s *Scaler) explain(b *Board, t int32, what string, gain float64) {
	if !b.Explain {
		return
	}
	b.tasks[t].reason = place.Reason{
		Words: fmt.Sprintf("%s: that is worth %.0f s of progress within %.0f s, less %.0f s for which a job that is resized stands still",
			what, gain, s.Horizon, s.Cost),
		Scores: map[string]float64{"gain_s": gain},
	}
}

// explainGiven says for which gang the workers that left since a mark gave way.
func (s *Scaler) explainGiven(b *Board, mark int, receiver int32, gain float64) {
	if !b.Explain {
		return
	}
	for _, u := range b.log[mark:] {
		if g := b.tasks[u.task].gang; u.part && g != receiver {
			k := &b.gangs[g]
			s.explain(b, u.task, fmt.Sprintf("%s shrinks to %d workers, so that %s can start", k.name, k.workers, b.gangs[receiver].name), gain)
		}
	}
}

// Start implements Starter by the board's own way to offer a gang to a chooser.
func (t taskwise) Start(b *Board, i int) bool { return b.start(t.Chooser, i) }

// Start implements Starter: gangs that were scaled are placed like those of
// greedy-wait.
func (m *matching) Start(b *Board, i int) bool { return b.start(m.gangs, i) }

// start offers one gang, whatever was refused before.
func (b *Board) start(c Chooser, i int) bool {
	b.refused = grown(b.refused, int(b.kindCount))
	picky, _ := c.(choosy)
	b.offer(c, picky, i)
	return b.placed[b.waiting[i].gang] > 0
}
