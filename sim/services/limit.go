package services

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/bound"
)

// Limit is what the tasks of a moment could reach.
type Limit struct {
	// Bound is what no placement of the running tasks can exceed: the sum of
	// their performances, all free to sit anywhere on the nodes that are up.
	// Spread rules are left out of it: departures can leave tasks less even than
	// any plan may be.
	Bound float64
	// Proven says that it is.
	Proven bool
}

// anew is the request to place all that runs at a moment anew, on the nodes
// that are up.
func (s *Sample) anew(spec cluster.Spec) (place.Request, error) {
	spec.Nodes = slices.Clone(spec.Nodes)
	for _, n := range s.Down {
		spec.Nodes[n].Unschedulable = true
	}
	view, err := cluster.NewSnapshot(spec)
	if err != nil {
		return place.Request{}, err
	}
	var g cluster.Group
	for _, w := range slices.Sorted(maps.Keys(s.Tasks)) {
		for i := range s.Tasks[w] {
			g.Tasks = append(g.Tasks, cluster.Task{ID: cluster.TaskID(fmt.Sprintf("%s/%d", w, i)), Workload: w, Role: cluster.Replica})
		}
	}
	rand.New(rand.NewPCG(uint64(s.At), 0)).Shuffle(len(g.Tasks), func(i, j int) { g.Tasks[i], g.Tasks[j] = g.Tasks[j], g.Tasks[i] })
	return place.Request{View: view, Pending: []cluster.Group{g}, Now: s.At}, nil
}

// Limit bounds what the tasks that run at the moment could reach.
func (s *Sample) Limit(spec cluster.Spec, truth interference.Model, stop func() bool) (Limit, error) {
	spec.Constraints.Spread = nil
	req, err := s.anew(spec)
	if err != nil || s.Running == 0 {
		return Limit{Proven: true}, err
	}
	req.Stop = stop
	r, err := bound.Compute(req, truth, bound.Options{})
	return Limit{Bound: r.Bound * float64(s.Running), Proven: r.Proven}, err
}

// Anew is what a policy reaches that places all that runs at the moment anew:
// the sum of the performances, NaN where the truth is silent, and how many
// tasks it holds.
func (s *Sample) Anew(spec cluster.Spec, truth interference.Model, p place.Policy, seed uint64, stop func() bool) (sum float64, held int, err error) {
	req, err := s.anew(spec)
	if err != nil || s.Running == 0 {
		return 0, 0, err
	}
	req.Stop, req.Rand = stop, rand.New(rand.NewPCG(seed, streamPolicy))
	d, err := p.Place(req)
	if err != nil {
		return math.NaN(), 0, err
	}
	e, err := place.Evaluate(req, d, truth)
	return e.Value * float64(s.Running), e.Held, err
}
