package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/live"
	"github.com/cotenant/cotenant/place"
)

// clusterFlags say where tasks can go, and under which rules.
type clusterFlags struct {
	nodes       string
	slots       int
	zones       int
	capacity    []string
	cluster     string
	kubeconfig  string
	context     string
	namespace   string // of the pods that wait; "" is all
	workloads   string
	constraints string

	declared []string        // by the file of --workloads
	left     []cluster.Task  // that wait and of which nobody knows the workload
	waiting  []cluster.Group // in all namespaces
}

func (f *clusterFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.nodes, "nodes", "", "`[class:]N[xDEVICES][,...]`, such as 81 or v100:4x4,k80:2x8")
	fl.IntVar(&f.slots, "slots", 0, "most tasks on a node, `N` (default: the most that were measured together; of a node of --cluster on its class)")
	fl.IntVar(&f.zones, "zones", 0, "label the nodes in turn with `N` zones ("+cluster.ZoneKey+"=zone-0, ...)")
	fl.StringArrayVar(&f.capacity, "capacity", nil, "what each node of --nodes has: `[class:]cpu=16,memory=64Gi`; needed where --workloads has requests")
	fl.StringVar(&f.cluster, "cluster", "", "instead of --nodes: a `FILE` by kubectl get nodes,pods -A -o json|yaml, a cluster in our own JSON, or a kubeconfig: that cluster as it is now (the word kubeconfig is the one that kubectl uses)")
	kubectlFlags(fl, &f.kubeconfig, &f.context)
	fl.StringVar(&f.workloads, "workloads", "", "`FILE` of workloads with requests, limits and edges (YAML or JSON); without, a task takes one slot")
	fl.StringVar(&f.constraints, "constraints", "", "`FILE` of hard rules (YAML or JSON): anti-affinity, max per node, spread, selectors, tolerations")
}

// registerNamespace adds -n, for commands that place what waits.
func (f *clusterFlags) registerNamespace(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "of the pods that wait in --cluster, place those of this `namespace` alone (default: all)")
}

// where completes the flags that say where to place, and checks them.
func (f *clusterFlags) where() (err error) {
	if f.nodes == "" && f.cluster == "" && f.context+f.namespace != "" {
		f.cluster = kubectlsOwn // as kubectl has it
	}
	if f.cluster, err = kubectlCluster(f.cluster, f.kubeconfig); err != nil {
		return err
	}
	switch {
	case f.nodes == "" && f.cluster == "":
		return wrongUse("where to place? give --nodes N or --cluster FILE")
	case f.nodes != "" && f.cluster != "":
		return wrongUse("--nodes and --cluster are both given; keep one")
	case f.cluster != "" && len(f.capacity) > 0:
		return wrongUse("--capacity belongs to --nodes; the snapshot has its own")
	case f.cluster == "" && f.context != "":
		return wrongUse("--context belongs to --cluster KUBECONFIG")
	case f.cluster == "" && f.namespace != "":
		return wrongUse("--namespace belongs to --cluster")
	}
	return nil
}

// load makes the cluster, with the groups that wait in a snapshot. most is the
// most tasks that were measured together, the slots where no flag says.
func (f *clusterFlags) load(in *inputs, log io.Writer, src *source, strict bool) (c formats.Cluster, err error) {
	if err := f.where(); err != nil {
		return c, err
	}
	switch {
	case f.slots < 0 || f.slots > maxSlots:
		return c, wrongUse("--slots %d: give the most tasks on a node, 1 to %d", f.slots, maxSlots)
	case f.zones < 0:
		return c, wrongUse("--zones %d: negative", f.zones)
	}
	if f.nodes != "" {
		c.Nodes, err = f.madeNodes(src.most)
	} else {
		c, err = f.readCluster(in, log, src, strict)
	}
	if err != nil {
		return c, err
	}
	if f.zones > len(c.Nodes) {
		return c, wrongUse("--zones %d: more than the %d nodes; give 1 to %d", f.zones, len(c.Nodes), len(c.Nodes))
	}
	if f.zones > 0 {
		labelZones(c.Nodes, f.zones)
	}
	if err := f.declare(in, &c.Spec); err != nil {
		return c, err
	}
	if f.constraints != "" {
		rules, err := readConstraints(in, f.constraints)
		if err != nil {
			return c, err
		}
		c.Constraints = mergeConstraints(c.Constraints, rules)
	}
	return c, nil
}

