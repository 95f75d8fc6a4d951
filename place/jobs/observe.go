package jobs

import "github.com/cotenant/cotenant/place"

// mean is a running mean of what was observed.
type mean struct {
	value float64
	n     float64
}

// Observe takes in what was measured while the co-locations of o.View held: it
// overrides what the model says of the same co-locations, by a running mean.
//
// The progress of a gang over its progress alone is the performance of its
// slowest task. Whose that is can be told where the gang has one task, and
// where all its tasks that are not by themselves on their site are of one
// workload in one co-location; other gangs teach nothing. Where some of its
// tasks are by themselves, a performance above 1 hides behind theirs, and 1 is
// what is noted.
func (s *Speeds) Observe(o place.Outcome) {
	if o.View == nil {
		return
	}
	if s.observer == nil {
		s.observer = NewBoard(s)
	}
	b := s.observer
	b.Reset(place.Request{View: o.View, Now: o.Now})
	for _, t := range b.running {
		g := b.tasks[t].gang
		k := &b.gangs[g]
		if k.tasks[0] != t {
			continue
		}
		config, w, ok := b.identified(k)
		progress, measured := o.Performance[b.tasks[t].id]
		for _, r := range k.tasks {
			p, have := o.Performance[b.tasks[r].id]
			if have && !b.tasks[r].ps && (!measured || p < progress) {
				progress, measured = p, true
			}
		}
		if alone, _ := b.pace(k); ok && measured && alone > 0 {
			s.note(config, w, progress/alone)
		}
	}
}

// identified is the co-location and the workload in it that a gang's progress
// tells about.
func (b *Board) identified(k *gang) (c Config, w int32, ok bool) {
	for _, t := range k.tasks {
		x := &b.tasks[t]
		if !b.meets(x.site) || b.speeds.Tasks(b.sites[x.site].config) < 2 {
			continue
		}
		if ok && (b.sites[x.site].config != c || x.workload != w) {
			return 0, 0, false
		}
		c, w, ok = b.sites[x.site].config, x.workload, true
	}
	return c, w, ok
}

// note keeps the mean of what was observed of a workload in a co-location.
func (s *Speeds) note(c Config, w int32, performance float64) {
	k := s.answered(c)
	at, _ := findMember(k.members, w)
	key := string(observedKey(s.key[:0], k, w))
	m := s.observed[key]
	m.n++
	m.value += (performance - m.value) / m.n
	s.observed[key] = m
	k.performance[at], k.std[at] = m.value, 0
}

// recall puts what was observed before over what the model said.
func (s *Speeds) recall(k *config) {
	for i, member := range k.members {
		s.key = observedKey(s.key[:0], k, member.workload)
		if m, ok := s.observed[string(s.key)]; ok {
			k.performance[i], k.std[i] = m.value, 0
		}
	}
}

func observedKey(key []byte, k *config, w int32) []byte {
	key = append(key, byte(w), byte(w>>8))
	return appendKey(key, k.class, k.members)
}
