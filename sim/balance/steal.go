package balance

// Constants of work stealing as in FlexRR (Harlap et al., SoCC 2016, section
// 3): who is behind by this share of the iteration is helped, with this share
// of its remaining samples at a time, and a helper needs time to fetch them.
const (
	behind    = 0.2
	atATime   = 0.025
	fetchTime = 0.005 // seconds a hand-over
)

// steal plays one iteration in which workers that are done take samples over
// from the one that will be done last, until nobody is far behind.
func (r *trainer) steal(now float64, sizes []int) (done float64, ends []float64) {
	n := len(sizes)
	ends = make([]float64, n)
	left := make([]float64, n) // samples that a worker still has of its own
	for i, s := range sizes {
		left[i] = float64(s)
		ends[i] = r.finish(r.Traces[i], now, left[i])
	}
	for range 40 * n {
		fast, slow := 0, 0
		for i := range n {
			if ends[i] < ends[fast] {
				fast = i
			}
			if ends[i] > ends[slow] {
				slow = i
			}
		}
		if ends[slow]-now <= (1+behind)*(ends[fast]-now) {
			break
		}
		give := max(1, atATime*float64(sizes[slow]))
		// What is being computed when the helper asks can't be given any more.
		rest := (ends[slow] - ends[fast]) * r.Traces[slow].Speed[r.at(r.Traces[slow], ends[fast])]
		if give = min(give, rest-1, left[slow]-1); give < 1 {
			break
		}
		helped := r.finish(r.Traces[fast], ends[fast]+fetchTime-r.Overhead, give)
		if helped >= ends[slow] {
			break
		}
		left[slow] -= give
		ends[slow] = r.finish(r.Traces[slow], now, left[slow])
		ends[fast] = helped
	}
	for _, e := range ends {
		done = max(done, e)
	}
	return done, ends
}
