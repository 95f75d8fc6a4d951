package jobs

import (
	"fmt"
	"math"

	"github.com/cotenant/cotenant/place"
)

var matchingEntry = entry{
	name:   "matching",
	params: []Param{thresholdParam, patienceParam},
	moves:  true,
	make: func(n numbers, _ Settings) (placer, error) {
		w := newWaiting(n)
		return &matching{waiting: w, gangs: &Greedy{wait: w}}, nil
	},
}

// matching assigns queued jobs of one task to sites such that the sum of what
// they gain over the threshold is the largest, one job a site; then again,
// until nobody gains. So a job that greedy would put beside the first bad
// partner leaves that site to one whom it suits better. Gangs of several tasks
// go before, in arrival order, like those of greedy-wait.
type matching struct {
	waiting *waiting
	gangs   *Greedy
	solver  assignment
	jobs    []int // positions in waiting
	sites   []int32
	count   []int32 // by kind
	value   []float64
	match   []int
}

// most is how many jobs and how many sites are matched at once: it bounds the
// time of a decision.
const (
	mostJobs  = 512
	mostSites = 512
)

func (m *matching) place(b *Board) {
	b.refused = grown(b.refused, int(b.kindCount))
	for i := range b.waiting {
		if w := &b.waiting[i]; w.tasks != 1 {
			b.offer(m.gangs, m.gangs, i)
		}
	}
	for m.round(b) {
	}
	for i := range b.waiting {
		if w := &b.waiting[i]; w.tasks == 1 && b.placed[w.gang] == 0 {
			m.refuse(b, i)
		}
	}
}

// refuse says why a job found no site.
func (m *matching) refuse(b *Board, i int) {
	w := &b.waiting[i]
	r := &b.refused[w.kind]
	if !r.known {
		t := b.gangs[w.gang].tasks[0]
		list, why := b.Candidates(int(t))
		if len(list) > 0 {
			why = Waits
		}
		*r = refusal{why: why, known: true}
		if b.Explain {
			r.words = b.refusedWords(w.gang, why)
		}
	}
	b.hold(i, r.why, r.words)
}

// round matches once and reports whether anybody was placed.
func (m *matching) round(b *Board) bool {
	m.collect(b)
	if len(m.jobs) == 0 || len(m.sites) == 0 {
		return false
	}
	m.fill(b)
	rows, cols := len(m.sites), len(m.jobs)
	value := func(r, c int) float64 { return m.value[r*cols+c] }
	if rows > cols {
		rows, cols = cols, rows
		value = func(r, c int) float64 { return m.value[c*rows+r] }
	}
	m.match = resize(m.match, rows)
	m.solver.solve(rows, cols, value, m.match)
	placed := false
	for r, c := range m.match {
		if value(r, c) <= 0 {
			continue
		}
		s, i := r, c
		if len(m.sites) > len(m.jobs) {
			s, i = c, r
		}
		w := &b.waiting[m.jobs[i]]
		t := b.gangs[w.gang].tasks[0]
		// What fits on its own may not fit beside what was placed in this round:
		// sites of a node share its resources.
		if b.fit(t, m.sites[s]) == Fits {
			b.give(m, t, int(m.sites[s]))
			placed = true
		}
	}
	return placed
}

// collect lists the jobs that wait, of each kind the first few, and the sites
// that some of them fit on, of those alike the first few.
func (m *matching) collect(b *Board) {
	m.jobs, m.sites = m.jobs[:0], m.sites[:0]
	m.count = resize32(m.count, int(b.kindCount))
	b.stamp++
	for i := range b.waiting {
		w := &b.waiting[i]
		if w.tasks != 1 || b.placed[w.gang] > 0 || int(m.count[w.kind]) >= mostSites || len(m.jobs) == mostJobs {
			continue
		}
		m.count[w.kind]++
		m.jobs = append(m.jobs, i)
	}
	if len(m.jobs) == 0 {
		return
	}
	seen := make(map[int32]bool)
	for _, i := range m.jobs {
		w := &b.waiting[i]
		if seen[w.kind] {
			continue
		}
		seen[w.kind] = true
		t := b.gangs[w.gang].tasks[0]
		lo, hi := b.Range(int(t))
		for s := lo; s < hi && len(m.sites) < mostSites; s++ {
			if !m.listed(int32(s)) && b.fit(t, int32(s)) == Fits {
				m.sites = append(m.sites, int32(s))
			}
		}
	}
}

func (m *matching) listed(s int32) bool {
	for _, o := range m.sites {
		if o == s {
			return true
		}
	}
	return false
}

// fill computes what each job gains on each site over the threshold; 0 stands
// for not matched. The smallest advantage goes to who came first.
func (m *matching) fill(b *Board) {
	m.value = zeros(m.value, len(m.sites)*len(m.jobs))
	for c, i := range m.jobs {
		t := b.gangs[b.waiting[i].gang].tasks[0]
		late := m.waiting.late(b, int(b.waiting[i].gang))
		first := 1e-9 * (1 + float64(len(m.jobs)-c)/float64(len(m.jobs)))
		for r, s := range m.sites {
			if b.fit(t, s) != Fits {
				continue
			}
			v := b.gain(t, s) - m.waiting.threshold.of(b, b.sites[s].class)
			switch {
			case late:
				v += urgent
			case v < 0:
				continue
			}
			m.value[r*len(m.jobs)+c] = math.Max(v, 0) + first
		}
	}
}

// urgent is more than any gain: who waited too long is matched first.
const urgent = 1e3

// Choose implements Chooser for the words of its reason.
func (m *matching) Choose(b *Board, t int) (site int, why Refusal) { return m.gangs.Choose(b, t) }

func (m *matching) reason(b *Board, t, s int) place.Reason {
	gain := b.Gain(t, s)
	return place.Reason{
		Words:  fmt.Sprintf("on %s the sum of progress changes by %+.3f, in the best assignment of all that wait", b.siteName(s), gain),
		Scores: map[string]float64{"gain": gain},
	}
}

func grown(r []refusal, n int) []refusal {
	if cap(r) < n {
		return make([]refusal, n)
	}
	r = r[:n]
	clear(r)
	return r
}

func resize32(x []int32, n int) []int32 {
	if cap(x) < n {
		return make([]int32, n)
	}
	x = x[:n]
	clear(x)
	return x
}
