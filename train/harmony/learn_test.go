package harmony_test

import (
	"math"
	"testing"

	"github.com/cotenant/cotenant/rl"
	"github.com/cotenant/cotenant/train/harmony"
)

// Where the rule that the network starts from is wrong in the long run, few
// updates must undo it.
func TestLearnsWhatTheRuleDoesNotKnow(t *testing.T) {
	tr := trainer(t, quick(toy(t, 1.2)))
	var looks [][]float64
	err := tr.Run(t.Context(), func(r harmony.Report) error {
		if r.Ratios != nil {
			looks = append(looks, r.Ratios)
			t.Logf("%d: %.3f of spread, %.3f of greedy-wait", r.Update, r.Ratios[0], r.Ratios[1])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(looks) != 4 {
		t.Errorf("looked %d times, want before, after 4, after 8 and after 12 updates", len(looks))
	}
	if first := looks[0][1]; math.Abs(first-1) > 0.02 {
		t.Errorf("untrained, JCT / greedy-wait is %.3f; want 1, since that is what it follows", first)
	}
	net, at := tr.Best()
	best, err := tr.Judge(t.Context(), net, harmony.Rivals...)
	if err != nil {
		t.Fatal(err)
	}
	if best[1] > 0.85 || at == 0 {
		t.Errorf("JCT / greedy-wait is %.3f after %d updates; want at most 0.85", best[1], at)
	}
	for _, look := range looks {
		if look[1] < best[1] {
			t.Errorf("kept %.3f, though %.3f was seen", best[1], look[1])
		}
	}
}

// Imitation takes a network that begins with the opposite to the rule, without an update
// of reinforcement.
func TestImitationMovesTowardsTheRule(t *testing.T) {
	c := quick(toy(t, 1.2))
	c.Prior, c.Warm, c.Updates = -1, 16, 1
	c.Rl.ImitationRate = 1e-2
	tr := trainer(t, c)
	before, err := tr.Judge(t.Context(), tr.Net(), harmony.Rivals...)
	if err != nil {
		t.Fatal(err)
	}
	var losses []float64
	for range c.Warm {
		s, err := tr.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, s.Imitation)
	}
	if tr.Updates() != 0 {
		t.Errorf("%d updates while imitating, want none", tr.Updates())
	}
	after, err := tr.Judge(t.Context(), tr.Net(), harmony.Rivals...)
	if err != nil {
		t.Fatal(err)
	}
	first, last := losses[0], losses[len(losses)-1]
	t.Logf("loss %.3f to %.3f; JCT / greedy-wait %.3f to %.3f", first, last, before[1], after[1])
	if last > 0.5*first {
		t.Errorf("the distance to greedy-wait went from %.3f to %.3f nats; want half at most", first, last)
	}
	if math.Abs(before[1]-1) < 0.05 || math.Abs(after[1]-1) > 0.03 {
		t.Errorf("JCT / greedy-wait went from %.3f to %.3f; want it to become 1", before[1], after[1])
	}
}

// Replay and experts can each be left out, and make a difference where they
// are not.
func TestSwitches(t *testing.T) {
	after := func(change func(*harmony.Config)) (score float64, s rl.Stats) {
		c := quick(toy(t, 1.2))
		c.Rl, c.Episodes, c.Explore = nil, 4, rl.Constant(0.5)
		change(&c)
		tr := trainer(t, c)
		for range 2 {
			var err error
			if s, err = tr.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, x := range tr.Net().Tensors() {
			for i, v := range x.Data {
				score += float64(v) * float64(i%7+1)
			}
		}
		return score, s
	}
	all, s := after(func(*harmony.Config) {})
	if s.Remembered == 0 {
		t.Error("nothing is remembered, though nothing says so")
	}
	forgetful, s := after(func(c *harmony.Config) { c.Forget = true })
	if s.Remembered != 0 || s.Good != 0 {
		t.Errorf("with Forget %d decisions are remembered, at a loss of %g", s.Remembered, s.Good)
	}
	unaware, _ := after(func(c *harmony.Config) { c.Unaware = true })
	if all == forgetful || all == unaware || forgetful == unaware {
		t.Errorf("the networks with all, without replay and without experts are %g, %g, %g; want three", all, forgetful, unaware)
	}
	// No expert ever decides, whatever was given for how often one does.
	alone, _ := after(func(c *harmony.Config) { c.Unaware, c.Explore = true, rl.Schedule{Steps: 1} })
	if unaware != alone {
		t.Errorf("without experts the network is %g, or %g where they would decide half of the time; want one", alone, unaware)
	}
	if again, _ := after(func(*harmony.Config) {}); again != all {
		t.Errorf("the same seed gave %g, then %g", all, again)
	}
}
