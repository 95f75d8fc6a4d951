package metis

import (
	"math"
	"math/rand/v2"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
)

// best searches from several passes, each with its part of the budget, and
// keeps the decision that places most tasks and, among those, has the highest
// value. The first pass takes its turns as without samples; the others draw
// them.
func (s Searching) best(req place.Request) (place.Decision, error) {
	after := s.After
	after.Evals, after.Kicks, after.Colocations = after.Evals/s.Samples, after.Kicks/s.Samples, after.Colocations/s.Samples
	var best place.Decision
	most, highest := -1, math.Inf(-1)
	for i := range s.Samples {
		if i > 0 {
			drawn := rand.New(rand.NewPCG(req.Rand.Uint64(), uint64(i)))
			after.Start = func(req place.Request, b *baseline.Board) baseline.Chooser {
				c := s.First.Chooser(req, b)
				if t, ok := c.(*turns); ok {
					t.drawn = drawn
				}
				return c
			}
		}
		d, err := after.Place(req)
		if err != nil {
			return d, err
		}
		if value := s.value(req, d); len(d.Bind) > most || len(d.Bind) == most && value > highest {
			best, most, highest = d, len(d.Bind), value
		}
		if req.Stopped() {
			break
		}
	}
	return best, nil
}

// value is what the search makes of a decision of its own; higher is better.
func (s Searching) value(req place.Request, d place.Decision) float64 {
	t := place.NewTrial(req, s.After.Model, s.After.Pessimism)
	kind := make(map[cluster.TaskID]int, len(t.Tasks()))
	for i, task := range t.Tasks() {
		kind[task.ID] = t.Kind(i)
	}
	for _, b := range d.Bind {
		if node, ok := req.View.NodeIndex(b.Node); ok {
			t.Put(kind[b.Task], node)
		}
	}
	return t.Value()
}

// draw picks a row by the softmax of the scores.
func (t *turns) draw(scores []float32) int {
	t.shares = append(t.shares[:0], scores...)
	num.Softmax(t.shares, scores)
	u := t.drawn.Float32()
	for i, p := range t.shares {
		if u -= p; u < 0 {
			return i
		}
	}
	return len(scores) - 1
}