// declare adds the workloads of --workloads.
func (f *clusterFlags) declare(in *inputs, spec *cluster.Spec) error {
	if f.workloads == "" {
		return nil
	}
	declared, err := readWorkloads(in, f.workloads)
	if err != nil {
		return err
	}
	spec.Workloads = override(spec.Workloads, declared)
	for _, w := range declared {
		f.declared = append(f.declared, w.Name)
	}
	if f.nodes == "" || len(f.capacity) > 0 {
		return nil
	}
	for _, w := range declared {
		if names := w.Requests.Names(); len(names) > 0 {
			return wrongUse("--workloads %s: %s requests %s, but the nodes of --nodes have no capacity; give --capacity, such as cpu=16,memory=64Gi",
				f.workloads, w.Name, strings.Join(names, ", "))
		}
	}
	return nil
}

// warnDeclared names the workloads of --workloads that no source knows: likely
// slips, since no task of them can be placed.
func (f *clusterFlags) warnDeclared(log io.Writer, src *source, classes []string) {
	known := knownWorkloads(src.belief, classes)
	if src.truth != nil {
		known = append(known, knownWorkloads(src.truth, classes)...)
	}
	for _, w := range f.declared {
		if !slices.Contains(known, w) {
			fmt.Fprintf(log, "--workloads %s: nobody measured %s: what is said of it has no effect%s\n", f.workloads, w, didYouMean(w, known))
		}
	}
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

// snapshot reads the nodes and pods of --cluster.
func (f *clusterFlags) snapshot(in *inputs, log io.Writer, strict bool) (formats.Cluster, error) {
	data, name, err := in.cluster(f.cluster, f.context, live.Nodes, live.Pods)
	if err != nil {
		return formats.Cluster{}, err
	}
	c, report, err := formats.ReadCluster(bytes.NewReader(data), formats.Options{Name: name, Strict: strict})
	if err != nil {
		return c, fmt.Errorf("--cluster: %w", err)
	}
	warn(log, "cluster", report)
	if len(c.Nodes) == 0 {
		return c, fmt.Errorf("--cluster: %s: no nodes; get nodes and pods together", name)
	}
	f.waiting = c.Pending
	if f.namespace != "" {
		c.Pending = slices.DeleteFunc(slices.Clone(c.Pending), func(g cluster.Group) bool {
			return len(g.Tasks) == 0 || !strings.HasPrefix(string(g.Tasks[0].ID), f.namespace+"/")
		})
	}
	return c, nil
}

// readCluster reads a snapshot and makes it fit what was measured.
func (f *clusterFlags) readCluster(in *inputs, log io.Writer, src *source, strict bool) (formats.Cluster, error) {
	c, err := f.snapshot(in, log, strict)
	if err != nil {
		return c, err
	}
	classes := classesOf(c.Nodes)
	if src.unnamedClass() && !slices.Equal(classes, []string{""}) {
		fmt.Fprintf(log, "--cluster: what was measured names no class: nodes of %s are taken to be alike\n", quotedList(classes))
		for i := range c.Nodes {
			c.Nodes[i].Class = ""
		}
		classes = []string{""}
	}
	known := src.workloads(classes)
	if gone := reserve(&c.Spec, known); len(gone) > 0 {
		fmt.Fprintf(log, "--cluster: running workloads that nobody measured keep their requests and slots and are left out otherwise: %s\n", some(gone, 8))
	}
	if f.left = waitUnknown(&c, known); len(f.left) > 0 {
		fmt.Fprintf(log, "--cluster: of what waits, %s left out: nobody measured the workload\n", count(len(f.left), "pod"))
	}
	// Rules about workloads that no task has stay, to be refused as misspelt.
	var gone []string
	for _, g := range f.waiting {
		for _, t := range g.Tasks {
			if !slices.Contains(known, t.Workload) {
				gone = append(gone, t.Workload)
			}
		}
	}
	forget(&c.Constraints, gone)
	f.limit(&c.Spec, src)
	return c, nil
}

// limit gives each node as many slots as --slots says or, as the scheduler does,
// as were measured together on its class. One that has as many tasks or more gets
// no others.
func (f *clusterFlags) limit(spec *cluster.Spec, src *source) {
	tasks := map[string]int{}
	for _, r := range spec.Running {
		tasks[r.Node]++
	}
	for i := range spec.Nodes {
		n := &spec.Nodes[i]
		most := f.slots
		if most == 0 {
			most = interference.Most(src.belief, place.ModelClass(src.belief, n.Class))
		}
		if most == 0 || n.Slots > 0 && n.Slots <= most {
			continue
		}
		n.Slots = max(most, tasks[n.Name])
	}
}

// reserve takes the running tasks of unknown workloads out of the cluster,
// together with the room that they hold, and lists their workloads.
func reserve(spec *cluster.Spec, known []string) (gone []string) {
	at := map[string]*cluster.Node{}
	for i := range spec.Nodes {
		at[spec.Nodes[i].Name] = &spec.Nodes[i]
	}
	var kept []cluster.Running
	for _, r := range spec.Running {
		if slices.Contains(known, r.Workload) {
			kept = append(kept, r)
			continue
		}
		gone = append(gone, r.Workload)
		n := at[r.Node]
		if n == nil {
			continue
		}
		requests := r.Requests
		if i := slices.IndexFunc(spec.Workloads, func(w cluster.Workload) bool { return w.Name == r.Workload }); requests == nil && i >= 0 {
			requests = spec.Workloads[i].Requests
		}
		n.Capacity = maps.Clone(n.Capacity)
		for name, amount := range requests {
			if n.Capacity[name] > 0 {
				n.Capacity[name] = max(0, n.Capacity[name]-amount)
			}
		}
		switch {
		case n.Slots > 1:
			n.Slots--
		case n.Slots == 1:
			// No slot is left, and 0 would mean no limit.
			n.Unschedulable = true
		}
	}
	spec.Running = kept
	slices.Sort(gone)
	gone = slices.Compact(gone)
	forget(&spec.Constraints, gone)
	spec.Workloads = slices.DeleteFunc(slices.Clone(spec.Workloads), func(w cluster.Workload) bool { return slices.Contains(gone, w.Name) })
	return gone
}

// waitUnknown drops groups that wait of which no workload is known, as long as
// others are left, and lists their tasks.
func waitUnknown(c *formats.Cluster, known []string) (left []cluster.Task) {
	unknown := func(g cluster.Group) bool {
		return !slices.ContainsFunc(g.Tasks, func(t cluster.Task) bool { return slices.Contains(known, t.Workload) })
	}
	for _, g := range c.Pending {
		if unknown(g) {
			left = append(left, g.Tasks...)
		}
	}
	kept := slices.DeleteFunc(slices.Clone(c.Pending), unknown)
	if len(kept) == 0 {
		return nil // nothing else is to be placed: the names are wrong
	}
	c.Pending = kept
	return left
}

// forget drops the rules that name workloads which are gone.
func forget(c *cluster.Constraints, gone []string) {
	named := func(w string) bool { return slices.Contains(gone, w) }
	for _, w := range gone {
		delete(c.MaxPerNode, w)
		delete(c.NodeSelector, w)
		delete(c.Tolerations, w)
	}
	c.AntiAffinity = slices.DeleteFunc(slices.Clone(c.AntiAffinity), func(a cluster.AntiAffinity) bool { return named(a.A) || named(a.B) })
	c.Spread = slices.DeleteFunc(slices.Clone(c.Spread), func(s cluster.Spread) bool { return named(s.Workload) })
}

// origin names the file that an error of cluster.NewSnapshot is about: rules
// are checked last, and only those of a file can be wrong.
func (f *clusterFlags) origin(err error) string {
	for _, rule := range []string{"anti_affinity", "max_per_node", "spread", "node_selector", "tolerations"} {
		if f.constraints != "" && strings.HasPrefix(err.Error(), rule) {
			return "constraints " + f.constraints
		}
	}
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
