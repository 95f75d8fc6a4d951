package num_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/cotenant/cotenant/internal/num"
	"pgregory.net/rapid"
)

// scorer draws a network whose every parameter matters: the heads that start
// at 0 are drawn too.
func scorer(tb testing.TB, shape num.ScorerShape, seed uint64) *num.Scorer {
	tb.Helper()
	rng := num.Rand(seed)
	s, err := num.NewScorer(shape, rng)
	if err != nil {
		tb.Fatal(err)
	}
	for _, p := range s.Params() {
		for i := range p.Value.Data {
			if p.Value.Data[i] == 0 {
				p.Value.Data[i] = 0.3 * float32(rng.NormFloat64())
			}
		}
	}
	return s
}

func decisions(shape num.ScorerShape, sizes []int, seed uint64) num.Batch {
	b := num.Batch{Starts: []int{0}}
	for _, k := range sizes {
		b.Starts = append(b.Starts, b.Starts[len(b.Starts)-1]+k)
	}
	b.Candidates = random(b.Starts[len(sizes)], shape.Features, seed)
	b.Context = random(len(sizes), shape.Context, seed+1)
	return b
}

func drawShape(t *rapid.T) num.ScorerShape {
	shape := num.ScorerShape{
		Features: rapid.IntRange(1, 5).Draw(t, "features"),
		Context:  rapid.IntRange(0, 4).Draw(t, "context"),
		Hidden:   rapid.SliceOfN(rapid.IntRange(1, 6), 1, 3).Draw(t, "hidden"),
	}
	shape.Prior = rapid.IntRange(0, shape.Features).Draw(t, "prior")
	return shape
}

func TestScorerGradientsAgreeWithFiniteDifferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := drawShape(t)
		seed := rapid.Uint64Range(0, 1<<40).Draw(t, "seed")
		s, err := num.NewScorer(shape, num.Rand(seed))
		if err != nil {
			t.Fatal(err)
		}
		rng := num.Rand(seed, 1)
		for _, p := range s.Params() {
			for i := range p.Value.Data {
				p.Value.Data[i] = 0.5 * float32(rng.NormFloat64())
			}
		}
		s.Rescale(3, 2) // values in other units must not change the gradient
		b := decisions(shape, rapid.SliceOfN(rapid.IntRange(1, 5), 1, 4).Draw(t, "sizes"), seed)
		cs, cv := random(1, b.Candidates.Rows, seed+2).Data, random(1, b.Len(), seed+3).Data

		var p num.Pass
		loss := func() (sum float64) {
			p.Forward(s, b)
			for i, v := range p.Scores {
				sum += float64(v) * float64(cs[i])
			}
			for i, v := range p.Values {
				sum += (float64(v) - 3) / 2 * float64(cv[i])
			}
			return sum
		}
		base := loss()
		p.Backward(cs, cv)
		for k, param := range s.Params() {
			for i := range param.Value.Data {
				const eps = 4e-3
				at, old := &param.Value.Data[i], param.Value.Data[i]
				*at = old + eps
				up := loss()
				*at = old - eps
				down := loss()
				*at = old
				got, want := float64(param.Grad.Data[i]), (up-down)/(2*eps)
				// At a tie of the maximum the slopes of the two sides differ; the
				// gradient is one of them.
				left, right := (base-down)/eps, (up-base)/eps
				if math.Abs(got-want) > 5e-3*(1+math.Abs(want)) && (got < min(left, right)-0.01 || got > max(left, right)+0.01) {
					t.Fatalf("parameter %d[%d]: gradient %g, finite difference %g (%g from the left, %g from the right)", k, i, got, want, left, right)
				}
			}
		}
	})
}

