package cluster

import (
	"maps"
	"slices"
)

// Resource names as Kubernetes spells them.
const (
	CPU    = "cpu"    // in thousandths of a core
	Memory = "memory" // in bytes
)

// Resources are amounts by resource name, counted as Kubernetes counts them:
// CPU in thousandths of a core, memory in bytes, everything else in whole
// units. A request of 0 asks for nothing, even of an unknown resource.
type Resources map[string]int64

// Names lists the resources with a non-zero amount, sorted.
func (r Resources) Names() []string {
	names := make([]string, 0, len(r))
	for _, n := range slices.Sorted(maps.Keys(r)) {
		if r[n] != 0 {
			names = append(names, n)
		}
	}
	return names
}
