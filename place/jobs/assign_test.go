package jobs

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/placetest"
)

// The assignment against all assignments.
func TestPropertyAssignment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 5).Draw(t, "rows")
		cols := rapid.IntRange(rows, 6).Draw(t, "cols")
		values := make([]float64, rows*cols)
		for i := range values {
			values[i] = float64(rapid.IntRange(-4, 6).Draw(t, "value"))
		}
		value := func(r, c int) float64 { return values[r*cols+c] }
		match := make([]int, rows)
		var a assignment
		for range 2 { // its memory serves again
			a.solve(rows, cols, value, match)
		}
		sum, taken := 0.0, map[int]bool{}
		for r, c := range match {
			if taken[c] {
				t.Fatalf("column %d is taken twice: %v", c, match)
			}
			taken[c] = true
			sum += value(r, c)
		}
		best := math.Inf(-1)
		var try func(r int, used uint, sum float64)
		try = func(r int, used uint, sum float64) {
			if r == rows {
				best = max(best, sum)
				return
			}
			for c := range cols {
				if used>>c&1 == 0 {
					try(r+1, used|1<<c, sum+value(r, c))
				}
			}
		}
		try(0, 0, 0)
		if math.Abs(sum-best) > 1e-9 {
			t.Fatalf("sum %g of %v, the best is %g", sum, match, best)
		}
	})
}

// Where each device has room for one more, a decision of matching is the best
// of all ways to put jobs on devices.
func TestPropertyMatchingIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := placetest.Workloads(4)
		devices, jobs := rapid.IntRange(1, 4).Draw(t, "devices"), rapid.IntRange(1, 5).Draw(t, "jobs")
		nodes := cluster.Nodes("a", 1, devices, 0)
		var running []cluster.Running
		for d := range devices {
			nodes[0].Devices[d].Slots = 2
			g := placetest.Gang(fmt.Sprintf("r%d", d), 1, rapid.SampledFrom(names).Draw(t, "tenant"))
			running = append(running, cluster.Running{Task: g.Tasks[0], Node: nodes[0].Name, On: []int{d}, Group: g.Name})
		}
		view, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes, Running: running})
		if err != nil {
			t.Fatal(err)
		}
		req := place.Request{View: view}
		for i := range jobs {
			req.Pending = append(req.Pending, placetest.Gang(fmt.Sprintf("q%d", i), 1, rapid.SampledFrom(names).Draw(t, "job")))
		}
		threshold := rapid.Float64Range(-.5, .5).Draw(t, "threshold")
		speeds := NewSpeeds(placetest.Known{Model: placetest.Model{Names: []string{"a"}}, List: names}, Options{Scope: history.ScopeDevice, Misfits: placetest.Clash{}})
		b := NewBoard(speeds)
		b.Reset(req)
		best := 0.0
		var try func(i int, sum float64)
		try = func(i int, sum float64) {
			best = max(best, sum)
			if i == jobs {
				return
			}
			try(i+1, sum)
			x := b.Tasks(b.Gang(i))[0]
			for s := range devices {
				if b.Fit(int(x), s) != Fits {
					continue
				}
				mark, gain := b.Mark(), b.Gain(int(x), s)
				b.Put(int(x), s)
				try(i+1, sum+gain-threshold)
				b.Undo(mark)
			}
		}
		try(0, 0)
		before := b.Total()
		p, err := New("matching", Settings{Speeds: speeds, Values: map[string]float64{"threshold": threshold}})
		if err != nil {
			t.Fatal(err)
		}
		d, err := p.Place(req)
		if err != nil {
			t.Fatal(err)
		}
		got := p.(*policy).board.Total() - before - threshold*float64(len(d.Bind))
		if math.Abs(got-best) > 1e-6 {
			t.Fatalf("gains %g over the threshold, the best is %g", got, best)
		}
	})
}
