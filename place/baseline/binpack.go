package baseline

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

var binpackEntry = entry{
	name: "binpack",
	make: func(o Options, _ settings) (place.Policy, error) { return Binpack{Explain: o.Explain}, nil },
}

// Binpack fills the fullest node that takes the task: kube-scheduler's
// NodeResourcesFit by MostAllocated. Ties go to the lowest node index.
type Binpack struct{ Explain bool }

// Place implements place.Policy.
func (b Binpack) Place(req place.Request) (place.Decision, error) {
	p := cluster.NewPlacement(req.View, req.Tasks())
	return newRanked(req, p, &binpackRank{allocation: newAllocation(req, p)}, false).place(b.Explain), nil
}

type binpackRank struct {
	*allocation
	fraction []float64
}

func (r *binpackRank) most(kind, node int) float64 {
	r.fraction = r.fractions(kind, node, r.fraction[:0])
	sum := 0.0
	for _, f := range r.fraction {
		sum += f
	}
	return sum / float64(max(1, len(r.fraction)))
}

func (r *binpackRank) rank(kind int, candidates []int, _ int, scores []float64) {
	for i, n := range candidates {
		scores[i] = r.most(kind, n)
	}
}

func (r *binpackRank) reason(kind, node int) place.Reason {
	full := r.most(kind, node)
	return place.Reason{
		Words:  fmt.Sprintf("%s is the fullest node that takes it: %.0f %% with it", r.nodes[node].Name, 100*full),
		Scores: map[string]float64{"most_allocated": full},
	}
}
