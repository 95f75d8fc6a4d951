package rl

// Shared takes out of advantages the luck that episodes of one group had in
// common: a burst of arrivals makes every action before it look bad. An
// episode's action can't have caused what befell the others, so subtracting
// their advantages at the same time leaves the gradient's expectation as it
// was and takes variance away (Mao et al., Variance reduction for reinforcement
// learning in input-driven environments, ICLR 2019, section 4):
//
//	A_i(t) -= c mean over the others j of its group of A_j(t)
//
// with c, in [0, 1], what takes the most. A_j between two decisions of j is on
// the line between them. advantages, one slice for each trajectory, change in
// place; the result is the share of their variance about 0 that is gone.
func Shared(trajectories []*Trajectory, advantages [][]float64) float64 {
	groups := map[uint64][]int{}
	for i, t := range trajectories {
		if t.Group != 0 {
			groups[t.Group] = append(groups[t.Group], i)
		}
	}
	common := make([][]float64, len(trajectories))
	var with, square, before float64
	for i, t := range trajectories { // not over the map: sums must not depend on its order
		for _, a := range advantages[i] {
			before += a * a
		}
		others := groups[t.Group]
		if len(others) < 2 {
			continue
		}
		common[i] = make([]float64, t.Len())
		for _, j := range others {
			if j != i {
				addAt(common[i], t, trajectories[j], advantages[j], 1/float64(len(others)-1))
			}
		}
		for d, m := range common[i] {
			with += advantages[i][d] * m
			square += m * m
		}
	}
	if !(with > 0 && square > 0) {
		return 0
	}
	c := min(1, with/square)
	var after float64
	for i := range advantages {
		for d := range advantages[i] {
			if common[i] != nil {
				advantages[i][d] -= c * common[i][d]
			}
			after += advantages[i][d] * advantages[i][d]
		}
	}
	return 1 - after/before
}

// addAt adds share of other's advantages, at the times of t's decisions, to sum.
func addAt(sum []float64, t, other *Trajectory, advantages []float64, share float64) {
	now, at := t.Before, 0 // at: the last decision of other that is not after now
	from := other.Before
	for d := range sum {
		for at+1 < other.Len() && from+other.Seconds[at] <= now {
			from += other.Seconds[at]
			at++
		}
		v := advantages[at]
		if length := other.Seconds[at]; at+1 < other.Len() && now > from && length > 0 {
			v += (advantages[at+1] - v) * (now - from) / length
		}
		sum[d] += share * v
		now += t.Seconds[d]
	}
}
