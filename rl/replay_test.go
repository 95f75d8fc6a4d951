package rl

import (
	"math"
	"testing"

	"github.com/cotenant/cotenant/internal/num"
)

func episodeOf(n int, score float64) *Trajectory {
	t := NewTrajectory(1)
	t.Score = score
	for range n {
		t.Add(num.New(2, 1), nil, Choice{Expert: -1})
	}
	t.End()
	return t
}

func TestReplayKeepsTheBest(t *testing.T) {
	r := NewReplay(10, 1)
	add := func(n int, score float64) *Trajectory {
		e := episodeOf(n, score)
		r.Add(e, make([]float64, n), make([]float64, n))
		return e
	}
	a, b, c := add(4, 1), add(4, 3), add(2, 2)
	if r.Len() != 10 {
		t.Fatalf("holds %d decisions, want 10", r.Len())
	}
	d := add(4, 2) // the newer of equals stays; a, then c, are the worst
	if r.Len() != 10 || r.episodes[0].of != b || r.episodes[1].of != d || r.episodes[2].of != c {
		t.Errorf("kept the wrong episodes (%d decisions)", r.Len())
	}
	add(1, 0)
	add(11, 9)
	if r.Len() != 10 {
		t.Errorf("holds %d decisions after a bad and an oversized episode, want 10", r.Len())
	}
	_ = a
}

func TestReplayDrawsByPriority(t *testing.T) {
	r := NewReplay(100, 0.5)
	e, f := episodeOf(2, 1), episodeOf(3, 2)
	r.Add(e, make([]float64, 2), []float64{1, 4})
	r.Add(f, make([]float64, 3), []float64{9, -5, 0})
	chances := func() map[item]float64 { // by where they point
		want := map[item]float64{}
		sum := 0.0
		for _, ep := range r.episodes {
			for i, c := range ep.chances {
				want[item{of: ep.of, at: i, good: true, entry: ep}] = c
				sum += c
			}
		}
		for k := range want {
			want[k] /= sum
		}
		return want
	}
	check := func() {
		t.Helper()
		const n = 200000
		got := map[item]float64{}
		for _, it := range r.draw(nil, n, num.Rand(1)) {
			got[it] += 1.0 / n
		}
		for it, want := range chances() {
			if math.Abs(got[it]-want) > 4*math.Sqrt(want/n)+1e-4 {
				t.Errorf("decision %d of the episode of %d was drawn with frequency %.4f, want %.4f", it.at, it.of.Len(), got[it], want)
			}
		}
	}
	check()
	if c := r.episodes[0].chances[0] / r.episodes[1].chances[0]; math.Abs(c-3) > 1e-9 {
		t.Errorf("surplus 9 to 1 with power 0.5 has chances %g to 1, want 3", c)
	}
	r.update(item{of: f, at: 1, entry: r.episodes[0]}, 16)
	check()
	if got := NewReplay(5, 1).draw(nil, 3, num.Rand(1)); len(got) != 0 {
		t.Errorf("an empty replay gave %d decisions", len(got))
	}
}
