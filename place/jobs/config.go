package jobs

import (
	"slices"
	"strings"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
)

// Config numbers a co-location on a class within one Speeds. Configs of
// different classes differ.
type Config int32

const none Config = -1

// member is a workload of a co-location and how many tasks it has there.
type member struct{ workload, count int32 }

type config struct {
	class   int32
	tasks   int32
	members []member // by workload number, ascending
	asked   bool
	fits    fitness
	// performance and std are by member.
	performance, std []float64
	next             []Config // by workload number; none where not numbered yet
	prev             []Config // by member; likewise
}

func (s *Speeds) add(class int32, members []member) Config {
	c := config{class: class, members: members}
	for _, m := range members {
		c.tasks += m.count
		c.prev = append(c.prev, none)
	}
	s.configs = append(s.configs, c)
	return Config(len(s.configs) - 1)
}

// Next is the co-location with one more task of workload w.
func (s *Speeds) Next(c Config, w int32) Config {
	if next := s.configs[c].next; int(w) < len(next) && next[w] != none {
		return next[w]
	}
	old := &s.configs[c]
	members := slices.Clone(old.members)
	at, found := findMember(members, w)
	if found {
		members[at].count++
	} else {
		members = slices.Insert(members, at, member{w, 1})
	}
	n := s.intern(old.class, members)
	old = &s.configs[c]
	for len(old.next) < len(s.workloads) {
		old.next = append(old.next, none)
	}
	old.next[w] = n
	return n
}

// Prev is the co-location with one task of workload w less. It panics where
// there is none.
func (s *Speeds) Prev(c Config, w int32) Config {
	old := &s.configs[c]
	at, found := findMember(old.members, w)
	if !found {
		panic("jobs: no task of " + s.workloads[w] + " to take from the co-location")
	}
	if p := old.prev[at]; p != none {
		return p
	}
	members := slices.Clone(old.members)
	members[at].count--
	if members[at].count == 0 {
		members = slices.Delete(members, at, at+1)
	}
	p := s.intern(old.class, members)
	s.configs[c].prev[at] = p
	return p
}

// findMember looks through the few members in order.
func findMember(ms []member, w int32) (at int, found bool) {
	for i := range ms {
		if ms[i].workload >= w {
			return i, ms[i].workload == w
		}
	}
	return len(ms), false
}

func (s *Speeds) intern(class int32, members []member) Config {
	if len(members) == 0 {
		return s.empty[class]
	}
	s.key = appendKey(s.key[:0], class, members)
	if c, ok := s.index[string(s.key)]; ok {
		return c
	}
	key := string(s.key)
	c := s.add(class, members)
	s.index[key] = c
	return c
}

func appendKey(key []byte, class int32, members []member) []byte {
	key = append(key, byte(class), byte(class>>8))
	for _, m := range members {
		key = append(key, byte(m.workload), byte(m.workload>>8), byte(m.count), byte(m.count>>8))
	}
	return key
}

// Tasks is the number of tasks in the co-location.
func (s *Speeds) Tasks(c Config) int { return int(s.configs[c].tasks) }

// Count is the number of tasks of workload w in the co-location.
func (s *Speeds) Count(c Config, w int32) int {
	if at, found := findMember(s.configs[c].members, w); found {
		return int(s.configs[c].members[at].count)
	}
	return 0
}

// Colocation is the multiset that the config stands for.
func (s *Speeds) Colocation(c Config) cluster.Colocation {
	out := cluster.Colocation{}
	for _, m := range s.configs[c].members {
		out[s.workloads[m.workload]] = int(m.count)
	}
	return out
}

// Class is the class of the config.
func (s *Speeds) Class(c Config) string { return s.classes[s.configs[c].class] }

// Fits reports whether the co-location fits together.
func (s *Speeds) Fits(c Config) bool {
	k := &s.configs[c]
	if k.fits == unchecked {
		k.fits = misfits
		if s.fitsTogether(k) {
			k.fits = fits
		}
	}
	return k.fits == fits
}

