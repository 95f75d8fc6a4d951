package history

import (
	"maps"
	"slices"
)

// Misfits are the co-locations that do not fit on a device together: the
// tasks' memory is more than the device has. That is known before anything is
// run, so policies always know it and models need not learn it. It is
// immutable and safe for concurrent use; a nil one is empty.
type Misfits struct {
	byClass map[string]map[string]bool // class, then co-location key
}

// SplitMisfits parts the samples that say "does not fit": a rate of 0 of a
// co-location of several tasks on one device, whose rate alone is known. What
// is left can be fitted. Samples of a co-location that is a misfit by one of
// them are all left out.
func SplitMisfits(samples []Sample) (fit []Sample, m *Misfits) {
	m = &Misfits{byClass: map[string]map[string]bool{}}
	for _, s := range samples {
		if s.saysMisfit() {
			if m.byClass[s.Class] == nil {
				m.byClass[s.Class] = map[string]bool{}
			}
			m.byClass[s.Class][s.Colocation.Key()] = true
		}
	}
	fit = make([]Sample, 0, len(samples))
	for _, s := range samples {
		if s.Scope != ScopeDevice || !m.Has(s.Class, s.Colocation.Key()) {
			fit = append(fit, s)
		}
	}
	return fit, m
}

func (s Sample) saysMisfit() bool {
	return s.Scope == ScopeDevice && s.Metric == Rate && s.Value == 0 && s.Alone > 0 && s.Colocation.Tasks() > 1
}

// Has reports whether the co-location with that key (cluster.Colocation.Key)
// does not fit on a device of the class.
func (m *Misfits) Has(class, key string) bool { return m != nil && m.byClass[class][key] }

// Keys lists the co-locations that do not fit on a device of the class,
// sorted.
func (m *Misfits) Keys(class string) []string {
	if m == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(m.byClass[class]))
}

// Len is the number of misfits over all classes.
func (m *Misfits) Len() int {
	n := 0
	if m != nil {
		for _, keys := range m.byClass {
			n += len(keys)
		}
	}
	return n
}
