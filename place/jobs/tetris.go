package jobs

import (
	"fmt"

	"github.com/cotenant/cotenant/place"
)

var tetrisEntry = entry{
	name: "tetris",
	make: func(numbers, Settings) (placer, error) { return taskwise{Tetris{}}, nil },
}

// Tetris puts a task where its demands line up best with what is free: the
// node with the highest dot product of the two vectors, both divided by the
// node's capacity (Grandl, Ananthanarayanan, Kandula, Rao, Akella:
// Multi-resource packing for cluster schedulers, SIGCOMM 2014, section 3.2).
// Device slots and task slots count like resources. On the node it takes the
// device with the fewest tasks. The paper's other half, shortest remaining
// work first, needs durations, which nobody knows here. Ties go to the first.
type Tetris struct{}

// Choose implements Chooser.
func (Tetris) Choose(b *Board, t int) (site int, why Refusal) {
	lo, hi := b.Range(t)
	if hi == b.host && b.slotsFree == 0 {
		return -1, Full
	}
	var count [refusals]int32
	best, most := -1, 0.0
	for s := lo; s < hi; s++ {
		if r := b.fit(int32(t), int32(s)); r != Fits {
			count[r]++
			continue
		}
		a := b.alignment(int32(t), &b.sites[s])
		better := best < 0 || a > most
		if best >= 0 && a == most && b.sites[s].node == b.sites[best].node {
			better = len(b.sites[s].tenants) < len(b.sites[best].tenants)
		}
		if better {
			best, most = s, a
		}
	}
	if best >= 0 {
		return best, Fits
	}
	return -1, mostCommon(&count)
}

func (b *Board) alignment(t int32, st *site) float64 {
	x, n, state := &b.tasks[t], &b.nodes[st.node], &b.state[st.node]
	sum := 0.0
	add := func(need, free, capacity float64) {
		if capacity > 0 && free > 0 {
			sum += need / capacity * free / capacity
		}
	}
	for d, amount := range x.need {
		add(float64(amount), float64(state.free[d]), float64(n.Capacity[b.dims[d]]))
	}
	if n.Slots > 0 {
		add(1, float64(state.slots), float64(n.Slots))
	}
	slots := int32(0)
	for _, d := range b.devices[b.firstDevice[st.node]:b.firstDevice[st.node+1]] {
		slots += d.slots
	}
	add(float64(x.wants), float64(b.room(st.node)), float64(slots))
	return sum
}

func (Tetris) reason(b *Board, t, s int) place.Reason {
	a := b.alignment(int32(t), &b.sites[s])
	return place.Reason{
		Words:  fmt.Sprintf("what the node of %s has free lines up best with what the task demands: alignment %.4g", b.siteName(s), a),
		Scores: map[string]float64{"alignment": a},
	}
}
