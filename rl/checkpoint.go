package rl

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/cotenant/cotenant/internal/num"
)

// checkpointVersion changes with the layout of checkpoint.
const checkpointVersion = 1

// checkpoint is all that a Learner knows beyond its options. Sources of
// randomness and schedules follow from the counts of updates.
type checkpoint struct {
	Version             int
	Shape               num.ScorerShape
	Seed                uint64
	Updates, Imitations int
	Rate, Mean, Square  float64
	Tensors             [][]float32
	Adam                num.AdamState
	Episodes            []*Trajectory
	Returns, Chances    [][]float64
}

// Save writes everything that a Learner needs to go on as if it had never
// stopped: the network, the optimiser, what is remembered, and the counts that
// schedules and seeds follow.
func (l *Learner) Save(w io.Writer) error {
	c := checkpoint{
		Version: checkpointVersion, Shape: l.Net.Shape, Seed: l.seed,
		Updates: l.updates, Imitations: l.imitations, Rate: l.rate, Mean: l.mean, Square: l.square,
		Adam: l.adam.State(), Tensors: l.Net.Numbers(),
	}
	for _, e := range l.replay.episodes {
		c.Episodes = append(c.Episodes, e.of)
		c.Returns = append(c.Returns, e.returns)
		c.Chances = append(c.Chances, e.chances)
	}
	if err := gob.NewEncoder(w).Encode(c); err != nil {
		return fmt.Errorf("save the state of learning: %w", err)
	}
	return nil
}

// Restore reads what Save wrote into a Learner over a network of the same
// shape. Its seed becomes the saved one, its options stay. After an error the
// Learner is as it was.
func (l *Learner) Restore(r io.Reader) error {
	var c checkpoint
	if err := gob.NewDecoder(r).Decode(&c); err != nil {
		return fmt.Errorf("restore the state of learning: not a checkpoint, or damaged: %w", err)
	}
	if err := l.restore(&c); err != nil {
		return fmt.Errorf("restore the state of learning: %w", err)
	}
	return nil
}

func (l *Learner) restore(c *checkpoint) error {
	if c.Version != checkpointVersion {
		return fmt.Errorf("checkpoint version %d, this program reads %d: start anew", c.Version, checkpointVersion)
	}
	if s := l.Net.Shape; s.Features != c.Shape.Features || s.Context != c.Shape.Context || s.Prior != c.Shape.Prior || !slices.Equal(s.Hidden, c.Shape.Hidden) {
		return fmt.Errorf("it is of a network %+v, this one is %+v: start anew, or with the options of then", c.Shape, s)
	}
	tensors := l.Net.Tensors()
	if len(c.Tensors) != len(tensors) {
		return fmt.Errorf("it has %d tensors, want %d", len(c.Tensors), len(tensors))
	}
	for i, t := range tensors {
		if len(c.Tensors[i]) != len(t.Data) {
			return fmt.Errorf("tensor %s has %d elements, want %d", t.Name, len(c.Tensors[i]), len(t.Data))
		}
	}
	if len(c.Returns) != len(c.Episodes) || len(c.Chances) != len(c.Episodes) {
		return errors.New("its remembered episodes are not whole")
	}
	replay := NewReplay(l.Options.Remember, l.Options.Power)
	for i, t := range c.Episodes {
		if t == nil || !t.whole() || len(c.Returns[i]) != t.Len() || len(c.Chances[i]) != t.Len() {
			return fmt.Errorf("remembered episode %d is not whole", i)
		}
		t.closed = true
		if err := t.check(l.Net.Shape); err != nil {
			return fmt.Errorf("remembered episode %d: %w", i, err)
		}
		for _, chance := range c.Chances[i] {
			if !(chance > 0) || math.IsInf(chance, 0) {
				return fmt.Errorf("remembered episode %d has a chance of %g", i, chance)
			}
		}
		if replay.size+t.Len() <= replay.capacity { // the capacity may be smaller now
			replay.episodes = append(replay.episodes, &episode{t, c.Returns[i], c.Chances[i]})
			replay.size += t.Len()
		}
	}
	replay.stale = true
	if err := l.adam.SetState(c.Adam); err != nil {
		return err
	}
	for i, t := range tensors {
		copy(t.Data, c.Tensors[i])
	}
	l.replay, l.seed, l.updates, l.imitations = replay, c.Seed, c.Updates, c.Imitations
	l.rate, l.mean, l.square = c.Rate, c.Mean, c.Square
	return nil
}

// whole says whether the parts of a trajectory that was read fit together.
func (t *Trajectory) whole() bool {
	n, states := t.Len(), len(t.Starts)-1
	if n == 0 || states < n || states > n+1 || t.Features < 1 || t.Context < 0 ||
		t.Starts[0] != 0 || len(t.Rewards) != n || len(t.Seconds) != n ||
		len(t.Candidates)%t.Features != 0 || t.Starts[states] != len(t.Candidates)/t.Features ||
		(t.Context == 0) != (len(t.Contexts) == 0) || t.Context > 0 && (len(t.Contexts)%t.Context != 0 || len(t.Contexts)/t.Context != states) {
		return false
	}
	for i := range states {
		if t.Starts[i+1] <= t.Starts[i] {
			return false
		}
	}
	for i, c := range t.Choices {
		if k := t.Starts[i+1] - t.Starts[i]; c.Index < 0 || c.Index >= k || c.Expert < -1 || c.Expert >= k {
			return false
		}
	}
	return t.Discount > 0 && t.Discount <= 1
}

// Fingerprint says in words all that a training depends on, so that one goes on
// only as what it began as: its config, without pointers and whatever does not
// change the result, the options of its learners (nil for the standard ones),
// and the names of its worlds.
func Fingerprint(config any, o *Options, worlds []string) string {
	learner := ""
	if o != nil {
		same := *o
		same.Workers = 0
		learner = fmt.Sprintf("%+v", same)
	}
	return fmt.Sprintf("%+v %s %q", config, learner, worlds)
}

// Continues is an error where a checkpoint is of another version than the
// program reads, or of a training with another fingerprint than now.
func Continues(version, reads int, then, now string) error {
	if version != reads {
		return fmt.Errorf("restore the training: checkpoint version %d, this program reads %d: start anew", version, reads)
	}
	if then != now {
		return fmt.Errorf("restore the training: it began with other options%s; go on with those of then, or start anew", differences(then, now))
	}
	return nil
}

// differences says in words where two fingerprints differ; nothing where they
// are not of the same options.
func differences(then, now string) string {
	words := func(s string) []string { return strings.Fields(strings.Trim(s, "{}")) }
	a, b := words(then), words(now)
	if len(a) != len(b) {
		return ""
	}
	var out []string
	for i := range a {
		if a[i] != b[i] {
			name, was, named := strings.Cut(a[i], ":")
			_, is, _ := strings.Cut(b[i], ":")
			if !named {
				name, was, is = "the worlds", a[i], b[i]
			}
			out = append(out, fmt.Sprintf("%s was %s and is %s now", strings.Trim(name, "{}"), strings.Trim(was, "[]{}"), strings.Trim(is, "[]{}")))
		}
	}
	return ": " + strings.Join(out, ", ")
}
