package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cotenant/cotenant/cluster"
)

// readConstraints reads a file of cluster.Constraints (docs/constraints.md).
func readConstraints(in *inputs, file string) (cluster.Constraints, error) {
	var c cluster.Constraints
	data, err := in.text("constraints", file)
	if err != nil {
		return c, err
	}
	err = decodeStrict("constraints "+file, data, &c)
	return c, err
}

// mergeConstraints adds the rules of a file to those the cluster came with.
// Rules by workload replace those of the same workload.
func mergeConstraints(a, b cluster.Constraints) cluster.Constraints {
	out := cluster.Constraints{
		AntiAffinity: slices.Concat(a.AntiAffinity, b.AntiAffinity),
		Spread:       slices.Concat(a.Spread, b.Spread),
		MaxPerNode:   merged(a.MaxPerNode, b.MaxPerNode),
		NodeSelector: merged(a.NodeSelector, b.NodeSelector),
		Tolerations:  merged(a.Tolerations, b.Tolerations),
	}
	return out
}

func merged[V any](a, b map[string]V) map[string]V {
	if len(a)+len(b) == 0 {
		return nil
	}
	out := make(map[string]V, len(a)+len(b))
	for k, v := range a {
		out[k] = v
	}
	for k, v := range b {
		out[k] = v
	}
	return out
}

// checkRuleNames refuses rules about workloads that nothing else names: a rule
// with a misspelt name would silently not hold.
func checkRuleNames(file string, c cluster.Constraints, known []string) error {
	for _, w := range c.Workloads() {
		if !slices.Contains(known, w) {
			return fmt.Errorf("constraints %s: a rule names workload %q, which is neither measured nor in the batch nor running; known are %s",
				file, w, strings.Join(known, ", "))
		}
	}
	return nil
}
