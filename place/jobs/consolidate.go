package jobs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cotenant/cotenant/place"
)

var consolidateEntry = entry{
	name: "consolidate",
	make: func(numbers, Settings) (placer, error) { return taskwise{Consolidate{}}, nil },
}

// Consolidate keeps a job's traffic off the network: a gang of several tasks
// goes to the fullest node that takes all of it, or else to the emptiest nodes
// in turn, so that it is on few. A single task goes to the fullest node that
// takes it. That is best fit (Johnson et al., "Worst-case performance bounds for
// simple one-dimensional packing algorithms", SIAM J. Comput. 3, 1974) for whole
// jobs, and asks nothing of interference but that tasks fit together.
//
// The fullest node has the fewest free device slots, of those the largest share
// requested. On a node tasks go to the device with the fewest tasks. Ties go to
// the first.
type Consolidate struct{}

// fullness orders nodes; it is taken before a gang is placed, so that the order
// stays while its tasks fill them.
type fullness struct {
	node, room int32
	share      float64
}

func (b *Board) fullness(n int32) fullness { return fullness{n, b.room(n), b.state[n].share} }

// compare has the fuller node first.
func (f fullness) compare(o fullness) int {
	return cmp.Or(cmp.Compare(f.room, o.room), cmp.Compare(o.share, f.share))
}

// Choose implements Chooser.
func (Consolidate) Choose(b *Board, t int) (site int, why Refusal) {
	var count [refusals]int32
	best, at := -1, fullness{}
	for n := range b.nodes {
		f := b.fullness(int32(n))
		if best >= 0 && f.compare(at) >= 0 {
			continue
		}
		if s := b.emptiestOn(int32(t), int32(n), &count); s >= 0 {
			best, at = s, f
		}
	}
	if best >= 0 {
		return best, Fits
	}
	return -1, mostCommon(&count)
}

// placeGang implements whole.
func (c Consolidate) placeGang(b *Board, gang int) Refusal {
	mark := b.Mark()
	order := make([]fullness, len(b.nodes))
	for n := range b.nodes {
		order[n] = b.fullness(int32(n))
	}
	slices.SortStableFunc(order, fullness.compare)
	for i := range order {
		if !b.mayHold(order[i].node, gang) {
			continue
		}
		if c.onFirst(b, gang, order[i:i+1]) == Fits {
			return Fits
		}
		b.Undo(mark)
	}
	slices.SortFunc(order, func(f, o fullness) int { return cmp.Or(o.compare(f), cmp.Compare(f.node, o.node)) })
	return c.onFirst(b, gang, order)
}

// onFirst puts each task of a gang on the first of some nodes that takes it.
func (c Consolidate) onFirst(b *Board, gang int, order []fullness) Refusal {
	for _, t := range b.gangs[gang].tasks {
		var count [refusals]int32
		s := -1
		for i := 0; i < len(order) && s < 0; i++ {
			s = b.emptiestOn(t, order[i].node, &count)
		}
		if s < 0 {
			return mostCommon(&count)
		}
		b.give(c, t, s)
	}
	return Fits
}

// emptiestOn is the site with the fewest tasks on a node of those that take a
// task; -1, with the refusals counted, where none does.
func (b *Board) emptiestOn(t, n int32, count *[refusals]int32) int {
	lo, hi := int32(b.host)+n, int32(b.host)+n+1
	if b.tasks[t].wants > 0 && b.atDevices() {
		lo, hi = b.firstDevice[n], b.firstDevice[n+1]
	}
	best := -1
	for s := lo; s < hi; s++ {
		if best >= 0 && len(b.sites[s].tenants) >= len(b.sites[best].tenants) {
			continue
		}
		if r := b.fit(t, s); r != Fits {
			count[r]++
		} else {
			best = int(s)
		}
	}
	return best
}

func (Consolidate) reason(b *Board, t, s int) place.Reason {
	f := b.fullness(b.sites[s].node)
	why := "its node is the fullest that takes it"
	if len(b.gangs[b.tasks[t].gang].tasks) > 1 {
		why = "so the job is on few nodes"
	}
	return place.Reason{
		Words:  fmt.Sprintf("%s: %s; %d device slots of the node are free, %.0f %% of it requested", b.siteName(s), why, f.room, 100*f.share),
		Scores: map[string]float64{"room": -float64(f.room), "load": f.share},
	}
}
