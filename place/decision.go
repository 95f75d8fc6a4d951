package place

import (
	"fmt"
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
)

// DecisionOf binds the i-th pending task to the node with index at[i], and
// holds it with a reason in words where at[i] is negative. Gangs of which a
// task is held are held whole; a policy that takes such gangs back before it
// places other tasks keeps those free to use the room.
func DecisionOf(req Request, p *cluster.Placement, at []int) Decision {
	nodes := req.View.Nodes()
	d := Decision{Bind: make([]Binding, 0, len(at))}
	whyNot := make([]string, p.Kinds()) // the same for all of a kind
	first := 0
	for _, g := range req.Pending {
		fit := 0
		for i := range g.Tasks {
			if at[first+i] >= 0 {
				fit++
			}
		}
		for i, task := range g.Tasks {
			n := at[first+i]
			switch {
			case g.Gang && fit < len(g.Tasks):
				d.Hold = append(d.Hold, Hold{task.ID, fmt.Sprintf("%d of %d tasks of gang %s fit; gangs are placed whole", fit, len(g.Tasks), g.Name)})
			case n < 0:
				k := p.Kind(first + i)
				if whyNot[k] == "" {
					whyNot[k] = WhyNot(p, k)
				}
				d.Hold = append(d.Hold, Hold{task.ID, whyNot[k]})
			default:
				d.Bind = append(d.Bind, Binding{Task: task.ID, Node: nodes[n].Name})
			}
		}
		first += len(g.Tasks)
	}
	return d
}

// WhyNot says in words why no node takes a task of the kind now: the three most
// common reasons, each with how many nodes it holds for and an example. Where
// nodes do take it, it says that.
func WhyNot(p *cluster.Placement, kind int) string {
	nodes := p.Snapshot().Nodes()
	var count [cluster.Skewed + 1]int
	var example [cluster.Skewed + 1]int
	for i := range nodes {
		r := p.Check(kind, i)
		if count[r] == 0 {
			example[r] = i
		}
		count[r]++
	}
	if count[cluster.Fits] > 0 {
		return fmt.Sprintf("%d of %d nodes fit, but the policy chose none", count[cluster.Fits], len(nodes))
	}
	if len(nodes) == 0 {
		return "the cluster has no nodes"
	}
	reasons := make([]int, 0, len(count))
	for r, n := range count {
		if n > 0 {
			reasons = append(reasons, r)
		}
	}
	slices.SortStableFunc(reasons, func(a, b int) int { return count[b] - count[a] })
	const told = 3
	words := fmt.Sprintf("0 of %d nodes fit", len(nodes))
	of, others := " of them", 0
	for i, r := range reasons {
		if i >= told {
			others += count[r]
			continue
		}
		words += fmt.Sprintf("; %d%s as here: %s", count[r], of, p.Explain(kind, example[r]))
		of = ""
	}
	if others > 0 {
		words += fmt.Sprintf("; %d for other reasons", others)
	}
	return words
}

// Finite keeps infinities, which JSON cannot hold, out of a Reason's scores.
func Finite(x float64) float64 { return max(-math.MaxFloat64, min(math.MaxFloat64, x)) }
