package metis

import (
	"math/rand/v2"

	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/rl"
)

// worth is the critic of training that is a sum over nodes: what a node as it
// is will yet bring in surplus (see credit) if the task at hand goes elsewhere.
// To choose a node costs that, and earns what the node brings with the task.
type worth struct {
	net  *num.Scorer
	adam *num.Adam
	pass num.Pass
}

func newWorth(shape num.ScorerShape, rng *rand.Rand) (*worth, error) {
	shape.Prior, shape.PriorScale = 0, 0
	net, err := num.NewScorer(shape, rng)
	if err != nil {
		return nil, err
	}
	return &worth{net: net, adam: num.NewAdam(net.Params(), 1e-4)}, nil
}

// of is the worth of the candidates that were chosen.
func (v *worth) of(t *rl.Trajectory) []float32 {
	n := t.Len()
	b := num.Batch{
		Candidates: num.New(n, t.Features),
		Context:    num.Matrix{Rows: n, Cols: t.Context, Data: t.Contexts[:n*t.Context]},
		Starts:     make([]int, n+1),
	}
	for d, c := range t.Choices {
		k := t.Starts[d] + c.Index
		copy(b.Candidates.Row(d), t.Candidates[k*t.Features:(k+1)*t.Features])
		b.Starts[d+1] = d + 1
	}
	v.pass.Forward(v.net, b)
	return append([]float32(nil), v.pass.Scores...)
}

// learn goes through decisions once, in random order: targets are what each
// candidate that was not chosen brought.
func (v *worth) learn(takes []*played, rate float32, rng *rand.Rand) float64 {
	type at struct {
		p *played
		d int
	}
	var all []at
	for _, p := range takes {
		for d := range p.into.Len() {
			all = append(all, at{p, d})
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	const minibatch = 128
	loss, count := 0.0, 0
	for len(all) > 0 {
		batch := all[:min(minibatch, len(all))]
		all = all[len(batch):]
		rows := 0
		for _, x := range batch {
			rows += x.p.into.Starts[x.d+1] - x.p.into.Starts[x.d]
		}
		t := batch[0].p.into
		b := num.Batch{Candidates: num.New(rows, t.Features), Context: num.New(len(batch), t.Context), Starts: []int{0}}
		target := make([]float32, 0, rows)
		chosen := make([]bool, 0, rows)
		for i, x := range batch {
			t := x.p.into
			from, to := t.Starts[x.d], t.Starts[x.d+1]
			copy(b.Candidates.Data[b.Starts[i]*t.Features:], t.Candidates[from*t.Features:to*t.Features])
			copy(b.Context.Row(i), t.Contexts[x.d*t.Context:(x.d+1)*t.Context])
			b.Starts = append(b.Starts, b.Starts[i]+to-from)
			target = append(target, x.p.later[from:to]...)
			for k := from; k < to; k++ {
				chosen = append(chosen, k-from == t.Choices[x.d].Index)
			}
		}
		v.pass.Forward(v.net, b)
		d := make([]float32, rows)
		for k, s := range v.pass.Scores {
			if !chosen[k] {
				e := s - target[k]
				loss += float64(e * e)
				count++
				d[k] = e / float32(rows)
			}
		}
		v.pass.Backward(d, make([]float32, len(batch)))
		v.adam.Step(rate)
	}
	return loss / float64(max(1, count))
}
