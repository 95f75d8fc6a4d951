package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/cluster"
)

// clusterFlags say where tasks can go, and under which rules.
type clusterFlags struct {
	nodes       string
	slots       int
	zones       int
	capacity    []string
	cluster     string
	workloads   string
	constraints string
}

func (f *clusterFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.nodes, "nodes", "", "`[class:]N[xDEVICES][,...]`, such as 81 or v100:4x4,k80:2x8")
	fl.IntVar(&f.slots, "slots", 0, "most tasks on a node, `N` (default: the most that were measured together)")
	fl.IntVar(&f.zones, "zones", 0, "label the nodes in turn with `N` zones ("+cluster.ZoneKey+"=zone-0, ...)")
	fl.StringArrayVar(&f.capacity, "capacity", nil, "what each node of --nodes has: `[class:]cpu=16,memory=64Gi`; needed where --workloads has requests")
	fl.StringVar(&f.cluster, "cluster", "", "instead of --nodes: a `FILE` by kubectl get nodes,pods -A -o json|yaml, or a cluster in our own JSON")
	fl.StringVar(&f.workloads, "workloads", "", "`FILE` of workloads with requests, limits and edges (YAML or JSON); without, a task takes one slot")
	fl.StringVar(&f.constraints, "constraints", "", "`FILE` of hard rules (YAML or JSON): anti-affinity, max per node, spread, selectors, tolerations")
}

// load makes the cluster. most is the most tasks that were measured together,
// the slots where no flag says.
func (f *clusterFlags) load(in *inputs, most int) (cluster.Spec, error) {
	var spec cluster.Spec
	switch {
	case f.nodes == "" && f.cluster == "":
		return spec, wrongUse("where to place? give --nodes N or --cluster FILE")
	case f.nodes != "" && f.cluster != "":
		return spec, wrongUse("--nodes and --cluster are both given; keep one")
	case f.slots < 0:
		return spec, wrongUse("--slots %d: negative; give the most tasks on a node", f.slots)
	case f.zones < 0:
		return spec, wrongUse("--zones %d: negative", f.zones)
	case f.cluster != "" && len(f.capacity) > 0:
		return spec, wrongUse("--capacity belongs to --nodes; the snapshot has its own")
	}
	var err error
	if f.nodes != "" {
		spec.Nodes, err = f.madeNodes(most)
	} else {
		spec, err = readCluster(in, f.cluster)
		for i := range spec.Nodes {
			if n := &spec.Nodes[i]; f.slots > 0 && (n.Slots == 0 || n.Slots > f.slots) {
				n.Slots = f.slots
			}
		}
	}
	if err != nil {
		return spec, err
	}
	if f.zones > 0 {
		labelZones(spec.Nodes, f.zones)
	}
	if f.workloads != "" {
		declared, err := readWorkloads(in, f.workloads)
		if err != nil {
			return spec, err
		}
		spec.Workloads = override(spec.Workloads, declared)
		if f.nodes != "" && len(f.capacity) == 0 {
			for _, w := range declared {
				if len(w.Requests.Names()) > 0 {
					return spec, wrongUse("--workloads %s: %s requests %s, but the nodes of --nodes have no capacity; give --capacity, such as cpu=16,memory=64Gi",
						f.workloads, w.Name, strings.Join(w.Requests.Names(), ", "))
				}
			}
		}
	}
	if f.constraints != "" {
		rules, err := readConstraints(in, f.constraints)
		if err != nil {
			return spec, err
		}
		spec.Constraints = mergeConstraints(spec.Constraints, rules)
	}
	return spec, nil
}

func (f *clusterFlags) madeNodes(most int) ([]cluster.Node, error) {
	slots := f.slots
	if slots == 0 {
		slots = most
	}
	if slots == 0 {
		return nil, wrongUse("--slots is missing: the model does not say how many tasks share a node")
	}
	nodes, err := parseNodes(f.nodes, slots)
	if err != nil {
		return nil, err
	}
	for _, c := range f.capacity {
		class, resources, err := parseCapacity(c)
		if err != nil {
			return nil, err
		}
		found := false
		for i := range nodes {
			if class == "" || nodes[i].Class == class {
				nodes[i].Capacity = merged(nodes[i].Capacity, resources)
				found = true
			}
		}
		if !found {
			return nil, wrongUse("--capacity %s: no nodes of class %q in --nodes %s", c, class, f.nodes)
		}
	}
	return nodes, nil
}

// override puts declared workloads in place of those of the same name.
func override(ws, declared []cluster.Workload) []cluster.Workload {
	out := slices.Clone(ws)
	for _, d := range declared {
		if i := slices.IndexFunc(out, func(w cluster.Workload) bool { return w.Name == d.Name }); i >= 0 {
			out[i] = d
		} else {
			out = append(out, d)
		}
	}
	return out
}

// readCluster reads a snapshot.
func readCluster(in *inputs, file string) (cluster.Spec, error) {
	var spec cluster.Spec
	data, err := in.text("cluster", file)
	if err != nil {
		return spec, err
	}
	if err := decodeStrict("cluster "+file, data, &spec); err != nil {
		return spec, err
	}
	if len(spec.Nodes) == 0 {
		return spec, fmt.Errorf("cluster %s: no nodes", file)
	}
	return spec, nil
}

// clusterName names the cluster in errors.
func (f *clusterFlags) clusterName() string {
	if f.cluster != "" {
		return "cluster " + f.cluster
	}
	return "--nodes " + f.nodes
}

// classesOf lists the classes of the nodes, in their order, once each.
func classesOf(nodes []cluster.Node) []string {
	var classes []string
	for i := range nodes {
		if !slices.Contains(classes, nodes[i].Class) {
			classes = append(classes, nodes[i].Class)
		}
	}
	return classes
}
