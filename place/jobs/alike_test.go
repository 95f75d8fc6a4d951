package jobs

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/placetest"
)

// Holds asks whether a whole gang fits on one node of the cluster if nobody else
// is there, whatever runs now.
func TestHolds(t *testing.T) {
	nodes := cluster.Nodes("a", 2, 4, 0)
	for i := range nodes {
		nodes[i].Capacity = cluster.Resources{cluster.CPU: 8}
		for d := range nodes[i].Devices {
			nodes[i].Devices[d].Slots = 1
		}
	}
	nodes[1].Slots = 5
	needy := func(g cluster.Group, cpu int64) cluster.Group {
		for i := range g.Tasks {
			g.Tasks[i].Requests = cluster.Resources{cluster.CPU: cpu}
		}
		return g
	}
	// Three of the four devices of each node are taken.
	var running []cluster.Running
	for i, n := range nodes {
		for d := range 3 {
			task := placetest.Gang(fmt.Sprintf("r%d-%d", i, d), 1, "w").Tasks[0]
			running = append(running, cluster.Running{Task: task, Node: n.Name, On: []int{d}})
		}
	}
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes, Running: running})
	if err != nil {
		t.Fatal(err)
	}
	lacking := placetest.Gang("lacking", 1, "w")
	lacking.Tasks[0].Requests = cluster.Resources{"licence": 1}
	b := NewBoard(NewSpeeds(nil, Options{}))
	b.Reset(place.Request{View: view, Pending: []cluster.Group{
		needy(placetest.Gang("whole", 4, "w"), 2), needy(placetest.Gang("hungry", 4, "w"), 3), placetest.Gang("large", 5, "w"), lacking,
	}})
	for i, want := range []bool{true, false, false, false} {
		for range 2 { // the answer is remembered
			if got := b.Holds(b.Gang(i)); got != want {
				t.Errorf("gang %s: some node holds it: %v, want %v", b.Name(b.Gang(i)), got, want)
			}
		}
	}
}

// An indexed board lists the same candidates as one that looks at every site,
// or splits those that differ in more than it knows, whatever it saw before.
func TestPropertyIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		plain, indexed := NewBoard(newSpeeds(w.Scope, 5)), NewBoard(newSpeeds(w.Scope, 5))
		indexed.Index()
		indexed.manyAlike = 0
		for range 4 {
			w.Arrive(t)
			plain.Reset(w.Request())
			indexed.Reset(w.Request())
			fresh := NewBoard(newSpeeds(w.Scope, 5))
			fresh.Index()
			fresh.manyAlike = 0
			fresh.Reset(w.Request())
			total := plain.Total()
			for i := range plain.Pending() {
				for k, x := range plain.Tasks(plain.Gang(i)) {
					y := indexed.Tasks(indexed.Gang(i))[k]
					a, why := plain.Candidates(int(x))
					b, no := indexed.Candidates(int(y))
					if why != no {
						t.Fatalf("refused for %v, with an index for %v", why, no)
					}
					if f, _ := fresh.Candidates(int(fresh.Tasks(fresh.Gang(i))[k])); !slices.Equal(f, b) {
						t.Fatalf("an index that has seen the past lists %v, a fresh one %v", b, f)
					}
					all := int32(0)
					for _, c := range a {
						all += c.Alike
						if !slices.ContainsFunc(b, func(d Candidate) bool { return d.Site == c.Site }) {
							t.Fatalf("site %d of %v is not in %v", c.Site, a, b)
						}
					}
					for _, c := range b {
						all -= c.Alike
					}
					if all != 0 {
						t.Fatalf("candidates %v, with an index %v", a, b)
					}
					covered := int32(0)
					for _, c := range indexed.Groups(int(y)) {
						covered += c.Alike
					}
					if lo, hi := indexed.Range(int(y)); int(covered) != hi-lo {
						t.Fatalf("groups cover %d of %d sites", covered, hi-lo)
					}
					if len(a) == 0 {
						continue
					}
					s := int(a[rapid.IntRange(0, len(a)-1).Draw(t, "site")].Site)
					for _, board := range []*Board{plain, indexed, fresh} {
						mark := board.Mark()
						task := int(board.Tasks(board.Gang(i))[k])
						board.Put(task, s)
						if board != plain {
							board.Groups(task)
						}
						board.Undo(mark)
						board.Put(task, s)
					}
					if plain.Gained() != indexed.Gained() || math.Abs(plain.Total()-total-plain.Gained()) > 1e-9 {
						t.Fatalf("gained %g and %g, by definition %g", plain.Gained(), indexed.Gained(), plain.Total()-total)
					}
				}
			}
			plain.Undo(0)
			p, _ := New("spread", Settings{Speeds: newSpeeds(w.Scope, 5)})
			d, _ := p.Place(w.Request())
			w.Apply(t, d)
		}
	})
}