// A decision's scores are its own: neither the decisions beside it in a batch
// nor the order of its candidates change them.
func TestScorerSeesOneDecisionAtATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := drawShape(t)
		seed := rapid.Uint64Range(0, 1<<40).Draw(t, "seed")
		s, err := num.NewScorer(shape, num.Rand(seed))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range s.Params() {
			copy(p.Value.Data, random(1, len(p.Value.Data), seed).Data)
		}
		b := decisions(shape, rapid.SliceOfN(rapid.IntRange(1, 5), 1, 4).Draw(t, "sizes"), seed)
		var whole, one num.Pass
		whole.Forward(s, b)
		for d := range b.Len() {
			rows := b.Starts[d+1] - b.Starts[d]
			turned := num.New(rows, shape.Features)
			for k := range rows {
				copy(turned.Row(k), b.Candidates.Row(b.Starts[d+1]-1-k))
			}
			scores := one.Score(s, turned, b.Context.Row(d))
			slices.Reverse(scores)
			for k, v := range scores {
				if want := whole.Scores[b.Starts[d]+k]; math.Abs(float64(v-want)) > 1e-4*(1+math.Abs(float64(want))) {
					t.Fatalf("decision %d, candidate %d: %g alone, %g in the batch", d, k, v, want)
				}
			}
			slices.Reverse(scores)
			one.Forward(s, num.Batch{Candidates: turned, Context: num.Matrix{Rows: 1, Cols: shape.Context, Data: b.Context.Row(d)}, Starts: []int{0, rows}})
			if v, want := one.Values[0], whole.Values[d]; math.Abs(float64(v-want)) > 1e-4*(1+math.Abs(float64(want))) {
				t.Fatalf("decision %d: value %g alone, %g in the batch", d, v, want)
			}
		}
	})
}

func TestUntrainedScorerIsItsPrior(t *testing.T) {
	s, err := num.NewScorer(num.ScorerShape{Features: 3, Context: 2, Hidden: []int{8, 8}, Prior: 2, PriorScale: 4}, num.Rand(1))
	if err != nil {
		t.Fatal(err)
	}
	var p num.Pass
	c := random(5, 3, 2)
	for k, v := range p.Score(s, c, []float32{1, 2}) {
		if v != 4*c.Row(k)[1] {
			t.Errorf("candidate %d scores %g, want %g", k, v, 4*c.Row(k)[1])
		}
	}
}

func TestRescaleKeepsValues(t *testing.T) {
	shape := num.ScorerShape{Features: 3, Context: 2, Hidden: []int{8}}
	s := scorer(t, shape, 1)
	b := decisions(shape, []int{2, 3}, 4)
	var p num.Pass
	p.Forward(s, b)
	before := slices.Clone(p.Values)
	s.Rescale(100, 7)
	p.Forward(s, b)
	for d, v := range p.Values {
		if math.Abs(float64(v-before[d])) > 1e-4 {
			t.Errorf("value %d: %g became %g", d, before[d], v)
		}
	}
}

func TestTensorsAreAllThatAScorerIs(t *testing.T) {
	shape := num.ScorerShape{Features: 3, Context: 2, Hidden: []int{8, 4}, Prior: 1, PriorScale: 1}
	s := scorer(t, shape, 1)
	s.Rescale(5, 2)
	u := scorer(t, shape, 2)
	to := u.Tensors()
	for i, from := range s.Tensors() {
		if from.Name != to[i].Name || !slices.Equal(from.Shape, to[i].Shape) || from.Shape[0]*from.Shape[1] != len(from.Data) {
			t.Fatalf("tensor %d is %s %v with %d elements, in the other %s %v", i, from.Name, from.Shape, len(from.Data), to[i].Name, to[i].Shape)
		}
		copy(to[i].Data, from.Data)
	}
	b := decisions(shape, []int{4, 1, 3}, 4)
	var p, q num.Pass
	p.Forward(s, b)
	q.Forward(u, b)
	if !slices.Equal(p.Scores, q.Scores) || !slices.Equal(p.Values, q.Values) {
		t.Error("a scorer with the same tensors answers differently")
	}
	// A clone is apart, a twin is not.
	clone, twin := s.Clone(), s.Twin()
	s.Params()[0].Value.Data[0]++
	q.Forward(clone, b)
	if !slices.Equal(p.Scores, q.Scores) {
		t.Error("a clone changed with its original")
	}
	q.Forward(twin, b)
	if slices.Equal(p.Scores, q.Scores) {
		t.Error("a twin did not change with its original")
	}
}

