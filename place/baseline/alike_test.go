package baseline

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/cluster/clustertest"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/placetest"
)

type drawnInt struct{ *rapid.T }

func (d drawnInt) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "n") }

// oneByOne holds each choice of a ranked chooser against a look at every node.
type oneByOne struct {
	*ranked
	t *rapid.T
}

func (o *oneByOne) Choose(kind int) int {
	got := o.ranked.Choose(kind)
	var candidates []int
	for n := range o.req.View.Nodes() {
		if o.Check(kind, n) == cluster.Fits {
			candidates = append(candidates, n)
		}
	}
	if len(candidates) == 0 {
		if got >= 0 {
			o.t.Fatalf("chose node %d; none takes the task", got)
		}
		return got
	}
	scores := make([]float64, len(candidates))
	o.rank(kind, candidates, len(candidates), scores)
	best := 0
	for i := range candidates {
		if scores[i] > scores[best] {
			best = i
		}
	}
	for i, n := range candidates {
		switch {
		case n != got:
		case scores[i] != scores[best]:
			o.t.Fatalf("chose node %d of score %v; node %d has %v", got, scores[i], candidates[best], scores[best])
		case !o.randomTies && i != best:
			o.t.Fatalf("chose node %d; node %d has the same score and comes first", got, candidates[best])
		default:
			return got
		}
	}
	o.t.Fatalf("chose node %d, which does not take the task", got)
	return -1
}

// TestPropertyNodesAlikeAreAlike checks that looking at one node of each set
// chooses as looking at every node would.
func TestPropertyNodesAlikeAreAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, groups := clustertest.Random(drawnInt{t})
		view, err := cluster.NewSnapshot(spec)
		if err != nil {
			t.Fatal(err)
		}
		req := place.Request{View: view, Pending: groups, Rand: rand.New(rand.NewPCG(1, 1))}
		p := cluster.NewPlacement(view, req.Tasks())
		var r ranker
		random := false
		switch rapid.SampledFrom([]string{"spread", "binpack", "tetris", "paragon"}).Draw(t, "policy") {
		case "spread":
			s := &spreadRank{allocation: newAllocation(req, p), topology: rapid.Bool().Draw(t, "topology")}
			s.findTaints(view)
			if s.topology {
				s.countZones()
			}
			r, random = s, rapid.Bool().Draw(t, "random")
		case "binpack":
			r = &binpackRank{allocation: newAllocation(req, p)}
		case "tetris":
			r = &tetrisRank{placement: p, nodes: view.Nodes()}
		case "paragon":
			r = newParagonRank(Paragon{Model: placetest.Model{Names: []string{"", "fast"}}, QoS: 0.9}, req, p)
		}
		NewSequence(req, p, &oneByOne{newRanked(req, p, r, random), t}, false).Place()
	})
}

// TestTheTimeIsUp wants a part of the batch placed and the rest held with the
// reason, where the time is up midway.
func TestTheTimeIsUp(t *testing.T) {
	const tasks = 10_000
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: cluster.Nodes("", tasks/4, 1, 4)})
	if err != nil {
		t.Fatal(err)
	}
	g := cluster.Group{Name: "batch"}
	for i := range tasks {
		g.Tasks = append(g.Tasks, cluster.Task{ID: cluster.TaskID(rune('a' + i)), Workload: "a"})
	}
	asked := 0
	req := place.Request{View: view, Pending: []cluster.Group{g}, Stop: func() bool { asked++; return asked > 3 }}
	for _, name := range []string{"spread", "binpack", "greedy"} {
		asked = 0
		p, err := New(name, Options{Model: placetest.Model{}})
		if err != nil {
			t.Fatal(err)
		}
		d, err := p.Place(req)
		if err != nil {
			t.Fatal(err)
		}
		if want := 4*stopEvery - 1; len(d.Bind) != want || len(d.Hold) != tasks-want {
			t.Errorf("%s: %d bound, %d held; want %d and the rest", name, len(d.Bind), len(d.Hold), want)
			continue
		}
		if want := "the time was up after 1023 of 10000 tasks, before its turn"; d.Hold[0].Why != want {
			t.Errorf("%s: held since %q; want %q", name, d.Hold[0].Why, want)
		}
	}
}
