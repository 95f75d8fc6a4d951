package jobs

import (
	"math"
	"slices"
)

// step is a change of the board, for Undo.
type step struct {
	task     int32
	from, to int32 // sites; -1 for none
	at       int32 // position among the tenants of from
	on       []int // devices on from
	// join and part: the task became one of its gang, or left it from position at
	// of its tasks.
	join, part bool
}

// Mark is a point that Undo takes the board back to.
func (b *Board) Mark() int { return len(b.log) }

// Undo takes back all changes since a Mark; what it leaves is what was there,
// to the last bit.
func (b *Board) Undo(mark int) {
	for len(b.log) > mark {
		u := b.log[len(b.log)-1]
		b.log = b.log[:len(b.log)-1]
		if u.join || u.part {
			b.unsize(u)
			continue
		}
		if u.to >= 0 {
			b.vacate(u.task)
			b.spoil(u.to)
		}
		b.placing(u.task, u.to, u.from)
		if u.from >= 0 {
			b.tasks[u.task].on = u.on
			b.occupyAt(u.task, u.from, int(u.at))
			b.spoil(u.from)
		}
		b.dirty = append(b.dirty, b.tasks[u.task].gang)
		b.settle()
		if b.rules != nil {
			b.rules.undo(b, u)
		}
	}
}

// Put puts a task that is not placed on a site. It does not check: ask Fit
// first.
func (b *Board) Put(t, s int) { b.shift(int32(t), int32(s)) }

// Move takes a task from its site to another. It does not check: ask Fit and
// Movable first.
func (b *Board) Move(t, s int) { b.shift(int32(t), int32(s)) }

// Lift takes a task from its site and leaves it nowhere.
func (b *Board) Lift(t int) { b.shift(int32(t), -1) }

func (b *Board) shift(t, s int32) {
	u := step{task: t, from: b.tasks[t].site, to: s, at: -1, on: b.tasks[t].on}
	if u.from >= 0 {
		u.at = b.vacate(t)
		b.spoil(u.from)
	}
	b.placing(t, u.from, s)
	if s >= 0 {
		b.tasks[t].on = b.chooseDevices(t, s)
		b.occupy(t, s)
		b.spoil(s)
	}
	b.dirty = append(b.dirty, b.tasks[t].gang)
	b.settle()
	if b.rules != nil {
		b.rules.do(b, u)
	}
	b.log = append(b.log, u)
}

// placing counts the pending tasks of a gang that have a site.
func (b *Board) placing(t, from, to int32) {
	if b.tasks[t].run >= 0 {
		return
	}
	if from >= 0 {
		b.placed[b.tasks[t].gang]--
	}
	if to >= 0 {
		b.placed[b.tasks[t].gang]++
	}
}

// chooseDevices takes the site's device, or those where the task ran if they
// are free, or the node's emptiest, the first of equals.
func (b *Board) chooseDevices(t, s int32) []int {
	wants := int(b.tasks[t].wants)
	if wants == 0 {
		return nil
	}
	if d := b.sites[s].device; d >= 0 {
		return b.numbers[d : d+1 : d+1]
	}
	lo, hi := b.firstDevice[b.sites[s].node], b.firstDevice[b.sites[s].node+1]
	devices := b.devices[lo:hi]
	if x := &b.tasks[t]; s == x.home && !slices.ContainsFunc(x.homeOn, func(d int) bool { return devices[d].used >= devices[d].slots }) {
		return x.homeOn
	}
	var chosen []int
	for range wants {
		best := -1
		for d := range devices {
			free := devices[d].slots - devices[d].used
			if free > 0 && !slices.Contains(chosen, d) && (best < 0 || free > devices[best].slots-devices[best].used) {
				best = d
			}
		}
		if best < 0 {
			break
		}
		if wants == 1 {
			return b.numbers[best : best+1 : best+1]
		}
		chosen = append(chosen, best)
	}
	return chosen
}

func (b *Board) occupy(t, s int32) { b.occupyAt(t, s, len(b.sites[s].tenants)) }

func (b *Board) occupyAt(t, s int32, at int) {
	x, st := &b.tasks[t], &b.sites[s]
	x.site = s
	if at == len(st.tenants) {
		st.tenants = append(st.tenants, t)
	} else {
		st.tenants = slices.Insert(st.tenants, at, t)
	}
	if b.meets(s) {
		st.config = b.speeds.Next(st.config, x.workload)
	}
	b.count(x, st, 1)
}

// vacate takes the task off its site; at is where it stood among the tenants.
func (b *Board) vacate(t int32) (at int32) {
	x := &b.tasks[t]
	st := &b.sites[x.site]
	i := slices.Index(st.tenants, t)
	st.tenants = slices.Delete(st.tenants, i, i+1)
	if b.meets(x.site) {
		st.config = b.speeds.Prev(st.config, x.workload)
	}
	b.count(x, st, -1)
	x.site, x.on = -1, nil
	return int32(i)
}

