package baseline

import (
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// What kube-scheduler's resource scores count for a container that requests
// no CPU or memory (GetNonzeroRequests).
const (
	standardCPU    = 100               // thousandths of a core
	standardMemory = 200 * 1024 * 1024 // bytes
)

// allocation knows how full the nodes are in the resources that
// kube-scheduler scores, CPU and memory. Where no node states a capacity of
// either, the slots are the resource, and every task takes one.
type allocation struct {
	placement *cluster.Placement
	nodes     []cluster.Node
	names     []string
	dims      []int   // by name: position in Dimensions, -1 where no task or node counts it
	assumed   []int64 // [node*len(names)+i]: what tasks without a request are taken to use
}

func newAllocation(req place.Request, p *cluster.Placement) *allocation {
	a := &allocation{placement: p, nodes: req.View.Nodes()}
	for _, name := range []string{cluster.CPU, cluster.Memory} {
		if slices.ContainsFunc(a.nodes, func(n cluster.Node) bool { return n.Capacity[name] > 0 }) {
			a.names = append(a.names, name)
			a.dims = append(a.dims, slices.Index(p.Dimensions(), name))
		}
	}
	a.assumed = make([]int64, len(a.nodes)*len(a.names))
	for _, r := range req.View.Running() {
		requests := r.Requests
		if requests == nil {
			w, _ := req.View.Workload(r.Workload)
			requests = w.Requests
		}
		node, _ := req.View.NodeIndex(r.Node)
		for i, name := range a.names {
			if requests[name] == 0 {
				a.assumed[node*len(a.names)+i] += standard(name)
			}
		}
	}
	return a
}

func standard(name string) int64 {
	if name == cluster.CPU {
		return standardCPU
	}
	return standardMemory
}

// need is what the task is taken to use of the i-th resource.
func (a *allocation) need(kind, i int) int64 {
	if n := a.placement.Need(kind)[a.dims[i]]; n > 0 {
		return n
	}
	return standard(a.names[i])
}

func (a *allocation) counted(kind, node, by int) {
	for i, name := range a.names {
		if a.placement.Need(kind)[a.dims[i]] == 0 {
			a.assumed[node*len(a.names)+i] += int64(by) * standard(name)
		}
	}
}

// tasks is the number of tasks on a node.
func (a *allocation) tasks(node int) int {
	n := 0
	for _, k := range a.placement.Counts(node) {
		n += k
	}
	return n
}

// fractions appends the share of each resource that would be taken, were a
// task of the kind put on the node, from 0 to 1.
func (a *allocation) fractions(kind, node int, to []float64) []float64 {
	if len(a.names) == 0 {
		return append(to, a.slotFraction(node))
	}
	for i, name := range a.names {
		capacity := a.nodes[node].Capacity[name]
		if capacity == 0 {
			continue
		}
		used := capacity - a.placement.Free(node)[a.dims[i]] + a.assumed[node*len(a.names)+i] + a.need(kind, i)
		to = append(to, min(1, float64(used)/float64(capacity)))
	}
	return to
}

// slotFraction is the share of the slots taken with one more task. Without a
// limit it approaches 1 as tasks come, so that fewer still means emptier.
func (a *allocation) slotFraction(node int) float64 {
	with := float64(a.tasks(node) + 1)
	if slots := a.nodes[node].Slots; slots > 0 {
		return min(1, with/float64(slots))
	}
	return with / (with + 1)
}
