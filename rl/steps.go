package rl

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/cotenant/cotenant/internal/num"
)

// shard is the part of a minibatch that one worker takes forward and back.
type shard struct {
	net     *num.Scorer // a twin: the parameters of all, gradients of its own
	params  []*num.Param
	pass    num.Pass
	batch   num.Batch
	dScores []float32
	dValues []float32
	probs   []float32
	values  []float32 // of the items, in the critic's units
	parts   parts
}

// chunk is how many decisions are valued at once, so that what is between the
// layers stays in the processor's cache.
const chunk = 64

// values asks the critic about every state of the trajectories; an episode that
// ended has 0 behind its last decision.
func (l *Learner) values(trajectories []*Trajectory) [][]float64 {
	out := make([][]float64, len(trajectories))
	// Workers take trajectories in turn; each writes its own place.
	l.each(func(i int, s *shard) {
		for n := i; n < len(trajectories); n += shards {
			t := trajectories[n]
			b := t.batch()
			vs := make([]float64, 0, t.Len()+1)
			for from := 0; from < b.Len(); from += chunk {
				s.pass.Forward(l.Net, part(b, from, min(from+chunk, b.Len()), &s.batch.Starts))
				for _, v := range s.pass.Values {
					vs = append(vs, float64(v))
				}
			}
			out[n] = append(vs, 0)[:t.Len()+1]
		}
	})
	return out
}

// part is the decisions from, ..., to-1 of b, with starts as storage.
func part(b num.Batch, from, to int, starts *[]int) num.Batch {
	first, last := b.Starts[from], b.Starts[to]
	*starts = (*starts)[:0]
	for _, s := range b.Starts[from : to+1] {
		*starts = append(*starts, s-first)
	}
	f, g := b.Candidates.Cols, b.Context.Cols
	return num.Batch{
		Candidates: num.Matrix{Rows: last - first, Cols: f, Data: b.Candidates.Data[first*f : last*f]},
		Context:    num.Matrix{Rows: to - from, Cols: g, Data: b.Context.Data[from*g : to*g]},
		Starts:     *starts,
	}
}

// each runs work for every shard on the workers.
func (l *Learner) each(work func(i int, s *shard)) {
	workers := min(max(l.Options.Workers, 1), shards)
	run := func(worker int) {
		for i := worker; i < shards; i += workers {
			work(i, &l.shards[i])
		}
	}
	var group sync.WaitGroup
	for worker := 1; worker < workers; worker++ {
		group.Go(func() { run(worker) })
	}
	run(0)
	group.Wait()
}

// epochs goes over the items in random order, a minibatch a step.
func (l *Learner) epochs(s *Stats, items []item, w weights, epochs int, rate float64, rng *rand.Rand) error {
	var total parts
	var norm moments
	var mini []item
	drawn := 0
	if w.good > 0 {
		drawn = int(math.Ceil(l.Options.GoodShare * float64(l.Options.Minibatch)))
	}
	// Minibatches of one size, as close as can be to the one asked for: a tail of
	// a few decisions would step as far as all the others.
	count := max(1, (len(items)+l.Options.Minibatch/2)/l.Options.Minibatch)
	for s.Epochs < epochs {
		s.Epochs++
		rng.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
		var epoch parts
		for m := range count {
			mini = append(mini[:0], items[m*len(items)/count:(m+1)*len(items)/count]...)
			fresh := len(mini)
			mini = l.replay.draw(mini, drawn, rng)
			l.remember(mini[fresh:])
			step := l.gradient(mini, fresh, w)
			epoch.add(step)
			length := l.shorten()
			if math.IsNaN(length) || math.IsInf(length, 0) {
				return fmt.Errorf("the gradient of epoch %d, step %d is %g: the network has diverged; lower the learning rate", s.Epochs, m, length)
			}
			norm.add(length)
			l.adam.Step(float32(rate))
			if step.free > 0 && l.Options.Divergence > 0 && w.policy > 0 && step.divergence/float64(step.free) > l.Options.Divergence {
				epochs = 0 // this was the last step
				break
			}
		}
		total.add(epoch)
		s.Divergence = epoch.divergence / max(1, float64(epoch.free))
	}
	free := max(1, float64(total.free))
	s.Policy, s.Entropy, s.Clipped = total.policy/free, total.entropy/free, float64(total.clipped)/free
	s.Value = total.value / max(1, float64(total.fresh))
	s.Imitation = total.imitation / max(1, float64(total.shown))
	s.Good = total.good / max(1, float64(total.remembered))
	s.Gradient = norm.mean()
	return nil
}

