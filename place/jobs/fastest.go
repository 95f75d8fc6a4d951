package jobs

import (
	"fmt"

	"github.com/cotenant/cotenant/place"
)

var fastestEntry = entry{
	name: "fastest",
	make: func(numbers, Settings) (placer, error) { return taskwise{Fastest{}}, nil },
}

// Fastest knows how fast a job runs alone on each class, and nothing of
// interference: of the sites that take a task it takes one where the job would
// run fastest alone, among those one with the fewest tasks. So a job falls to a
// slower class only when the fast ones take no more. Ties go to the smallest
// share of the node requested, then to the first.
type Fastest struct{}

// Choose implements Chooser.
func (Fastest) Choose(b *Board, t int) (site int, why Refusal) {
	lo, hi := b.Range(t)
	if hi == b.host && b.slotsFree == 0 {
		return -1, Full
	}
	var count [refusals]int32
	best, fullness, speed := -1, load{}, 0.0
	for s := lo; s < hi; s++ {
		if r := b.fit(int32(t), int32(s)); r != Fits {
			count[r]++
			continue
		}
		a := b.aloneWith(int32(t), int32(s))
		l := load{tasks: int32(len(b.sites[s].tenants)), share: b.state[b.sites[s].node].share}
		if best < 0 || a > speed || a == speed && l.less(fullness) {
			best, fullness, speed = s, l, a
		}
	}
	if best >= 0 {
		return best, Fits
	}
	return -1, mostCommon(&count)
}

// aloneWith is the progress, with nothing beside it, of the gang as it is
// placed so far with the task on the site.
func (b *Board) aloneWith(t, s int32) float64 {
	k, st := &b.gangs[b.tasks[t].gang], &b.sites[s]
	if len(k.tasks) == 1 {
		return k.alone[2*st.class]
	}
	apart := int32(0)
	for _, o := range k.tasks {
		if at := b.tasks[o].site; at >= 0 && b.sites[at].node != st.node {
			apart = 1
		}
	}
	a := k.alone[2*st.class+apart]
	if b.tasks[t].ps {
		a = 1
	}
	for _, o := range k.tasks {
		if at := b.tasks[o].site; at >= 0 && !b.tasks[o].ps {
			a = min(a, k.alone[2*b.sites[at].class+apart])
		}
	}
	return a
}

func (Fastest) reason(b *Board, t, s int) place.Reason {
	a := b.aloneWith(int32(t), int32(s))
	return place.Reason{
		Words:  fmt.Sprintf("%s is where the job runs fastest alone: progress %.3f", b.siteName(s), a),
		Scores: map[string]float64{"tasks": -float64(len(b.sites[s].tenants)), "alone": a},
	}
}
