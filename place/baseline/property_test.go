package baseline_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/cluster/clustertest"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/place/placetest"
)

// drawn lets rapid shrink the cluster.
type drawn struct{ *rapid.T }

func (d drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "n") }

var objectives = []place.Objective{
	{},
	place.WorstPerformance, place.TailLatency, place.NodesUsed,
	{Mean: 1, Worst: 0.5, Nodes: 0.01},
	place.NearTraffic,
	{Mean: 1, Worst: 0.2, Traffic: 0.5},
}

func drawRequest(t *rapid.T) place.Request {
	spec, groups := clustertest.Random(drawn{t})
	objective := rapid.SampledFrom(objectives).Draw(t, "objective")
	if objective.Traffic > 0 {
		placetest.Connect(t, &spec, clustertest.Workloads...)
	}
	view, err := cluster.NewSnapshot(spec)
	if err != nil {
		t.Fatal(err)
	}
	return place.Request{View: view, Pending: groups, Objective: objective}
}

func seeded(req place.Request) place.Request {
	req.Rand = rand.New(rand.NewPCG(7, 7))
	return req
}

// TestPropertyDecisions holds every policy to what all promise: the decision
// is valid, the same for the same seed, and holds no task that a node takes.
func TestPropertyDecisions(t *testing.T) {
	for _, name := range baseline.Names() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				req := drawRequest(t)
				m := placetest.Model{Names: []string{"", "fast"}, NoLatency: []string{"d"}, Silence: rapid.SampledFrom([]uint64{0, 3}).Draw(t, "silence")}
				o := baseline.Options{Model: m, Explain: rapid.Bool().Draw(t, "explain")}
				if name == "greedy-search" {
					o.Params = map[string]string{"kicks": "20"}
				}
				p, err := baseline.New(name, o)
				if err != nil {
					t.Fatal(err)
				}
				d, err := p.Place(seeded(req))
				if err != nil {
					t.Fatal(err)
				}
				again, _ := p.Place(seeded(req))
				if !reflect.DeepEqual(d, again) {
					t.Fatalf("the same seed decided twice differently:\n%v\n%v", d, again)
				}
				e, err := place.Evaluate(req, d, m)
				if err != nil {
					t.Fatal(err)
				}
				checkHolds(t, req, d, e.Placement)
				if o.Explain && len(d.Why) != len(d.Bind) {
					t.Fatalf("%d reasons for %d bindings", len(d.Why), len(d.Bind))
				}
				for id, why := range d.Why {
					if strings.TrimSpace(why.Words) == "" {
						t.Fatalf("no words for %s", id)
					}
				}
			})
		})
	}
}

// checkHolds wants a reason for every hold, and that no node takes a held task
// that is not of a gang.
func checkHolds(t *rapid.T, req place.Request, d place.Decision, p *cluster.Placement) {
	gang := map[cluster.TaskID]bool{}
	kind := map[cluster.TaskID]int{}
	i := 0
	for _, g := range req.Pending {
		for _, task := range g.Tasks {
			gang[task.ID], kind[task.ID] = g.Gang, p.Kind(i)
			i++
		}
	}
	for _, h := range d.Hold {
		if h.Why == "" {
			t.Fatalf("task %s is held without a reason", h.Task)
		}
		for n := range req.View.Nodes() {
			if !gang[h.Task] && p.Check(kind[h.Task], n) == cluster.Fits {
				t.Fatalf("task %s is held (%s), but node %d takes it", h.Task, h.Why, n)
			}
		}
	}
}

// TestPropertySearchIsNoWorseThanGreedy checks that exchanges only help.
func TestPropertySearchIsNoWorseThanGreedy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		m := placetest.Model{Names: []string{"", "fast"}}
		value := func(name string) (float64, int) {
			p, err := baseline.New(name, baseline.Options{Model: m, Params: map[string]string{}})
			if err != nil {
				t.Fatal(err)
			}
			return placetest.Worth(t, p, seeded(req), m)
		}
		greedy, held := value("greedy")
		search, heldToo := value("greedy-search")
		// With a task more to place the values are of different things.
		if held == heldToo && search < greedy-1e-9 {
			t.Fatalf("greedy reaches %v, greedy-search %v", greedy, search)
		}
	})
}