// fitness is whether a co-location fits together, if that was looked up.
type fitness uint8

const (
	unchecked fitness = iota
	fits
	misfits
)

// Performance is what a task of workload w in the co-location is believed to
// reach: the model's value less Pessimism, or what was observed.
func (s *Speeds) Performance(c Config, w int32) float64 {
	a := s.answered(c)
	if at, found := findMember(a.members, w); found {
		return a.performance[at]
	}
	return 1
}

// Std is the standard deviation of the error expected of Performance, before
// pessimism: 0 for what was measured or observed.
func (s *Speeds) Std(c Config, w int32) float64 {
	a := s.answered(c)
	if at, found := findMember(a.members, w); found {
		return a.std[at]
	}
	return 0
}

func (s *Speeds) answered(c Config) *config {
	if !s.configs[c].asked {
		s.pending = append(s.pending[:0], c)
		s.ask(s.pending)
	}
	return &s.configs[c]
}

// ask answers many co-locations in one call of the model for each class.
func (s *Speeds) ask(cs []Config) {
	byClass := make([][]Config, len(s.classes))
	for _, c := range cs {
		k := &s.configs[c]
		if k.asked {
			continue
		}
		k.asked = true
		k.performance, k.std = make([]float64, len(k.members)), make([]float64, len(k.members))
		for i := range k.performance {
			k.performance[i] = 1
		}
		if s.model != nil && k.tasks > 1 {
			byClass[k.class] = append(byClass[k.class], c)
		}
	}
	for class, cs := range byClass {
		if len(cs) == 0 {
			continue
		}
		colocations := make([]cluster.Colocation, len(cs))
		for i, c := range cs {
			colocations[i] = s.Colocation(c)
		}
		rows := s.model.Predict(s.modelClass(int32(class)), history.Rate, colocations)
		for i, c := range cs {
			s.fill(&s.configs[c], rows[i])
		}
	}
	if len(s.observed) > 0 {
		for _, c := range cs {
			s.recall(&s.configs[c])
		}
	}
}

// fill takes a row of estimates, which is in the order of workload names.
func (s *Speeds) fill(k *config, row []interference.Estimate) {
	order := make([]int, len(k.members))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return strings.Compare(s.workloads[k.members[a].workload], s.workloads[k.members[b].workload])
	})
	for j, at := range order {
		e := row[j]
		switch {
		case !e.Known:
			k.performance[at] = 1 / float64(k.tasks)
		case e.Measured:
			k.performance[at] = e.Value
		default:
			k.performance[at] = max(0, e.Value-s.options.Pessimism*e.Std)
			k.std[at] = e.Std
		}
	}
}

// fitsTogether looks for misfits among the co-location and its pairs: what
// does not fit in two does not fit in more.
func (s *Speeds) fitsTogether(k *config) bool {
	if s.options.Misfits == nil || k.tasks < 2 {
		return true
	}
	class := s.classes[k.class]
	if s.model != nil {
		class = s.modelClass(k.class)
	}
	whole := cluster.Colocation{}
	for i, a := range k.members {
		whole[s.workloads[a.workload]] = int(a.count)
		for j, b := range k.members[:i+1] {
			if i == j && a.count < 2 {
				continue
			}
			pair := cluster.Colocation{s.workloads[a.workload]: 1}
			pair[s.workloads[b.workload]]++
			if s.options.Misfits.Has(class, pair.Key()) {
				return false
			}
		}
	}
	return k.tasks == 2 || !s.options.Misfits.Has(class, whole.Key())
}

// forget drops the co-locations once there are too many; observations stay.
// Configs of before mean nothing afterwards.
func (s *Speeds) forget() {
	if len(s.configs) <= s.limit {
		return
	}
	s.epoch++
	s.configs, s.index, s.empty = nil, map[string]Config{}, nil
	for n := range s.classes {
		s.empty = append(s.empty, s.add(int32(n), nil))
	}
	if s.model != nil {
		s.askPairs()
	}
}
