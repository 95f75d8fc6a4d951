package balance

import "fmt"

// Adopt goes on with shares that the workers hold already and this Balancer
// does not know, as one that was restored from an older state: with their
// generation if they fit the workers, and with the next one if they don't. It
// is an error if they are of a generation before the current one.
func (b *Balancer) Adopt(s Shares) error {
	switch {
	case s.Generation < b.generation:
		return fmt.Errorf("adopt: %w: %d, the current one is %d", ErrStale, s.Generation, b.generation)
	case s.Iteration < 0:
		return fmt.Errorf("adopt: %w: iteration: %d is negative", ErrInvalid, s.Iteration)
	}
	before := b.generation
	b.generation, b.sizes, b.decided, b.fresh = s.Generation, nil, nil, true
	if holds(b.limits, s.BatchSizes, b.options.GlobalBatch) {
		s = s.clone()
		b.sizes, b.decided = s.BatchSizes, []Shares{s}
	} else {
		b.generation++
	}
	if b.generation != before {
		for _, w := range b.workers {
			b.known[w.Name].Iteration = -1
		}
	}
	return nil
}
