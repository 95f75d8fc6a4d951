package sim

import "time"

// heap orders what will happen: at most one time for each number. What is due
// at one time comes in the order of the numbers.
type heap struct {
	at    []time.Duration // by number
	place []int32         // by number: position in order, or -1
	order []int32         // binary heap of numbers
}

func newHeap(n int) *heap {
	h := &heap{at: make([]time.Duration, n), place: make([]int32, n)}
	for i := range h.place {
		h.place[i] = -1
	}
	return h
}

func (h *heap) less(a, b int32) bool {
	if h.at[a] != h.at[b] {
		return h.at[a] < h.at[b]
	}
	return a < b
}

// first is when the next thing is due; never where nothing is.
func (h *heap) first() time.Duration {
	if len(h.order) == 0 {
		return never
	}
	return h.at[h.order[0]]
}

// set puts a number at a time, whether it was there or not.
func (h *heap) set(n int32, at time.Duration) {
	h.at[n] = at
	i := h.place[n]
	if i < 0 {
		i = int32(len(h.order))
		h.order = append(h.order, n)
		h.place[n] = i
	}
	h.down(h.up(i))
}

// drop takes a number out, if it is there.
func (h *heap) drop(n int32) {
	i := h.place[n]
	if i < 0 {
		return
	}
	h.place[n] = -1
	last := int32(len(h.order) - 1)
	moved := h.order[last]
	h.order = h.order[:last]
	if i != last {
		h.order[i] = moved
		h.place[moved] = i
		h.down(h.up(i))
	}
}

// pop takes out what is due first.
func (h *heap) pop() int32 {
	n := h.order[0]
	h.drop(n)
	return n
}

func (h *heap) up(i int32) int32 {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(h.order[i], h.order[parent]) {
			break
		}
		h.swap(i, parent)
		i = parent
	}
	return i
}

func (h *heap) down(i int32) {
	for {
		child := 2*i + 1
		if child >= int32(len(h.order)) {
			return
		}
		if child+1 < int32(len(h.order)) && h.less(h.order[child+1], h.order[child]) {
			child++
		}
		if !h.less(h.order[child], h.order[i]) {
			return
		}
		h.swap(i, child)
		i = child
	}
}

func (h *heap) swap(i, j int32) {
	h.order[i], h.order[j] = h.order[j], h.order[i]
	h.place[h.order[i]], h.place[h.order[j]] = i, j
}
