package harmony

import (
	"fmt"
	"math"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/jobs"
)

// Moves say how running jobs are moved: what Options.Migrate allows. They are
// part of a trained policy.
type Moves struct {
	// Fade is how fast a job's progress loses weight with its age: the weight is
	// (1 + hours)^-Fade. Where durations are heavy-tailed, the longer a job has
	// run the longer it still will, so a young job's progress ends sooner and
	// relieves the queue.
	Fade float64 `json:"fade"`
	// Horizon is the seconds over which what a move gains is counted against its
	// cost.
	Horizon float64 `json:"horizon"`
	// Welcome is the gain from which a waiting job is let in by moving others.
	Welcome float64 `json:"welcome"`
}

// DefaultMoves are those of an untrained policy.
var DefaultMoves = Moves{Fade: 0.3, Horizon: 3600, Welcome: 0.2}

// mover rearranges single-task gangs over devices (what shares nodes is moved by
// jobs.Mover, task by task): two devices at a time, all ways to divide who is on
// them, perhaps with one more who waits, as long as the weighted sum of progress
// gains. It looks at the devices where something
// can have changed: those with a free slot and those placed on in this
// decision, each against every other; in a large cluster only where the most is
// lost, against one of each kind (shortlist).
type mover struct {
	board  *jobs.Board
	moves  Moves
	cost   float64 // weighted progress that one move must gain for each progress
	sites  []int
	all    []int32 // the tasks on two devices, and who waits
	weight []float64
	empty  []jobs.Config // by class
	splits int           // left to look at
	many   int           // manySites, but in tests

	lost    []loss
	partner []int
	kinds   map[[2]int]int          // in partner, by class and co-location
	most    map[jobs.Config]float64 // that can be lost in a co-location
}

// maxSplits bounds the search of one decision, and manySplits that in a cluster
// of more than manySites sites.
const (
	maxSplits  = 200_000
	manySplits = 3_000
	manySites  = 256
)

// least is the gain for which a move is made: less is rounding.
const least = 1e-6

// mostTogether bounds the tasks on two devices whose divisions are all tried.
const mostTogether = 6

func (p *Policy) improve(req place.Request) {
	if p.board.Speeds().Scope() == history.ScopeNode {
		p.gangs.Cost, p.gangs.Horizon = p.options.Migrate.Seconds(), p.options.Moves.Horizon
		p.again()
		p.gangs.Improve(p.board, p.again)
		return
	}
	m := &p.mover
	m.board, m.moves = p.board, p.options.Moves
	m.cost = p.options.Migrate.Seconds() / max(1, m.moves.Horizon)
	m.splits = maxSplits
	clear(m.weight)
	m.empty = m.empty[:0]
	for _, class := range p.board.Speeds().Classes() {
		m.empty = append(m.empty, p.board.Speeds().Empty(class))
	}
	if p.board.Sites() > m.many {
		m.searchMany(req)
		return
	}
	for m.pass(req) {
		if req.Stopped() || m.splits < 0 {
			return
		}
	}
}

// again offers places to the gangs that wait, once others have moved, and takes
// in what gains enough: where it sits can be mended later, which the network,
// whose placements stay, does not reckon with.
func (p *Policy) again() {
	b := p.board
	p.afresh()
	for i := range b.Pending() {
		if b.Request().Stopped() {
			return
		}
		g := b.Gang(i)
		waits := func() bool { return b.At(int(b.Tasks(g)[0])) < 0 }
		if waits() {
			p.offer(i, g)
		}
		if waits() {
			p.welcome(g)
		}
	}
}

// welcome places a gang where the sum of progress gains most, if that is enough.
func (p *Policy) welcome(g int) {
	b := p.board
	if p.list(g) != jobs.Fits {
		return
	}
	best, most := -1, p.options.Moves.Welcome
	mark, before := b.Mark(), b.Gained()
	for k := range p.ways {
		p.put(g, k)
		if gain := b.Gained() - before; len(p.ways[k].Sites) > 0 && gain >= most {
			best, most = k, gain
		}
		b.Undo(mark)
	}
	if best < 0 {
		return
	}
	if b.Explain {
		for i, t := range b.Tasks(g) {
			b.Note(int(t), place.Reason{
				Words:  fmt.Sprintf("on %s the sum of progress gains %.3f, and where jobs may move later %.2f is enough", b.SiteName(int(p.ways[best].Sites[i])), most, p.options.Moves.Welcome),
				Scores: map[string]float64{scoreGain: most},
			})
		}
	}
	p.put(g, best)
}

// free lists the devices all of whose tenants may be moved, and how many of
// them are interesting, those first.
func (m *mover) free() (interesting int) {
	b := m.board
	m.sites = m.sites[:0]
	var rest []int
	for s := range b.Sites() {
		if !m.loose(s) {
			continue
		}
		fresh := false
		for _, t := range b.Tenants(s) {
			fresh = fresh || b.Home(int(t)) < 0
		}
		if left, _ := b.Slots(s); left > 0 || fresh {
			m.sites = append(m.sites, s)
		} else {
			rest = append(rest, s)
		}
	}
	interesting = len(m.sites)
	m.sites = append(m.sites, rest...)
	return interesting
}

