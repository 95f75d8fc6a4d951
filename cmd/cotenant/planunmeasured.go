package main

import (
	"fmt"
	"io"
)

// warnLarger says on log where nodes would hold more tasks than were ever measured
// together. A policy cannot tell such co-locations apart where nobody knows what
// they are worth: those that search then fill few nodes with all that is left.
func (p *planInput) warnLarger(log io.Writer, r *plan) {
	most := p.source.most
	if most == 0 {
		return
	}
	nodes, tasks, largest := 0, 0, 0
	for _, n := range r.Placement {
		if k := n.Colocation.Tasks(); k > most {
			nodes, tasks, largest = nodes+1, tasks+k, max(largest, k)
		}
	}
	if nodes == 0 {
		return
	}
	worth := "what that is worth is not known, nor to the policy, which cannot tell such nodes apart"
	if len(r.Unknown) == 0 {
		worth = "what that is worth is a guess beyond all that was measured"
	}
	fmt.Fprintf(log, "%s, seed %d: WARNING: %d of %s would hold more tasks than were ever measured together, %d in all and up to %d on one, where %d are measured: %s; --slots %d keeps to what was measured, as slotsPerNode: %d does for cotenant-scheduler\n",
		r.Policy, r.Seed, nodes, count(r.Nodes, "node"), tasks, largest, most, worth, most, most)
}
