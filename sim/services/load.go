package services

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
)

// offered is how many services must be offered in a mean lifetime so that the
// mean number of wanted tasks is Load x Capacity. Where what would exceed Most
// is turned away, fewer come than are offered.
//
// Source: the distribution of occupied circuits that calls of several widths
// share, which depends on mean lifetimes only: q(j) j = sum over sizes s of
// a_s s q(j-s). Kaufman, Blocking in a shared resource environment, 1981;
// Roberts, 1981.
func (s *Stream) offered() (float64, error) {
	mean := 0.0
	for _, z := range s.Sizes {
		mean += z.Share * float64(z.Replicas)
	}
	target := s.Load * float64(s.Capacity)
	free := target / mean
	most := s.Most * float64(s.Capacity)
	if most > 1e6 {
		return free, nil
	}
	lo, hi := free, 2*free
	for s.occupied(hi, int(most)) < target {
		lo, hi = hi, 2*hi
		if hi > 1e4*free {
			return 0, fmt.Errorf("stream: load %g is out of reach where at most %g of %d tasks are wanted and services have these sizes; lower it, or raise what is wanted at most",
				s.Load, s.Most, s.Capacity)
		}
	}
	for hi-lo > 1e-4*hi {
		if mid := (lo + hi) / 2; s.occupied(mid, int(most)) < target {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2, nil
}

// MaxTasks bounds how many tasks a Stream may draw, MaxFailures how many times
// the nodes of a run may fail: all are drawn beforehand, and with times out of
// proportion they would take all memory there is.
const (
	MaxTasks    = 10_000_000
	MaxFailures = 10_000_000
)

// limit refuses a stream of which more than MaxTasks are to be expected at
// most, where so many services are offered in a mean lifetime.
func (s *Stream) limit(offered float64) error {
	mean := 0.0
	for _, z := range s.Sizes {
		mean += z.Share * float64(z.Replicas)
	}
	lifetimes := float64(s.Horizon) / float64(s.Lifetime)
	// What is there at time 0 draws sizes, too.
	tasks := s.Load*float64(s.Capacity)*(1+s.Scaling*lifetimes) + offered*lifetimes*mean
	if tasks > MaxTasks {
		return fmt.Errorf("stream: some %.3g tasks would come in a horizon of %s, with services of a mean lifetime of %s; at most %d: shorten the horizon, or let services live longer",
			tasks, s.Horizon, s.Lifetime, MaxTasks)
	}
	return nil
}

// occupied is the mean number of wanted tasks, at most most, where so many
// services are offered in a mean lifetime.
func (s *Stream) occupied(offered float64, most int) float64 {
	widest := 0
	for _, z := range s.Sizes {
		widest = max(widest, z.Replicas)
	}
	q := make([]float64, widest+1) // of j, in turn
	q[0] = 1
	sum, weighted := 1.0, 0.0
	for j := 1; j <= most; j++ {
		v := 0.0
		for _, z := range s.Sizes {
			if z.Replicas <= j {
				v += offered * z.Share * float64(z.Replicas) * q[(j-z.Replicas)%len(q)]
			}
		}
		v /= float64(j)
		q[j%len(q)] = v
		sum += v
		weighted += float64(j) * v
		if sum > 1e200 { // all are only relative to one another
			for i := range q {
				q[i] /= sum
			}
			weighted /= sum
			sum = 1
		}
	}
	return weighted / sum
}

// mixes are how often workloads occur over time: cumulated shares.
type mixes struct {
	drift float64
	sums  [][]float64 // one mix after the other
}

func newMixes(s Stream, rng *rand.Rand) *mixes {
	m := &mixes{drift: float64(s.Drift)}
	n := 1
	if s.Drift > 0 {
		n = 2 + int(float64(s.Horizon)/m.drift)
	}
	for range n {
		m.sums = append(m.sums, s.drawMix(rng))
	}
	return m
}

func (s *Stream) drawMix(rng *rand.Rand) []float64 {
	shares := make([]float64, len(s.Workloads))
	switch s.Mix {
	case Random:
		for i := range shares {
			shares[i] = rng.ExpFloat64()
		}
	case Zipf:
		for rank, i := range rng.Perm(len(shares)) {
			shares[i] = 1 / float64(rank+1)
		}
	default:
		for i := range shares {
			shares[i] = 1
		}
	}
	total := 0.0
	for i, x := range shares {
		total += x
		shares[i] = total
	}
	for i := range shares {
		shares[i] /= total
	}
	return shares
}

// pick is the workload at u of the mix of a moment, 0 <= u < 1.
func (m *mixes) pick(at, u float64) int {
	from, part := 0, 0.0
	if m.drift > 0 {
		whole, rest := math.Modf(at / m.drift)
		from, part = int(whole), rest
	}
	a, b := m.sums[from], m.sums[min(from+1, len(m.sums)-1)]
	i := sort.Search(len(a), func(i int) bool { return u < a[i]+(b[i]-a[i])*part })
	return min(i, len(a)-1)
}
