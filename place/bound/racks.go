package bound

import "github.com/cotenant/cotenant/place"

// gathers is how often all pairs of nodes are looked at for a trade at most.
const gathers = 10

// gather lets nodes of one class in different racks trade all that was put on
// them where that raises what the racks count: to the linear program such
// nodes are the same.
func (s *solution) gather(req place.Request) {
	t := s.q.trial
	if !t.Racked() {
		return
	}
	by, back := make([]int, len(t.Workloads())), make([]int, len(t.Workloads()))
	for range gathers {
		changed := false
		for i := range s.q.classes {
			nodes := s.q.classes[i].nodes
			for x, a := range nodes {
				if req.Stopped() {
					return
				}
				for _, b := range nodes[x+1:] {
					from, to := t.Rack(a), t.Rack(b)
					if from == to || t.Config(a) == t.Config(b) {
						continue
					}
					for w := range by {
						by[w] = t.Counts(b)[w] - t.Counts(a)[w]
						back[w] = -by[w]
					}
					gain := t.InRack(from, by) + t.InRack(to, back) - t.InRack(from, nil) - t.InRack(to, nil)
					if gain > 1e-12 && s.trade(a, b) {
						changed = true
					}
				}
			}
		}
		if !changed {
			return
		}
	}
}

// trade gives each of two nodes what was put on the other; false, with nothing
// changed, where a rule forbids it.
func (s *solution) trade(a, b int) bool {
	t := s.q.trial
	excess := s.q.excess()
	was := [2][]int{make([]int, t.Kinds()), make([]int, t.Kinds())}
	for k := range t.Kinds() {
		was[0][k], was[1][k] = t.PutOn(k, a), t.PutOn(k, b)
	}
	move(t, was[0], a, (*place.Trial).Take)
	move(t, was[1], b, (*place.Trial).Take)
	ok := true
	put := func(counts []int, node int) {
		for k, n := range counts {
			for range n {
				if ok = ok && s.q.fits(k, node); ok {
					t.Put(k, node)
				}
			}
		}
	}
	put(was[1], a)
	put(was[0], b)
	if ok && s.q.excess() <= excess {
		return true
	}
	for k := range t.Kinds() {
		for t.PutOn(k, a) > 0 {
			t.Take(k, a)
		}
		for t.PutOn(k, b) > 0 {
			t.Take(k, b)
		}
	}
	move(t, was[0], a, (*place.Trial).Put)
	move(t, was[1], b, (*place.Trial).Put)
	return false
}
