package placetest

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
)

// Connect adds edges between the workloads and puts some nodes in racks.
func Connect(t *rapid.T, spec *cluster.Spec, workloads ...string) {
	for _, name := range workloads {
		var edges []cluster.Edge
		for range rapid.IntRange(0, 3).Draw(t, "edges") {
			edges = append(edges, cluster.Edge{
				To:     rapid.SampledFrom(append([]string{"nobody"}, workloads...)).Draw(t, "to"),
				Weight: rapid.SampledFrom([]float64{0, 1, 0.25, 3}).Draw(t, "weight"),
			})
		}
		at := slices.IndexFunc(spec.Workloads, func(w cluster.Workload) bool { return w.Name == name })
		if at < 0 {
			at = len(spec.Workloads)
			spec.Workloads = append(spec.Workloads, cluster.Workload{Name: name})
		}
		spec.Workloads[at].Edges = edges
	}
	for i := range spec.Nodes {
		if rack := rapid.IntRange(0, 2).Draw(t, "rack"); rack > 0 {
			labels := maps.Clone(spec.Nodes[i].Labels)
			if labels == nil {
				labels = map[string]string{}
			}
			labels[cluster.RackKey] = fmt.Sprintf("rack-%d", rack)
			spec.Nodes[i].Labels = labels
		}
	}
}
