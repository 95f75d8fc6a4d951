package baseline

import (
	"errors"
	"fmt"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

var randomEntry = entry{
	name: "random",
	make: func(o Options, _ settings) (place.Policy, error) { return Random{Explain: o.Explain}, nil },
}

// Random draws uniformly among the nodes that take the task. It needs
// Request.Rand.
type Random struct{ Explain bool }

// Place implements place.Policy.
func (r Random) Place(req place.Request) (place.Decision, error) {
	if req.Rand == nil {
		return place.Decision{}, errors.New("policy random: the request has no source of randomness (Request.Rand)")
	}
	p := cluster.NewPlacement(req.View, req.Tasks())
	return newRanked(req, p, &randomRank{nodes: req.View.Nodes()}, true).place(r.Explain), nil
}

type randomRank struct {
	nodes []cluster.Node
	fit   int
}

// rank makes all nodes alike, so that the tie is drawn.
func (r *randomRank) rank(_ int, _ []int, fit int, scores []float64) {
	r.fit = fit
	clear(scores)
}

func (*randomRank) counted(int, int, int) {}

func (r *randomRank) reason(_, node int) place.Reason {
	return place.Reason{Words: fmt.Sprintf("%s was drawn at random from the %d nodes that take it", r.nodes[node].Name, r.fit)}
}