// loose reports whether a site is a device all of whose tenants may be moved.
func (m *mover) loose(s int) bool {
	b := m.board
	if _, device := b.Site(s); device < 0 || !b.Meets(s) {
		return false
	}
	if _, all := b.Slots(s); 2*all > mostTogether {
		return false
	}
	for _, t := range b.Tenants(s) {
		if len(b.Tasks(b.GangOf(int(t)))) > 1 || b.Home(int(t)) >= 0 && !b.Movable(int(t)) {
			return false
		}
	}
	return true
}

// pass makes the improvements it finds in one look at all pairs of devices.
func (m *mover) pass(req place.Request) (improved bool) {
	b := m.board
	n := m.free()
	for i := range n {
		for j := range m.sites {
			if j < n && j <= i {
				continue
			}
			if m.splits < 0 || req.Stopped() {
				return improved
			}
			improved = m.divide(m.sites[i], m.sites[j], -1) || improved
		}
	}
	if improved {
		return true
	}
	seen := map[int]bool{}
	for k := range b.Pending() {
		g := b.Gang(k)
		tasks := b.Tasks(g)
		if len(tasks) != 1 || b.At(int(tasks[0])) >= 0 || seen[b.Kind(g)] {
			continue
		}
		seen[b.Kind(g)] = true
		for i := range n {
			for j := range m.sites {
				if j < n && j <= i {
					continue
				}
				if m.splits < 0 || req.Stopped() {
					return false
				}
				if m.divide(m.sites[i], m.sites[j], tasks[0]) {
					return true
				}
			}
		}
	}
	return false
}

// divide finds the best way to divide the tasks of two devices, with one more
// who waits where more is not negative, and takes it if it gains.
func (m *mover) divide(a, c int, more int32) bool {
	b := m.board
	m.all = append(append(m.all[:0], b.Tenants(a)...), b.Tenants(c)...)
	split := len(b.Tenants(a)) // the mask of now has the first split tasks on a
	now := m.value(a, b.Tenants(a)) + m.value(c, b.Tenants(c))
	enough := least
	if more >= 0 {
		m.all = append(m.all, more)
		enough = m.moves.Welcome
	}
	_, slotsA := b.Slots(a)
	_, slotsC := b.Slots(c)
	if len(m.all) < 2 || len(m.all) > slotsA+slotsC {
		m.splits--
		return false
	}
	best, most := -1, now+enough
	var left, right [mostTogether]int32
	for mask := range 1 << len(m.all) {
		if more < 0 && mask == 1<<split-1 {
			continue
		}
		l, r := left[:0], right[:0]
		for i, t := range m.all {
			if mask>>i&1 == 1 {
				l = append(l, t)
			} else {
				r = append(r, t)
			}
		}
		if len(l) > slotsA || len(r) > slotsC {
			continue
		}
		m.splits--
		v := m.value(a, l)
		if math.IsInf(v, -1) {
			continue
		}
		if v += m.value(c, r); v > most {
			best, most = mask, v
		}
	}
	if best < 0 {
		return false
	}
	return m.apply(a, c, best, most-now)
}

// apply puts the tasks in all where a mask says, if the constraints let it.
func (m *mover) apply(a, c, mask int, gain float64) bool {
	b := m.board
	mark := b.Mark()
	for i, t := range m.all {
		to := c
		if mask>>i&1 == 1 {
			to = a
		}
		if at := b.At(int(t)); at >= 0 && at != to {
			b.Lift(int(t))
		}
	}
	for i, t := range m.all {
		to := c
		if mask>>i&1 == 1 {
			to = a
		}
		if b.At(int(t)) >= 0 {
			continue
		}
		if b.Fit(int(t), to) != jobs.Fits {
			b.Undo(mark)
			return false
		}
		b.Put(int(t), to)
		m.explainMove(int(t), gain)
	}
	return true
}

// value is the weighted progress of single tasks on a device, less what it
// costs that they moved there; -Inf where they do not fit together.
func (m *mover) value(s int, tasks []int32) float64 {
	b, speeds := m.board, m.board.Speeds()
	config := m.empty[b.Class(s)]
	for _, t := range tasks {
		config = speeds.Next(config, int32(b.Workload(int(t))))
	}
	if !speeds.Fits(config) {
		return math.Inf(-1)
	}
	sum := 0.0
	for _, t := range tasks {
		g := b.GangOf(int(t))
		progress := b.Alone(g, b.Class(s), false) * speeds.Performance(config, int32(b.Workload(int(t))))
		if progress <= 0 {
			return math.Inf(-1)
		}
		if home := b.Home(int(t)); home >= 0 && home != s {
			progress *= 1 - m.cost
		}
		sum += progress * m.weightOf(t)
	}
	return sum
}

// weightOf is the weight of a task's progress.
func (m *mover) weightOf(t int32) float64 {
	for len(m.weight) <= int(t) {
		m.weight = append(m.weight, 0)
	}
	if m.weight[t] == 0 {
		m.weight[t] = 1
		if g := m.board.GangOf(int(t)); !m.board.Waits(g) {
			m.weight[t] = math.Pow(1+m.board.Age(g).Hours(), -m.moves.Fade)
		}
	}
	return m.weight[t]
}