// remember puts what is known of memories into the critic's units of today.
func (l *Learner) remember(good []item) {
	mean, std := l.Net.ValueScale()
	for i := range good {
		it := &good[i]
		it.target = float32((it.entry.returns[it.at] - float64(mean)) / float64(std))
	}
}

// gradient takes a minibatch forward and back. Losses are means over its fresh
// decisions and over its memories.
func (l *Learner) gradient(mini []item, fresh int, w weights) parts {
	good := w
	if n := len(mini) - fresh; n > 0 {
		good.good = w.good * float64(fresh) / float64(n)
	}
	cut := func(i int) int { return i * len(mini) / shards }
	l.each(func(i int, s *shard) {
		mine := mini[cut(i):cut(i+1)]
		s.parts = parts{}
		if len(mine) == 0 {
			return
		}
		s.gather(mine, l.Net.Shape)
		s.pass.Forward(s.net, s.batch)
		s.dScores, s.probs = sized(s.dScores, len(s.pass.Scores)), sized(s.probs, len(s.pass.Scores))
		s.dValues, s.values = sized(s.dValues, len(mine)), sized(s.values, len(mine))
		mean, std := s.net.ValueScale()
		for d, it := range mine {
			from, to := s.batch.Starts[d], s.batch.Starts[d+1]
			s.values[d] = (s.pass.Values[d] - mean) / std
			s.dValues[d] = s.parts.loss(it, s.values[d], s.pass.Scores[from:to], s.dScores[from:to], s.probs[from:to], good)
		}
		share := 1 / float32(fresh)
		for _, d := range [][]float32{s.dScores, s.dValues} {
			for i := range d {
				d[i] *= share
			}
		}
		s.pass.Backward(s.dScores, s.dValues)
	})
	var sum parts
	for i := range l.shards {
		s := &l.shards[i]
		sum.add(s.parts)
		for k, p := range s.params {
			to := l.params[k].Grad.Data
			for j, v := range p.Grad.Data {
				to[j] += v
			}
			p.Grad.Zero()
		}
		for d, it := range mini[cut(i):cut(i+1)] {
			if it.good {
				l.replay.update(it, float64(it.target-s.values[d]))
			}
		}
	}
	return sum
}

// gather copies the decisions side by side.
func (s *shard) gather(items []item, shape num.ScorerShape) {
	b := &s.batch
	candidates, context := b.Candidates.Data[:0], b.Context.Data[:0]
	b.Starts = append(b.Starts[:0], 0)
	for _, it := range items {
		from, to := it.of.Starts[it.at], it.of.Starts[it.at+1]
		candidates = append(candidates, it.of.Candidates[from*shape.Features:to*shape.Features]...)
		context = append(context, it.of.Contexts[it.at*shape.Context:(it.at+1)*shape.Context]...)
		b.Starts = append(b.Starts, b.Starts[len(b.Starts)-1]+to-from)
	}
	b.Candidates = num.Matrix{Rows: b.Starts[len(items)], Cols: shape.Features, Data: candidates}
	b.Context = num.Matrix{Rows: len(items), Cols: shape.Context, Data: context}
}

// shorten brings the gradient to its largest norm and returns what it was.
func (l *Learner) shorten() float64 {
	var sum float64
	for _, p := range l.params {
		for _, g := range p.Grad.Data {
			sum += float64(g) * float64(g)
		}
	}
	norm := math.Sqrt(sum)
	if top := l.Options.Gradient; top > 0 && norm > top {
		share := float32(top / norm)
		for _, p := range l.params {
			for i := range p.Grad.Data {
				p.Grad.Data[i] *= share
			}
		}
	}
	return norm
}

func sized(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}
