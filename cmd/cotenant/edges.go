package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cotenant/cotenant/cluster"
)

// checkEdges is an error where no edge leads from a task to another: the
// objective traffic would count nothing. Edges to workloads without a task are
// named on log, since they keep their part of the traffic. tasks is how many
// tasks of a workload there are, name what they come from.
func checkEdges(log io.Writer, declared []cluster.Workload, tasks func(workload string) int, name string) error {
	some := false
	var nowhere []string
	for _, w := range declared {
		if tasks(w.Name) == 0 {
			continue
		}
		for _, e := range w.Edges {
			if e.Partners(w.Name, tasks(e.To)) > 0 {
				some = true
			} else {
				nowhere = append(nowhere, w.Name+" to "+e.To)
			}
		}
	}
	if !some {
		return fmt.Errorf("objective traffic: no workload of %s has an edge to another that has tasks; give edges with --workloads FILE, or leave traffic out of --objective", name)
	}
	if len(nowhere) > 0 {
		slices.Sort(nowhere)
		fmt.Fprintf(log, "objective traffic: edges to workloads without other tasks count as apart: %s\n", strings.Join(slices.Compact(nowhere), ", "))
	}
	return nil
}
