package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/cotenant/cotenant/cluster"
)

// maxNodes bounds a made-up cluster: more is a slip of the keyboard.
const maxNodes = 100_000

// maxSlots bounds the tasks on a node: machines run hundreds.
const maxSlots = 10_000

var nodesPart = regexp.MustCompile(`^(?:([^:,]*):)?([0-9]+)(?:x([0-9]+))?$`)

// parseNodes reads [class:]N[xDEVICES][,...].
func parseNodes(s string, slots int) ([]cluster.Node, error) {
	var nodes []cluster.Node
	seen := map[string]bool{}
	for part := range strings.SplitSeq(s, ",") {
		m := nodesPart.FindStringSubmatch(part)
		if m == nil {
			return nil, wrongUse("--nodes %s: %q is not [class:]N[xDEVICES], such as 81 or v100:4x4", s, part)
		}
		n, err := strconv.Atoi(m[2])
		if err != nil || n < 1 || n > maxNodes {
			return nil, wrongUse("--nodes %s: %s nodes; give 1 to %d", s, m[2], maxNodes)
		}
		devices := 1
		if m[3] != "" {
			if devices, err = strconv.Atoi(m[3]); err != nil || devices > 64 {
				return nil, wrongUse("--nodes %s: %s devices a node; give 0 to 64", s, m[3])
			}
		}
		if seen[m[1]] {
			return nil, wrongUse("--nodes %s: class %q comes twice; add its numbers up", s, m[1])
		}
		seen[m[1]] = true
		nodes = append(nodes, cluster.Nodes(m[1], n, devices, slots)...)
	}
	if len(nodes) > maxNodes {
		return nil, wrongUse("--nodes %s: %d nodes in all; give at most %d", s, len(nodes), maxNodes)
	}
	return nodes, nil
}

// label deals zones out to the nodes in turn.
func labelZones(nodes []cluster.Node, zones int) {
	for i := range nodes {
		if nodes[i].Labels == nil {
			nodes[i].Labels = map[string]string{}
		}
		nodes[i].Labels[cluster.ZoneKey] = fmt.Sprintf("zone-%d", i%zones)
	}
}
