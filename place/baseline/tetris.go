package baseline

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

var tetrisEntry = entry{
	name: "tetris",
	make: func(o Options, _ settings) (place.Policy, error) { return Tetris{Explain: o.Explain}, nil },
}

// Tetris puts a task where its demands line up best with what is free: the
// node with the highest dot product of the two vectors, both divided by the
// node's capacity (Grandl, Ananthanarayanan, Kandula, Rao, Akella:
// Multi-resource packing for cluster schedulers, SIGCOMM 2014, section 3.2).
// Every resource that a node states counts, slots and devices too; a task
// takes one slot. The paper lets a machine choose among tasks; here tasks come
// in arrival order, like everywhere, and choose among nodes. Its second half,
// shortest remaining work first, has no meaning for services. Ties go to the
// lowest node index.
type Tetris struct{ Explain bool }

// Place implements place.Policy.
func (t Tetris) Place(req place.Request) (place.Decision, error) {
	p := cluster.NewPlacement(req.View, req.Tasks())
	r := &tetrisRank{placement: p, nodes: req.View.Nodes()}
	return newRanked(req, p, r, false).place(t.Explain), nil
}

type tetrisRank struct {
	placement *cluster.Placement
	nodes     []cluster.Node
}

func (r *tetrisRank) alignment(kind, node int) float64 {
	sum := 0.0
	need, free := r.placement.Need(kind), r.placement.Free(node)
	for d := range r.placement.Dimensions() {
		if c := float64(r.placement.Capacity(node, d)); c > 0 && free[d] > 0 {
			sum += float64(need[d]) / c * float64(free[d]) / c
		}
	}
	if slots, limited := r.placement.FreeSlots(node); limited {
		c := float64(r.nodes[node].Slots)
		sum += float64(slots) / (c * c)
	}
	return sum
}

func (r *tetrisRank) rank(kind int, candidates []int, _ int, scores []float64) {
	for i, n := range candidates {
		scores[i] = r.alignment(kind, n)
	}
}

func (*tetrisRank) counted(int, int, int) {}

func (r *tetrisRank) reason(kind, node int) place.Reason {
	a := r.alignment(kind, node)
	return place.Reason{
		Words:  fmt.Sprintf("what %s has free lines up best with what the task demands: alignment %.4g", r.nodes[node].Name, a),
		Scores: map[string]float64{"alignment": a},
	}
}