// meets reports whether tasks on the site can interfere: at the scope of a
// device, those that need none do not.
func (b *Board) meets(s int32) bool { return int(s) < b.host || !b.atDevices() }

func (b *Board) count(x *task, st *site, by int32) {
	b.touch(st.node)
	n := &b.state[st.node]
	n.tasks += by
	if n.slots >= 0 {
		n.slots -= by
	}
	for d, amount := range x.need {
		n.free[d] -= int64(by) * amount
	}
	for _, d := range x.on {
		b.devices[int(b.firstDevice[st.node])+d].used += by
	}
	b.slotsFree -= int(by) * len(x.on)
	n.share = b.share(st.node)
}

// share is the mean, over the resources, slots and device slots that a node
// has, of the share that is taken; the number of tasks where it has none.
func (b *Board) share(node int32) float64 {
	n, state := &b.nodes[node], &b.state[node]
	sum, parts := 0.0, 0
	for d, name := range b.dims {
		if c := n.Capacity[name]; c > 0 {
			sum += 1 - float64(state.free[d])/float64(c)
			parts++
		}
	}
	if n.Slots > 0 {
		sum += float64(state.tasks) / float64(n.Slots)
		parts++
	}
	used, slots := int32(0), int32(0)
	for _, d := range b.devices[b.firstDevice[node]:b.firstDevice[node+1]] {
		used += d.used
		slots += d.slots
	}
	if slots > 0 {
		sum += float64(used) / float64(slots)
		parts++
	}
	if parts == 0 {
		return float64(state.tasks)
	}
	return sum / float64(parts)
}

// Progress is a gang's progress as the board stands; of a gang of which some
// tasks are placed, what it would be if those were all. 0 for none.
func (b *Board) Progress(g int) float64 { return b.gangs[g].progress }

// Gained is by how much Total changed since Reset.
func (b *Board) Gained() float64 { return b.gained }

// Total is the sum of progress over all gangs.
func (b *Board) Total() float64 {
	sum := 0.0
	for _, t := range b.running {
		if k := &b.gangs[b.tasks[t].gang]; k.tasks[0] == t {
			sum += k.progress
		}
	}
	for i := range b.waiting {
		sum += b.gangs[b.waiting[i].gang].progress
	}
	return sum
}

// value is the progress of a gang from where its tasks are.
func (b *Board) value(g int32) float64 {
	alone, worst := b.pace(&b.gangs[g])
	return alone * worst * b.gangs[g].scale
}

// pace is what a gang would make alone where its tasks are, and the lowest
// performance among them; 0 and 0 where none is placed.
func (b *Board) pace(k *gang) (alone, worst float64) {
	if len(k.tasks) == 1 {
		t := &b.tasks[k.tasks[0]]
		if t.site < 0 {
			return 0, 0
		}
		return k.alone[2*b.sites[t.site].class], b.performance(t)
	}
	worst = math.Inf(1)
	placed := false
	for _, i := range k.tasks {
		if t := &b.tasks[i]; t.site >= 0 {
			placed = true
			worst = min(worst, b.performance(t))
		}
	}
	if !placed {
		return 0, 0
	}
	alone = math.Inf(1)
	remote := b.remote(k)
	for _, i := range k.tasks {
		if t := &b.tasks[i]; t.site >= 0 && !t.ps {
			at := 2 * b.sites[t.site].class
			alone = min(alone, between(k.alone[at], k.alone[at+1], remote))
		}
	}
	if math.IsInf(alone, 1) {
		alone = 1 // parameter servers alone: their workers are still to come
	}
	return alone, worst
}

// remote is how much of a gang's traffic the busiest of its nodes has to carry
// to others, over what that is when the tasks are dealt out one a node: 0 where
// all are on one node, and more than 1 where many workers on a node talk to
// parameter servers on another. Each worker exchanges as much with each
// parameter server. Workers without parameter servers talk to all others: 1
// where they are not all on one node.
func (b *Board) remote(k *gang) float64 {
	workers, servers, split := 0, 0, false
	first := int32(-1)
	for _, i := range k.tasks {
		t := &b.tasks[i]
		if t.site < 0 {
			continue
		}
		if node := b.sites[t.site].node; first < 0 {
			first = node
		} else if node != first {
			split = true
		}
		if t.ps {
			servers++
		} else {
			workers++
		}
	}
	switch {
	case !split || workers == 0:
		return 0
	case servers == 0:
		return 1
	}
	busiest := 0.0
	for _, i := range k.tasks {
		if b.tasks[i].site < 0 {
			continue
		}
		node, w, p := b.sites[b.tasks[i].site].node, 0, 0
		for _, j := range k.tasks {
			if t := &b.tasks[j]; t.site >= 0 && b.sites[t.site].node == node {
				if t.ps {
					p++
				} else {
					w++
				}
			}
		}
		busiest = max(busiest, float64(w*(servers-p)+p*(workers-w)))
	}
	return busiest / float64(max(servers, workers))
}

