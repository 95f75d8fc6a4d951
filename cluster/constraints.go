package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Constraints are the hard rules of a cluster, by workload. They hold for
// every task of the workload, running tasks counted.
type Constraints struct {
	AntiAffinity []AntiAffinity `json:"anti_affinity,omitempty"`
	// MaxPerNode bounds the tasks of a workload on one node.
	MaxPerNode map[string]int `json:"max_per_node,omitempty"`
	Spread     []Spread       `json:"spread,omitempty"`
	// NodeSelector lists the labels that a node must carry for the workload.
	NodeSelector map[string]map[string]string `json:"node_selector,omitempty"`
	Tolerations  map[string][]Toleration      `json:"tolerations,omitempty"`
}

// AntiAffinity keeps the tasks of two workloads out of each other's domains.
// With A == B, a domain holds at most one task of that workload.
type AntiAffinity struct {
	A string `json:"a"`
	B string `json:"b"`
	// Key is the topology label; "" means HostKey: the same node.
	Key string `json:"key,omitempty"`
}

// Spread keeps the tasks of a workload even over the domains of a topology
// label: the fullest and the emptiest domain differ by at most MaxSkew.
// Nodes without the label take no task of the workload. Only domains with a
// node that the workload's selector admits count.
type Spread struct {
	Workload string `json:"workload"`
	Key      string `json:"key"`
	// MaxSkew is at least 1; 0 means 1. Written out, 0 is refused, as Kubernetes
	// does: it would forbid the first task.
	MaxSkew int `json:"max_skew,omitempty"`
}

// UnmarshalJSON tells a max_skew that is left out from one that is 0.
func (s *Spread) UnmarshalJSON(data []byte) error {
	type plain Spread
	given := struct {
		*plain
		MaxSkew *int `json:"max_skew"`
	}{plain: (*plain)(s)}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&given); err != nil {
		return err
	}
	if given.MaxSkew != nil {
		if *given.MaxSkew < 1 {
			return fmt.Errorf("spread of %q over %q: max_skew %d; give at least 1, or leave it out for 1", s.Workload, s.Key, *given.MaxSkew)
		}
		s.MaxSkew = *given.MaxSkew
	}
	return nil
}

// validate reports the first rule that makes no sense, and what to do.
func (c Constraints) validate() error {
	for i, a := range c.AntiAffinity {
		if a.A == "" || a.B == "" {
			return fmt.Errorf("anti_affinity[%d]: workloads %q and %q; name both (the same twice for at most one a domain)", i, a.A, a.B)
		}
	}
	for _, w := range slices.Sorted(maps.Keys(c.MaxPerNode)) {
		if c.MaxPerNode[w] < 0 {
			return fmt.Errorf("max_per_node[%s]: %d is negative", w, c.MaxPerNode[w])
		}
	}
	seen := map[[2]string]bool{}
	for i, s := range c.Spread {
		switch {
		case s.Workload == "" || s.Key == "":
			return fmt.Errorf("spread[%d]: workload %q, key %q; give both", i, s.Workload, s.Key)
		case s.MaxSkew < 0:
			return fmt.Errorf("spread[%d]: max_skew %d is negative", i, s.MaxSkew)
		case seen[[2]string{s.Workload, s.Key}]:
			return fmt.Errorf("spread[%d]: second rule for workload %q over %q; keep one", i, s.Workload, s.Key)
		}
		seen[[2]string{s.Workload, s.Key}] = true
	}
	for _, w := range slices.Sorted(maps.Keys(c.Tolerations)) {
		for i, t := range c.Tolerations[w] {
			if t.Key == "" && !t.Exists {
				return fmt.Errorf("tolerations[%s][%d]: key is empty and exists is false; set one", w, i)
			}
			if t.Exists && t.Value != "" {
				return fmt.Errorf("tolerations[%s][%d]: value %q beside exists: true, which tolerates every value; keep one", w, i, t.Value)
			}
			if t.Effect != "" && !slices.Contains(Effects, t.Effect) {
				return fmt.Errorf("tolerations[%s][%d]: effect %q is none of %s; leave it out for all", w, i, t.Effect, strings.Join(Effects, ", "))
			}
		}
	}
	return nil
}

// Workloads lists every workload that a rule names, sorted, once each.
func (c Constraints) Workloads() []string {
	set := map[string]bool{}
	for _, a := range c.AntiAffinity {
		set[a.A], set[a.B] = true, true
	}
	for _, s := range c.Spread {
		set[s.Workload] = true
	}
	for w := range c.MaxPerNode {
		set[w] = true
	}
	for w := range c.NodeSelector {
		set[w] = true
	}
	for w := range c.Tolerations {
		set[w] = true
	}
	return slices.Sorted(maps.Keys(set))
}
