package contention

import "slices"

// claim is what a job asks of a resource of a node: while it is at it, a rate,
// for a number of tasks; and the part of the time in which it is.
type claim struct {
	rate   float64
	weight float64
	busy   float64
}

// toldApart bounds the neighbours whose comings and goings are followed; those
// beyond, the busiest, count as always there.
const toldApart = 10

// share is the mean rate that own gets of a capacity while it asks for it,
// beside others that come and go independently. At each instant it is the
// weighted max-min fair allocation: nobody gets more than he asks, and what
// the modest leave is divided among the greedy in proportion to their weights.
// It sorts others.
//
// More or busier or greedier others never give more: at no instant do they.
// Beyond toldApart of them this holds but for which of them count as always
// there, some tenths of a percent.
func share(capacity float64, own claim, others []claim) float64 {
	if own.rate <= 0 {
		return 0
	}
	total := own.rate
	for _, o := range others {
		total += o.rate
	}
	if total <= capacity {
		return own.rate
	}
	if len(others) > toldApart {
		slices.SortFunc(others, func(a, b claim) int {
			if byBusy := compare(b.busy, a.busy); byBusy != 0 {
				return byBusy
			}
			return byNeed(b, a)
		})
		for i := range len(others) - toldApart {
			others[i].busy = 1
		}
	}
	slices.SortFunc(others, byNeed)
	d := division{capacity: capacity, own: own, others: others}
	return min(own.rate, d.mean(0, own.rate, own.weight)) // rounding
}

// division walks over which of the others are there.
type division struct {
	capacity float64
	own      claim
	others   []claim // the neediest first
	there    [64]bool
}

// mean is own's expected rate when it is settled which of others[:i] are
// there; asked and weight sum over own and those.
func (d *division) mean(i int, asked, weight float64) float64 {
	more := 0.0
	for _, o := range d.others[i:] {
		more += o.rate
	}
	if asked+more <= d.capacity {
		return d.own.rate
	}
	if i == len(d.others) {
		return d.allocate(weight)
	}
	o := d.others[i]
	out := 0.0
	if o.busy < 1 {
		d.there[i] = false
		out = (1 - o.busy) * d.mean(i+1, asked, weight)
	}
	if o.busy > 0 {
		d.there[i] = true
		out += o.busy * d.mean(i+1, asked+o.rate, weight+o.weight)
	}
	return out
}

// allocate is own's rate among those that are there. Water rises by level =
// rate per weight; whoever needs less than the level is served and leaves.
func (d *division) allocate(weight float64) float64 {
	left := d.capacity
	for i := len(d.others) - 1; i >= 0; i-- {
		if !d.there[i] {
			continue
		}
		o := d.others[i]
		if o.rate*weight > left*o.weight {
			break
		}
		left -= o.rate
		weight -= o.weight
	}
	return min(d.own.rate, max(left, 0)/weight*d.own.weight)
}

// byNeed puts the claims of the highest rate per weight first. It orders any
// two that differ, so that a sum over them does not depend on how they came.
func byNeed(a, b claim) int {
	if byRate := compare(b.rate*a.weight, a.rate*b.weight); byRate != 0 {
		return byRate
	}
	if byWeight := compare(b.weight, a.weight); byWeight != 0 {
		return byWeight
	}
	return compare(b.busy, a.busy)
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