func TestScorerRefusesShapes(t *testing.T) {
	for _, shape := range []num.ScorerShape{{}, {Features: 1}, {Features: 1, Context: -1, Hidden: []int{1}}, {Features: 1, Hidden: []int{0}}, {Features: 2, Hidden: []int{1}, Prior: 3}, {Features: 2, Hidden: []int{1}, Prior: -1}} {
		if _, err := num.NewScorer(shape, num.Rand(1)); err == nil {
			t.Errorf("%+v is accepted", shape)
		}
	}
}

func TestSoftmaxIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOfN(rapid.Float32Range(-1e30, 1e30), 1, 20).Draw(t, "scores")
		if rapid.Bool().Draw(t, "small") {
			for i := range scores {
				scores[i] /= 1e29
			}
		}
		p := make([]float32, len(scores))
		lse := num.Softmax(p, scores)
		top := float64(slices.Max(scores))
		var sum float64
		for _, v := range scores {
			sum += math.Exp(float64(v) - top)
		}
		if want := top + math.Log(sum); math.Abs(float64(lse)-want) > 1e-5*(1+math.Abs(want)) {
			t.Fatalf("log-sum-exp %g, want %g", lse, want)
		}
		var total float64
		for k, v := range p {
			want := math.Exp(float64(scores[k])-top) / sum
			if math.Abs(float64(v)-want) > 1e-5 {
				t.Fatalf("p[%d] = %g, want %g", k, v, want)
			}
			total += float64(v)
		}
		if math.Abs(total-1) > 1e-5 {
			t.Fatalf("probabilities sum to %g", total)
		}
	})
}

func TestScoreDoesNotAllocate(t *testing.T) {
	shape := num.ScorerShape{Features: 24, Context: 16, Hidden: []int{64, 64}}
	s, c, g := scorer(t, shape, 1), random(30, 24, 2), random(1, 16, 3).Data
	var p num.Pass
	if n := testing.AllocsPerRun(100, func() { p.Score(s, c, g) }); n > 0 {
		t.Errorf("a decision allocates %g times", n)
	}
}

func ExampleScorer() {
	// Candidates with two features, of which the first is a heuristic's opinion.
	s, err := num.NewScorer(num.ScorerShape{Features: 2, Hidden: []int{8}, Prior: 1, PriorScale: 10}, num.Rand(1))
	if err != nil {
		panic(err)
	}
	var pass num.Pass // one for each goroutine
	candidates := num.Matrix{Rows: 3, Cols: 2, Data: []float32{0.1, 5, 0.3, 5, 0.2, 5}}
	fmt.Println(pass.Score(s, candidates, nil))
	// Output: [1 3 2]
}

func BenchmarkScore(b *testing.B) {
	shape := num.ScorerShape{Features: 24, Context: 16, Hidden: []int{64, 64}}
	for _, k := range []int{30, 1000} {
		b.Run(fmt.Sprint(k), func(b *testing.B) {
			s, c, g := scorer(b, shape, 1), random(k, 24, 2), random(1, 16, 3).Data
			var p num.Pass
			for b.Loop() {
				p.Score(s, c, g)
			}
		})
	}
}

func BenchmarkScorerGradient(b *testing.B) {
	shape := num.ScorerShape{Features: 24, Context: 16, Hidden: []int{64, 64}}
	s := scorer(b, shape, 1)
	sizes := slices.Repeat([]int{25}, 64)
	batch := decisions(shape, sizes, 1)
	cs, cv := random(1, batch.Candidates.Rows, 2).Data, random(1, 64, 3).Data
	var p num.Pass
	for b.Loop() {
		p.Forward(s, batch)
		p.Backward(cs, cv)
	}
	b.ReportMetric(64*float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}
