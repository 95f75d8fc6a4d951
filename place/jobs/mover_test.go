package jobs

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/placetest"
)

// Moves are worth their cost, and what they come to is not bettered by one
// more move.
func TestPropertyMovesAreWorthIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := placetest.Workloads(4)
		devices := rapid.IntRange(2, 4).Draw(t, "devices")
		nodes := cluster.Nodes("a", 1, devices, 0)
		var running []cluster.Running
		for d := range devices {
			nodes[0].Devices[d].Slots = 2
			for range rapid.IntRange(0, 2).Draw(t, "tenants") {
				g := placetest.Gang(fmt.Sprintf("r%d", len(running)), 1, rapid.SampledFrom(names).Draw(t, "workload"))
				running = append(running, cluster.Running{
					Task: g.Tasks[0], Node: nodes[0].Name, On: []int{d}, Group: g.Name, Movable: rapid.IntRange(0, 3).Draw(t, "movable") > 0,
				})
			}
		}
		view, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes, Running: running})
		if err != nil {
			t.Fatal(err)
		}
		cost, horizon := rapid.Float64Range(1, 2000).Draw(t, "cost"), 1000.
		speeds := NewSpeeds(placetest.Known{Model: placetest.Model{Names: []string{"a"}}, List: names}, Options{Scope: history.ScopeDevice})
		p, err := New("greedy", Settings{
			Speeds: speeds, Migrate: time.Duration(cost * float64(time.Second)), Values: map[string]float64{"horizon": horizon},
		})
		if err != nil {
			t.Fatal(err)
		}
		d, err := p.Place(place.Request{View: view})
		if err != nil {
			t.Fatal(err)
		}
		to := map[cluster.TaskID]int{}
		for _, m := range d.Move {
			to[m.Task] = m.Devices[0]
		}
		var price []float64
		start := make([]cluster.Colocation, devices)
		for _, r := range running {
			start[r.On[0]] = start[r.On[0]].With(r.Workload)
		}
		for _, r := range running {
			price = append(price, cost*speeds.Performance(speeds.of("a", expand(start[r.On[0]])...), speeds.Number(r.Workload)))
		}
		worth := func(move func(i int) int) (value float64, fits bool) {
			at := make([]cluster.Colocation, devices)
			for i, r := range running {
				at[move(i)] = at[move(i)].With(r.Workload)
			}
			for i, r := range running {
				c := at[move(i)]
				if c.Tasks() > 2 {
					return 0, false
				}
				value += horizon * speeds.Performance(speeds.of("a", expand(c)...), speeds.Number(r.Workload))
				if move(i) != r.On[0] {
					value -= price[i]
				}
			}
			return value, true
		}
		chosen := func(i int) int {
			if d, moved := to[running[i].ID]; moved {
				return d
			}
			return running[i].On[0]
		}
		stay, _ := worth(func(i int) int { return running[i].On[0] })
		got, ok := worth(chosen)
		if !ok || got < stay-1e-6 {
			t.Fatalf("moves %v: worth %g, to stay %g", to, got, stay)
		}
		for i := range running {
			for d := range devices {
				better, fits := worth(func(k int) int {
					if k == i {
						return d
					}
					return chosen(k)
				})
				if running[i].Movable && fits && better > got+1e-4 {
					t.Fatalf("%s to device %d would be worth %g, %g as it is", running[i].ID, d, better, got)
				}
			}
		}
	})
}

// expand lists the workloads of a co-location, each as often as it is there.
func expand(c cluster.Colocation) []string {
	var out []string
	for _, w := range c.Workloads() {
		for range c[w] {
			out = append(out, w)
		}
	}
	return out
}
