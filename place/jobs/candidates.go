package jobs

import "slices"

// Candidate is a site that takes a task, and how many are just like it.
type Candidate struct{ Site, Alike int32 }

type seen struct{ stamp, at int32 }

// Candidates lists the sites that take a task that is not placed: of sites
// that are alike (same class, same tenants, same room) the first stands for
// all. Sites with tenants of gangs of several tasks are like no other, since
// what a gang loses depends on its other tasks. The list is in the order of
// sites and is good until the next call. why is the most common refusal where
// the list is empty.
func (b *Board) Candidates(t int) (list []Candidate, why Refusal) {
	b.found = b.found[:0]
	b.stamp++
	var count [refusals]int32
	if b.only != nil {
		for _, s := range b.only {
			count[b.consider(int32(t), s)]++
		}
	} else {
		lo, hi := b.Range(t)
		if n := b.onlyNode; n >= 0 {
			if hi == b.host {
				lo, hi = int(b.firstDevice[n]), int(b.firstDevice[n+1])
			} else {
				lo, hi = b.host+int(n), b.host+int(n)+1
			}
		}
		if hi == b.host && b.slotsFree == 0 {
			return b.found, Full
		}
		for s := lo; s < hi; s++ {
			count[b.consider(int32(t), int32(s))]++
		}
	}
	if len(b.found) > 0 {
		return b.found, Fits
	}
	why = Lacking
	for r := range refusals {
		if count[r] > count[why] {
			why = r
		}
	}
	return b.found, why
}

// consider adds a site to the list, or counts it to one like it.
func (b *Board) consider(t, s int32) Refusal {
	if r := b.fit(t, s); r != Fits {
		return r
	}
	c := b.sites[s].config
	for int(c) >= len(b.seen) {
		b.seen = append(b.seen, make([]seen, len(b.speeds.configs)-len(b.seen))...)
	}
	if b.seen[c].stamp == b.stamp {
		for i := int(b.seen[c].at); i >= 0; i-- {
			f := &b.found[i]
			if b.sites[f.Site].config == c && b.alike(t, s, f.Site) {
				f.Alike++
				return Fits
			}
		}
	}
	b.seen[c] = seen{b.stamp, int32(len(b.found))}
	b.found = append(b.found, Candidate{s, 1})
	return Fits
}

// alike reports whether two sites with the same co-location are
// interchangeable for the task.
func (b *Board) alike(t, s, other int32) bool {
	x, y := &b.sites[s], &b.sites[other]
	n, m := &b.state[x.node], &b.state[y.node]
	if n.slots != m.slots || !slices.Equal(n.free, m.free) {
		return false
	}
	if x.device >= 0 {
		p, q := b.devices[b.firstDevice[x.node]+x.device], b.devices[b.firstDevice[y.node]+y.device]
		if p != q {
			return false
		}
	} else if b.room(x.node) != b.room(y.node) {
		return false
	}
	if b.rules != nil && x.node != y.node {
		return false
	}
	if len(b.gangs[b.tasks[t].gang].tasks) > 1 {
		if x.node != y.node && (n.tasks != m.tasks || b.room(x.node) != b.room(y.node) || b.hosts(x.node, b.tasks[t].gang) || b.hosts(y.node, b.tasks[t].gang)) {
			return false
		}
	}
	return !b.shared(x) && !b.shared(y)
}

// shared reports whether a gang of several tasks has one on the site.
func (b *Board) shared(s *site) bool {
	for _, r := range s.tenants {
		if len(b.gangs[b.tasks[r].gang].tasks) > 1 {
			return true
		}
	}
	return false
}

// hosts reports whether a task of the gang is on the node.
func (b *Board) hosts(node, g int32) bool {
	for _, t := range b.gangs[g].tasks {
		if s := b.tasks[t].site; s >= 0 && b.sites[s].node == node {
			return true
		}
	}
	return false
}

// room is the free slots of all devices of a node.
func (b *Board) room(node int32) int32 {
	free := int32(0)
	for _, d := range b.devices[b.firstDevice[node]:b.firstDevice[node+1]] {
		free += d.slots - d.used
	}
	return free
}

// Gains asks the model in one call about all that would come of putting the
// task on the candidates; Gain is then cheap.
func (b *Board) inquire(t int, list []Candidate) {
	b.inquiries = b.inquiries[:0]
	w := b.tasks[t].workload
	for _, c := range list {
		if !b.meets(c.Site) {
			continue
		}
		next := b.speeds.Next(b.sites[c.Site].config, w)
		if !b.speeds.configs[next].asked {
			b.inquiries = append(b.inquiries, next)
		}
	}
	if len(b.inquiries) > 0 {
		b.speeds.ask(b.inquiries)
	}
}
