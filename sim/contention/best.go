package contention

import "math"

// best is the seconds of an iteration of a job on idle servers of one rack, as
// well placed as it can be. It tries the placements that put the same number
// of workers on each server (but the last) and the same number of parameter
// servers on each of some servers: the first, those up to the workers' last,
// or others. Up to 6 workers and 6 parameter servers that is the best of all
// placements in the world that ships; a test tries them all.
func (m *model) best(w *Workload, workers, ps int) float64 {
	key := shape{w, workers, ps}
	if t, ok := m.alone[key]; ok {
		return t
	}
	best := math.Inf(1)
	for f := min(workers, 1); f <= workers && m.fits(w, f, 0); f++ {
		for g := min(ps, 1); g <= ps && m.fits(w, 0, g); g++ {
			nodes, others := ceil(workers, f), ceil(ps, g)
			for _, shift := range [...]int{0, max(0, nodes-others), max(0, nodes-1), nodes} {
				parts := make([][2]int, max(nodes, shift+others))
				for i := range parts {
					if i < nodes {
						parts[i][0] = min(f, workers-f*i)
					}
					if i >= shift && i < shift+others {
						parts[i][1] = min(g, ps-g*(i-shift))
					}
				}
				best = min(best, m.divided(w, workers, ps, parts))
			}
		}
	}
	m.alone[key] = best
	return best
}

// divided is the seconds of an iteration with so many workers and parameter
// servers on each server; infinite where one is too small.
func (m *model) divided(w *Workload, workers, ps int, parts [][2]int) float64 {
	j := &job{workload: w, workers: workers, ps: ps}
	for node, p := range parts {
		if !m.fits(w, p[0], p[1]) {
			return math.Inf(1)
		}
		if p[0]+p[1] > 0 {
			j.parts = append(j.parts, &part{job: j, node: node, workers: p[0], ps: p[1]})
		}
	}
	m.place(j)
	return j.base
}

func ceil(n, by int) int {
	if n == 0 {
		return 0
	}
	return (n + by - 1) / by
}
