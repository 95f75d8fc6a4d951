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
	s := NewSequence(req, p, &drawer{newRanked(req, p, &randomRank{nodes: req.View.Nodes(), placement: p}, true)}, r.Explain)
	s.Place()
	return s.Decision(), nil
}

// drawer draws any node, until one takes the task: nodes that do have the same
// chance. Random mixes nodes so thoroughly that few are alike; only where most
// are full does it count those that are not.
type drawer struct{ *ranked }

func (d *drawer) Choose(kind int) int {
	const draws = 32
	if nodes := len(d.req.View.Nodes()); nodes > 0 {
		for range draws {
			if n := d.req.Rand.IntN(nodes); d.Check(kind, n) == cluster.Fits {
				return n
			}
		}
	}
	return d.ranked.Choose(kind)
}

type randomRank struct {
	nodes     []cluster.Node
	placement *cluster.Placement
}

// rank makes all nodes alike, so that the tie is drawn.
func (*randomRank) rank(_ int, _ []int, _ int, scores []float64) { clear(scores) }

func (*randomRank) counted(int, int, int) {}

func (r *randomRank) reason(kind, node int) place.Reason {
	fit := 0
	for n := range r.nodes {
		if r.placement.Check(kind, n) == cluster.Fits {
			fit++
		}
	}
	return place.Reason{Words: fmt.Sprintf("%s was drawn at random from the %d nodes that take it", r.nodes[node].Name, fit)}
}
