package rl

import (
	"math"
	"slices"
	"testing"

	"github.com/cotenant/cotenant/internal/num"
	"pgregory.net/rapid"
)

// plainLoss is the weighted loss of one decision, by its definition in float64.
// frozen stands for the parts through which no gradient goes.
func plainLoss(it item, value float64, scores []float64, w weights, frozen float64) float64 {
	top, sum := slices.Max(scores), 0.0
	for _, s := range scores {
		sum += math.Exp(s - top)
	}
	logp := func(k int) float64 { return scores[k] - top - math.Log(sum) }
	c, off := it.of.Choices[it.at], value-float64(it.target)
	if it.good {
		// The actor's weight is a number to it, not a function of the value.
		return -w.good*frozen*logp(c.Index) + w.good*goodValue*math.Pow(min(off, 0), 2)/2
	}
	loss := w.value * off * off / 2
	if len(scores) == 1 {
		return loss
	}
	a, r := float64(it.advantage), math.Exp(logp(c.Index)-float64(c.LogProb))
	loss -= w.policy * math.Exp(float64(c.LogProb-c.Behaviour)) * min(r*a, math.Min(math.Max(r, 1-w.clip), 1+w.clip)*a)
	for k := range scores {
		loss += w.entropy * math.Exp(logp(k)) * logp(k)
	}
	if c.Expert >= 0 {
		loss -= w.imitation * logp(c.Expert)
	}
	return loss
}

func TestLossesAgreeWithFiniteDifferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Float64Range(-2, 2)
		k := rapid.IntRange(1, 6).Draw(t, "candidates")
		scores := rapid.SliceOfN(number, k, k).Draw(t, "scores")
		c := Choice{
			Index: rapid.IntRange(0, k-1).Draw(t, "index"), Expert: rapid.IntRange(-1, k-1).Draw(t, "expert"),
			LogProb: float32(rapid.Float64Range(-3, -0.01).Draw(t, "log p")), Behaviour: float32(rapid.Float64Range(-3, -0.01).Draw(t, "log b")),
		}
		it := item{of: &Trajectory{Choices: []Choice{c}}, advantage: float32(number.Draw(t, "advantage")), target: float32(number.Draw(t, "target")), good: rapid.Bool().Draw(t, "good")}
		weight := rapid.SampledFrom([]float64{0, 1, 0.3})
		w := weights{
			policy: weight.Draw(t, "policy"), entropy: weight.Draw(t, "entropy"), value: weight.Draw(t, "value"),
			imitation: weight.Draw(t, "imitation"), good: weight.Draw(t, "good weight"),
			clip: rapid.SampledFrom([]float64{0.2, math.Inf(1)}).Draw(t, "clip"),
		}
		value := number.Draw(t, "V")
		low := make([]float32, k)
		for i, s := range scores {
			low[i] = float32(s)
			scores[i] = float64(low[i])
		}
		value = float64(float32(value))
		d := make([]float32, k)
		var sums parts
		dv := sums.loss(it, float32(value), low, d, make([]float32, k), w)
		frozen := min(1, max(0, float64(it.target)-value))

		const eps = 1e-5
		agree := func(what string, got float32, f func(float64) float64) {
			up, here, down := f(eps), f(0), f(-eps)
			left, right := (here-down)/eps, (up-here)/eps
			// On a corner (the clip, a return met) either side's slope will do.
			if g := float64(got); g < min(left, right)-1e-3 || g > max(left, right)+1e-3 {
				t.Fatalf("%s: gradient %g, finite differences %g and %g", what, got, left, right)
			}
		}
		for i := range scores {
			agree("score", d[i], func(e float64) float64 {
				moved := slices.Clone(scores)
				moved[i] += e
				return plainLoss(it, value, moved, w, frozen)
			})
		}
		agree("value", dv, func(e float64) float64 { return plainLoss(it, value+e, scores, w, frozen) })

		// The sums are the same losses before their weights.
		one := weights{clip: w.clip}
		check := func(what string, got float64, w weights) {
			if want := plainLoss(it, value, scores, w, frozen); math.Abs(got-want) > 1e-4*(1+math.Abs(want)) {
				t.Fatalf("sum of %s is %g, want %g", what, got, want)
			}
		}
		if it.good {
			return
		}
		one.policy = 1
		check("policy", sums.policy, one)
		check("entropy", -sums.entropy, weights{clip: w.clip, entropy: 1})
		check("value", sums.value, weights{clip: w.clip, value: 1})
		check("imitation", sums.imitation, weights{clip: w.clip, imitation: 1})
	})
}

// A minibatch's gradient, through the network and over several workers' parts,
// is the slope of the mean loss of its decisions.
func TestMinibatchGradientAgreesWithFiniteDifferences(t *testing.T) {
	shape := num.ScorerShape{Features: 3, Context: 2, Hidden: []int{5, 4}, Prior: 1, PriorScale: 0.5}
	net, err := num.NewScorer(shape, num.Rand(1))
	if err != nil {
		t.Fatal(err)
	}
	rng := num.Rand(2)
	for _, p := range net.Params() {
		for i := range p.Value.Data {
			p.Value.Data[i] = 0.5 * float32(rng.NormFloat64())
		}
	}
	l, err := NewLearner(net, Options{Epochs: 1, Minibatch: 8, Workers: 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	of := NewTrajectory(1)
	var items []item
	for i := range 11 {
		rows := 1 + rng.IntN(5)
		c := num.New(rows, 3)
		for i := range c.Data {
			c.Data[i] = float32(rng.NormFloat64())
		}
		of.Add(c, []float32{float32(rng.NormFloat64()), float32(rng.NormFloat64())}, Choice{Index: rng.IntN(rows), Expert: rng.IntN(rows+1) - 1, LogProb: -1, Behaviour: -0.8})
		items = append(items, item{of: of, at: i, advantage: float32(rng.NormFloat64()), target: float32(rng.NormFloat64())})
	}
	w := weights{policy: 1, entropy: 0.1, value: 0.5, imitation: 0.3, clip: math.Inf(1)}
	loss := func() (sum float64) {
		var p num.Pass
		p.Forward(net, of.batch())
		for d, it := range items {
			var scores []float64
			for _, s := range p.Scores[of.Starts[d]:of.Starts[d+1]] {
				scores = append(scores, float64(s))
			}
			sum += plainLoss(it, float64(p.Values[d]), scores, w, 0) / float64(len(items))
		}
		return sum
	}
	l.gradient(items, len(items), w)
	for k, p := range net.Params() {
		for i := range p.Value.Data {
			const eps = 5e-3
			old := p.Value.Data[i]
			p.Value.Data[i] = old + eps
			up := loss()
			p.Value.Data[i] = old - eps
			down := loss()
			p.Value.Data[i] = old
			if got, want := float64(p.Grad.Data[i]), (up-down)/(2*eps); math.Abs(got-want) > 2e-3*(1+math.Abs(want)) {
				t.Errorf("parameter %d[%d]: gradient %g, finite difference %g", k, i, got, want)
			}
		}
	}
}
