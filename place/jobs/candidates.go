package jobs

import "slices"

// Candidate is a site that takes a task, and how many are just like it.
type Candidate struct{ Site, Alike int32 }

type seen struct{ stamp, at int32 }

const lookBack = 16

// Candidates lists the sites that take a task that is not placed: of sites
// that are alike (same class, same tenants, same room) the first stands for
// all. Sites with tenants of gangs of several tasks are like no other, since
// what a gang loses depends on its other tasks. The list is in the order of
// sites and is good until the next call. why is the most common refusal where
// the list is empty.
func (b *Board) Candidates(t int) (list []Candidate, why Refusal) {
	list, why = b.AnyOrder(t)
	slices.SortFunc(list, func(x, y Candidate) int { return int(x.Site - y.Site) })
	return list, why
}

// AnyOrder is Candidates in an order that means nothing, which is quicker: for
// who breaks ties by the number of the site.
func (b *Board) AnyOrder(t int) (list []Candidate, why Refusal) {
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
		if x := b.indexOf(t); x != nil {
			for _, c := range x.list(b, lo, hi, b.tasks[t].gang) {
				r := b.fit(int32(t), c.Site)
				if r == Fits {
					b.found = append(b.found, c)
				}
				count[r] += c.Alike
			}
		} else {
			for s := lo; s < hi; s++ {
				count[b.consider(int32(t), int32(s))]++
			}
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
	if b.seen[c].stamp == b.stamp && !b.shared(&b.sites[s]) {
		// Where sites with the same tenants are not alike, they are mostly all
		// different: a look at the last few is enough.
		last := int(b.seen[c].at)
		for i := last; i >= max(0, last-lookBack); i-- {
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

// alike reports whether two sites with the same co-location, of which s is not
// shared, are interchangeable for the task.
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
	return !b.shared(y)
}

// shared reports whether a gang of several tasks, or one that was scaled, has
// one on the site.
func (b *Board) shared(s *site) bool {
	for _, r := range s.tenants {
		if k := &b.gangs[b.tasks[r].gang]; len(k.tasks) > 1 || k.scale != 1 {
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

// Holds reports whether some node would have room for all tasks of a pending
// gang if nothing else ran there.
func (b *Board) Holds(g int) bool {
	kind := b.gangs[g].kind
	yes, known := b.holds[kind]
	if !known || kind < 0 {
		yes = b.holdsWhole(&b.gangs[g])
		b.holds[kind] = yes
	}
	return yes
}

func (b *Board) holdsWhole(k *gang) bool {
	need := make([]int64, len(b.dims))
	for _, t := range k.tasks {
		if b.tasks[t].lacks != "" {
			return false
		}
		for d, amount := range b.tasks[t].need {
			need[d] += amount
		}
	}
	for i := range b.nodes {
		n := &b.nodes[i]
		slots := int32(0)
		for _, d := range b.devices[b.firstDevice[i]:b.firstDevice[i+1]] {
			slots += d.slots
		}
		fits := slots >= k.wants && (n.Slots == 0 || n.Slots >= len(k.tasks))
		for d, name := range b.dims {
			fits = fits && need[d] <= n.Capacity[name]
		}
		if fits {
			return true
		}
	}
	return false
}

// nodeKey is equal for nodes that are interchangeable for gangs that have
// nothing there yet: same class, same room, same tenants on as many sites. The
// tenants of gangs of several tasks make a node like no other.
func (b *Board) nodeKey(n int32) uint64 {
	key := uint64(b.sites[b.host+int(n)].class)
	of := func(s int32) {
		st := &b.sites[s]
		if b.shared(st) {
			key += mix(^uint64(n))
		}
		// A sum: the order of a node's devices means nothing.
		key += mix(uint64(st.config)<<1 | 1)
	}
	of(int32(b.host) + n)
	for d := b.firstDevice[n]; d < b.firstDevice[n+1]; d++ {
		key += mix(uint64(b.devices[d].used)<<32 | uint64(b.devices[d].slots)<<8 | 2)
		if b.atDevices() {
			of(d)
		}
	}
	key = mix(key + uint64(b.state[n].slots)<<8)
	for _, free := range b.state[n].free {
		key = mix(key ^ uint64(free))
	}
	return key
}

// mix spreads the bits of a number (the finaliser of splitmix64; Steele, Lea,
// Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// room is the free slots of all devices of a node.
func (b *Board) room(node int32) int32 {
	free := int32(0)
	for _, d := range b.devices[b.firstDevice[node]:b.firstDevice[node+1]] {
		free += d.slots - d.used
	}
	return free
}

// inquire asks the model in one call about all that would come of putting the
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
