package harmony

import (
	"slices"

	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/jobs"
)

// loss is what the tenants of a device make less than they could with nothing
// beside them.
type loss struct {
	site int
	lost float64
}

// The most devices that are relieved in one pass over a large cluster, and the
// most of one kind that are tried for it.
const (
	mostLossy = 64
	perKind   = 2
)

// searchMany is for a large cluster: the devices on which most is lost, each
// against the first few of every kind of device that has a free slot or was
// placed on, those without tenants first; then the same for who waits.
func (m *mover) searchMany(req place.Request) {
	m.splits = manySplits
	m.shortlist()
	for improved := true; improved; {
		improved = false
		for _, c := range m.lost {
			for _, a := range m.partner {
				if m.splits < 0 || req.Stopped() {
					return
				}
				if a == c.site || !m.divide(a, c.site, -1) {
					continue
				}
				improved = true
				if m.lostOn(c.site) < least {
					break
				}
			}
		}
	}
	for m.admit(req) {
	}
}

// admit lets in one job that waits.
func (m *mover) admit(req place.Request) bool {
	b := m.board
	seen := map[int]bool{}
	for k := range b.Pending() {
		g := b.Gang(k)
		tasks := b.Tasks(g)
		if len(tasks) != 1 || b.At(int(tasks[0])) >= 0 || seen[b.Kind(g)] {
			continue
		}
		seen[b.Kind(g)] = true
		for i, a := range m.partner {
			for _, c := range m.partner[:i] {
				if m.splits < 0 || req.Stopped() {
					return false
				}
				if m.divide(a, c, tasks[0]) {
					return true
				}
			}
		}
	}
	return false
}

// shortlist fills partner and lost. It looks at few of the tenants of all
// sites: that would cost more than all else.
func (m *mover) shortlist() {
	b := m.board
	if m.kinds == nil {
		m.kinds, m.most = map[[2]int]int{}, map[jobs.Config]float64{}
	}
	clear(m.kinds)
	clear(m.most)
	m.partner, m.lost = m.partner[:0], m.lost[:0]
	for i := range b.Pending() {
		for _, t := range b.Tasks(b.Gang(i)) {
			if s := b.At(int(t)); s >= 0 {
				m.try(s)
			}
		}
	}
	enough := least // the loss from which a site is among the worst so far
	for s := range b.Sites() {
		if left, _ := b.Slots(s); left > 0 {
			m.try(s)
		}
		if len(b.Tenants(s)) < 2 || m.atMost(s) <= enough || !m.loose(s) {
			continue
		}
		if l := m.lostOn(s); l > enough {
			m.lost = append(m.lost, loss{s, l})
		}
		if len(m.lost) == 2*mostLossy {
			m.cut()
			enough = m.lost[mostLossy-1].lost
		}
	}
	m.cut()
	slices.SortStableFunc(m.partner, func(a, c int) int { return len(b.Tenants(a)) - len(b.Tenants(c)) })
}

// try adds a site to partner, if it is among the first of its kind.
func (m *mover) try(s int) {
	b := m.board
	kind, most := [2]int{b.Class(s), int(b.Config(s))}, perKind
	if len(b.Tenants(s)) == 0 {
		most = mostLossy
	}
	if m.kinds[kind] < most && !slices.Contains(m.partner, s) && m.loose(s) {
		m.kinds[kind]++
		m.partner = append(m.partner, s)
	}
}

// atMost bounds what lostOn can be, by the co-location alone.
func (m *mover) atMost(s int) float64 {
	b := m.board
	c := b.Config(s)
	v, ok := m.most[c]
	if !ok {
		for _, t := range b.Tenants(s) {
			v += max(0, 1-b.Speeds().Performance(c, int32(b.Workload(int(t)))))
		}
		m.most[c] = v
	}
	return v
}

// cut keeps the worst in lost.
func (m *mover) cut() {
	slices.SortFunc(m.lost, func(x, y loss) int {
		switch {
		case x.lost > y.lost:
			return -1
		case x.lost < y.lost:
			return 1
		}
		return x.site - y.site
	})
	m.lost = m.lost[:min(mostLossy, len(m.lost))]
}

// lostOn is the weighted progress that the tenants of a device would gain alone
// on it, less the price of a move where company costs less than that.
func (m *mover) lostOn(s int) float64 {
	b := m.board
	tenants := b.Tenants(s)
	if len(tenants) < 2 {
		return 0
	}
	sum, cheapest := 0.0, 0.0
	for i, t := range tenants {
		alone := b.Alone(b.GangOf(int(t)), b.Class(s), false) * m.weightOf(t)
		sum += alone * (1 - b.Speeds().Performance(b.Config(s), int32(b.Workload(int(t)))))
		if i == 0 || alone < cheapest {
			cheapest = alone
		}
	}
	return sum - m.cost*cheapest
}
