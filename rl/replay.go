package rl

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// Replay remembers the decisions of the best episodes, so that a policy can
// imitate its own luck (Oh et al., Self-imitation learning, ICML 2018). It
// keeps the episodes of the highest Score, the newer of equals, within its
// capacity.
type Replay struct {
	capacity int
	power    float64
	episodes []*episode // best first
	size     int        // decisions in all
	sums     []float64  // running sums of the chances, rebuilt when they change
	stale    bool
}

// episode is a trajectory with what each decision led to.
type episode struct {
	of      *Trajectory
	returns []float64 // in the units of rewards
	chances []float64 // priority^power
}

// lowest keeps every decision within reach: what the critic expected today may
// look good tomorrow.
const lowest = 1e-3

// NewReplay holds up to capacity decisions. A decision is drawn with a chance
// proportional to its priority^power (Schaul et al., Prioritized experience
// replay, ICLR 2016, equation 1); the priority is by how much its return
// exceeded the critic's value, in the critic's units, and at least 0.001.
func NewReplay(capacity int, power float64) *Replay {
	return &Replay{capacity: capacity, power: power}
}

// Len is the number of decisions held.
func (r *Replay) Len() int { return r.size }

// Add offers an episode. returns are what each of its decisions led to, surplus
// by how much that exceeds what the critic expected. The trajectory must not
// change any more. An episode larger than the capacity is not kept.
func (r *Replay) Add(t *Trajectory, returns, surplus []float64) {
	if t.Len() > r.capacity || math.IsNaN(t.Score) {
		return
	}
	e := &episode{t, slices.Clone(returns), make([]float64, len(returns))}
	for i, s := range surplus {
		e.chances[i] = r.chance(s)
	}
	at := sort.Search(len(r.episodes), func(i int) bool { return r.episodes[i].of.Score <= t.Score })
	r.episodes = slices.Insert(r.episodes, at, e)
	r.size += t.Len()
	for r.size > r.capacity {
		worst := r.episodes[len(r.episodes)-1]
		r.size -= worst.of.Len()
		r.episodes = r.episodes[:len(r.episodes)-1]
	}
	r.stale = true
}

// draw takes n decisions, with repetition, and appends them to items. It takes
// none where none are held.
func (r *Replay) draw(items []item, n int, rng *rand.Rand) []item {
	if r.size == 0 {
		return items
	}
	if r.stale {
		r.sums = r.sums[:0]
		sum := 0.0
		for _, e := range r.episodes {
			for _, c := range e.chances {
				sum += c
				r.sums = append(r.sums, sum)
			}
		}
		r.stale = false
	}
	for range n {
		u := rng.Float64() * r.sums[len(r.sums)-1]
		at := min(sort.Search(len(r.sums), func(i int) bool { return r.sums[i] > u }), len(r.sums)-1)
		for _, e := range r.episodes {
			if at < e.of.Len() {
				items = append(items, item{of: e.of, at: at, good: true, entry: e})
				break
			}
			at -= e.of.Len()
		}
	}
	return items
}

// update notes what the critic now thinks of a decision that was drawn.
func (r *Replay) update(it item, surplus float64) {
	it.entry.chances[it.at] = r.chance(surplus)
	r.stale = true
}

func (r *Replay) chance(surplus float64) float64 { return math.Pow(max(surplus, lowest), r.power) }
