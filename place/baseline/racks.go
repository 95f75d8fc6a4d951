package baseline

// apart lists the exchanges of two states within reach, each with what it
// gains where the racks of the nodes gain, too: that depends on what else is
// in them, so nothing of it is remembered.
func (x *exchanges) apart(s, u int32, r reach) []exchange {
	x.list(s, u, r)
	now := x.score(s) + x.score(u)
	racks := [2]int{x.rack(s), x.rack(u)}
	for i := range x.pairs {
		e := &x.pairs[i]
		e.gain -= now
		if racks[0] != racks[1] {
			e.gain += x.rise(racks[0], s, e.a) + x.rise(racks[1], u, e.b)
		}
	}
	return x.pairs
}

// rise is by how much a rack's part of the value rises where a node in it goes
// from one state to another; 0 where racks do not count.
func (x *exchanges) rise(rack int, from, to int32) float64 {
	if rack < 0 || from == to {
		return 0
	}
	values := x.trial.Values
	before, after := values.Counts(x.states[from].config), values.Counts(x.states[to].config)
	x.by = x.by[:0]
	for w := range before {
		x.by = append(x.by, int(after[w])-int(before[w]))
	}
	return x.trial.InRack(rack, x.by) - x.trial.InRack(rack, nil)
}