// between is the progress of a gang whose remote traffic is a share of that
// when it is dealt out, given the progress with none of it and with all: what an
// iteration takes longer grows with the share.
func between(local, apart, share float64) float64 {
	if apart > local {
		share = min(share, 1) // no rule says how much faster still
	}
	switch {
	case share == 0 || local == apart || local <= 0 || apart <= 0:
		return local
	case share == 1:
		return apart
	}
	return 1 / (1/local + share*(1/apart-1/local))
}

// performance is that of a task where it is placed. A gang that has a node for
// itself is alone there, by definition: what its tasks cost each other is in
// its rate alone.
func (b *Board) performance(t *task) float64 {
	if !b.meets(t.site) || int(t.site) >= b.host && b.hasToItself(t) {
		return 1
	}
	return b.speeds.Performance(b.sites[t.site].config, t.workload)
}

// hasToItself reports whether all tasks on the task's site are of its gang.
func (b *Board) hasToItself(t *task) bool {
	for _, o := range b.sites[t.site].tenants {
		if b.tasks[o].gang != t.gang {
			return false
		}
	}
	return true
}

// Gain is by how much the sum of progress over all gangs changes if the task,
// which is not placed, is put on the site. What is placed of its own gang
// counts as if it were all. It does not check: ask Fit first.
func (b *Board) Gain(t, s int) float64 { return b.gain(int32(t), int32(s)) }

func (b *Board) gain(t, s int32) float64 {
	x, st := &b.tasks[t], &b.sites[s]
	k := &b.gangs[x.gang]
	if !b.meets(s) {
		return b.asIf(t, s)
	}
	next := b.speeds.Next(st.config, x.workload)
	if len(k.tasks) > 1 {
		return b.asIf(t, s)
	}
	for _, r := range st.tenants {
		if len(b.gangs[b.tasks[r].gang].tasks) > 1 {
			return b.asIf(t, s)
		}
	}
	sum := k.alone[2*st.class] * k.scale * b.speeds.Performance(next, x.workload)
	for _, r := range st.tenants {
		o := &b.tasks[r]
		rk := &b.gangs[o.gang]
		sum += rk.alone[2*st.class]*rk.scale*b.speeds.Performance(next, o.workload) - rk.progress
	}
	return sum
}

// asIf values the gangs on the site as if the task were there.
func (b *Board) asIf(t, s int32) float64 {
	x, st := &b.tasks[t], &b.sites[s]
	config := st.config
	if b.meets(s) {
		st.config = b.speeds.Next(config, x.workload)
	}
	x.site = s
	st.tenants = append(st.tenants, t)
	sum := b.ownAsIf(t) - b.gangs[x.gang].progress
	b.stamp++
	b.gangs[x.gang].stamp = b.stamp
	for _, r := range st.tenants {
		g := b.tasks[r].gang
		if b.gangs[g].stamp != b.stamp {
			b.gangs[g].stamp = b.stamp
			sum += b.value(g) - b.gangs[g].progress
		}
	}
	st.config, x.site, st.tenants = config, -1, st.tenants[:len(st.tenants)-1]
	return sum
}

// ownValue is the progress of a gang with one more of its tasks in a co-location.
type ownValue struct {
	task     int32
	settled  int // of the board
	progress float64
}

// ownAsIf values the gang of a task that stands where it is looked at. On nodes
// where none of the gang is, that depends on the co-location alone, and many
// sites have the same.
func (b *Board) ownAsIf(t int32) float64 {
	x := &b.tasks[t]
	k := &b.gangs[x.gang]
	st := &b.sites[x.site]
	if len(k.tasks) == 1 || !b.meets(x.site) || b.hostsAnother(st.node, t) {
		return b.value(x.gang)
	}
	for int(st.config) >= len(b.own) {
		b.own = append(b.own, ownValue{task: -1})
	}
	o := &b.own[st.config]
	if o.task != t || o.settled != b.settled {
		*o = ownValue{t, b.settled, b.value(x.gang)}
	}
	return o.progress
}

// hostsAnother reports whether another task of a task's gang is on the node.
func (b *Board) hostsAnother(node, t int32) bool {
	for _, o := range b.gangs[b.tasks[t].gang].tasks {
		if s := b.tasks[o].site; o != t && s >= 0 && b.sites[s].node == node {
			return true
		}
	}
	return false
}
