package rl

import (
	"fmt"
	"math"

	"github.com/cotenant/cotenant/internal/num"
)

// Discount is what a reward one second later is worth: in (0, 1], 1 being no
// discount. Where time plays no part, let every decision last one second.
type Discount float64

// Over is the discount over dt seconds.
func (g Discount) Over(dt float64) float64 {
	if g == 1 {
		return 1
	}
	return math.Pow(float64(g), dt)
}

// Integral is the discounted worth of a reward that flows at rate 1 for dt
// seconds, the integral of g^t: dt without a discount (Bradtke and Duff,
// Reinforcement learning methods for continuous-time Markov decision problems,
// NIPS 1994, equation 5).
func (g Discount) Integral(dt float64) float64 {
	if g == 1 {
		return dt
	}
	rate := -math.Log(float64(g))
	return -math.Expm1(-rate*dt) / rate
}

// Choice is the outcome of a decision.
type Choice struct {
	Index int // of the candidate taken
	// LogProb is the log-probability of it under the policy, Behaviour under
	// what was followed: the policy mixed with experts. They are equal where
	// nobody explores.
	LogProb, Behaviour float32
	// Expert is the candidate that an expert would take, -1 where none was asked.
	Expert int
}

// Trajectory is one episode, or a part of one, as its decisions met it. Build
// it with Add and Flow or Gain, in the order of time; close it with End or Cut.
type Trajectory struct {
	Discount Discount
	// Score is how good the episode was, for Replay: higher is better, by the
	// caller's measure (say, relative to a heuristic on the same seed). NaN, as
	// it is made, lets the Learner take the mean advantage instead.
	Score float64

	// Group is the same for episodes that met the same outside world (the same
	// arrivals, say) from the same time on, 0 for an episode alone. The luck that
	// they share is then taken out of their advantages: see Shared.
	Group uint64
	// Before is how many seconds passed before the first decision.
	Before float64

	Features, Context int
	Candidates        []float32 // all candidates of all decisions
	Contexts          []float32
	Starts            []int // decision i has the candidates Starts[i] to Starts[i+1]
	Choices           []Choice
	// Rewards[i] came between decision i and the next, discounted to the time of
	// decision i; Seconds[i] is how long that was.
	Rewards, Seconds []float64
	// Ended says that nothing follows. Else the last state, in which nothing was
	// decided any more, stands behind the decisions: its value is the rest.
	Ended, closed bool
}

// NewTrajectory is empty. It panics if the discount is outside (0, 1].
func NewTrajectory(discount Discount) *Trajectory {
	if !(discount > 0 && discount <= 1) {
		panic(fmt.Sprintf("rl: discount %g is outside (0, 1]", discount))
	}
	return &Trajectory{Discount: discount, Score: math.NaN(), Starts: []int{0}}
}

// Len is the number of decisions.
func (t *Trajectory) Len() int { return len(t.Choices) }

// Add notes a decision and copies what it saw. It panics after End or Cut, and
// where the features differ in number from those before.
func (t *Trajectory) Add(candidates num.Matrix, context []float32, c Choice) {
	if c.Index < 0 || c.Index >= candidates.Rows || c.Expert >= candidates.Rows {
		panic(fmt.Sprintf("rl: choice %d and expert's choice %d of %d candidates", c.Index, c.Expert, candidates.Rows))
	}
	t.see(candidates, context)
	t.Choices = append(t.Choices, c)
	t.Rewards = append(t.Rewards, 0)
	t.Seconds = append(t.Seconds, 0)
}

func (t *Trajectory) see(candidates num.Matrix, context []float32) {
	if t.closed {
		panic("rl: a decision after the end of its trajectory")
	}
	if len(t.Starts) == 1 {
		t.Features, t.Context = candidates.Cols, len(context)
	}
	if candidates.Cols != t.Features || len(context) != t.Context {
		panic(fmt.Sprintf("rl: a decision of %d features and %d of context in a trajectory of %d and %d", candidates.Cols, len(context), t.Features, t.Context))
	}
	t.Candidates = append(t.Candidates, candidates.Data...)
	t.Contexts = append(t.Contexts, context...)
	t.Starts = append(t.Starts, t.Starts[len(t.Starts)-1]+candidates.Rows)
}

// Flow lets dt seconds pass in which the reward comes at a constant rate per
// second. A reward before the first decision is nobody's and ignored.
func (t *Trajectory) Flow(rate, dt float64) {
	if t.closed {
		return
	}
	i := t.Len() - 1
	if i < 0 {
		t.Before += dt
		return
	}
	t.Rewards[i] += t.Discount.Over(t.Seconds[i]) * rate * t.Discount.Integral(dt)
	t.Seconds[i] += dt
}

// Gain adds a reward that comes at once.
func (t *Trajectory) Gain(reward float64) {
	if i := t.Len() - 1; i >= 0 && !t.closed {
		t.Rewards[i] += t.Discount.Over(t.Seconds[i]) * reward
	}
}

// End closes the trajectory: there is nothing to come.
func (t *Trajectory) End() { t.Ended, t.closed = true, true }

// Cut closes the trajectory in the middle: the value of the state shown stands
// for what would have followed.
func (t *Trajectory) Cut(candidates num.Matrix, context []float32) {
	t.see(candidates, context)
	t.closed = true
}

// batch is every state of the trajectory, with the last one where it was cut.
func (t *Trajectory) batch() num.Batch {
	return num.Batch{
		Candidates: num.Matrix{Rows: t.Starts[len(t.Starts)-1], Cols: t.Features, Data: t.Candidates},
		Context:    num.Matrix{Rows: len(t.Starts) - 1, Cols: t.Context, Data: t.Contexts},
		Starts:     t.Starts,
	}
}

// check is an error unless the trajectory is closed and suits the network.
func (t *Trajectory) check(shape num.ScorerShape) error {
	switch {
	case t.Len() == 0:
		return fmt.Errorf("a trajectory without decisions: leave it out")
	case !t.closed:
		return fmt.Errorf("a trajectory of %d decisions that is still open: call End or Cut", t.Len())
	case t.Features != shape.Features || t.Context != shape.Context:
		return fmt.Errorf("a trajectory of %d features and %d of context for a network of %d and %d", t.Features, t.Context, shape.Features, shape.Context)
	}
	return nil
}
