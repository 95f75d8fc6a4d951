package pods

import (
	"fmt"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/cotenant/cotenant/cluster"
)

// ClassLabels name the class of a node; the first that is there wins.
var ClassLabels = []string{"cotenant.dev/class", v1.LabelInstanceTypeStable, v1.LabelInstanceType}

// View says how a scheduler's nodes become a cluster.
type View struct {
	// Known reports whether the model knows a workload: the others take room, and
	// interfere with nobody as far as is known.
	Known func(workload string) bool
	// Class turns the class that a node's labels name into one that the model
	// knows.
	Class func(labelled string) string
	// Slots is the most tasks of known workloads on a node of one of the model's
	// classes; 0, and no function, is as many pods as the node admits.
	Slots func(class string) int
	// Leave names pods that are left out, as if they were not there.
	Leave func(uid cluster.TaskID) bool
	// Where names the node that a pod of a known workload is taken to be on; "" is
	// the one on which it is, which holds where Where is nil.
	Where func(uid cluster.TaskID) string
	// Now is the time of the view, and At tells a time of the API server's objects
	// by the same clock. At may be nil: nothing is then known of ages.
	Now time.Duration
	At  func(time.Time) time.Duration
}

// Spec is the cluster that a scheduler's nodes and the pods on them are: what
// other pods request is taken off a node's capacity, and off its slots.
func (v View) Spec(infos []fwk.NodeInfo) cluster.Spec {
	spec := cluster.Spec{Nodes: make([]cluster.Node, 0, len(infos))}
	moved := v.moved(infos)
	for _, info := range infos {
		node := info.Node()
		if node == nil {
			continue
		}
		n := cluster.Node{Name: node.Name, Class: v.Class(Class(node)), Labels: maps.Clone(node.Labels), Capacity: amounts(info.GetAllocatable())}
		for i := range devices(n.Capacity) {
			n.Devices = append(n.Devices, cluster.Device{Name: fmt.Sprint("gpu-", i)})
		}
		used := 0 // devices: which pod has which is the node's to say
		admits := info.GetAllocatable().GetAllowedPodNumber()
		tasks := 0
		for _, p := range info.GetPods() {
			pod := p.GetPod()
			if Ended(pod) || v.Leave != nil && v.Leave(cluster.TaskID(pod.UID)) {
				continue
			}
			requests := amounts(p.CalculateResource().Resource)
			w := Workload(pod)
			if w == "" || !v.Known(w) {
				admits--
				for name, amount := range requests {
					n.Capacity[name] = max(0, n.Capacity[name]-amount)
				}
				continue
			}
			name, _ := group(pod)
			if to, ok := moved.to[pod.UID]; ok {
				spec.Running = append(spec.Running, cluster.Running{
					Task: cluster.Task{ID: cluster.TaskID(pod.UID), Workload: w, Role: role(pod), Requests: requests}, Node: to, Group: name, Started: v.Now,
				})
				continue
			}
			tasks++
			r := cluster.Running{
				Task: cluster.Task{ID: cluster.TaskID(pod.UID), Workload: w, Role: role(pod), Requests: requests, Devices: devices(requests)},
				Node: n.Name, Group: name, Started: v.Now,
			}
			for ; len(r.On) < r.Devices && used < len(n.Devices); used++ {
				r.On = append(r.On, used)
			}
			if began := pod.Status.StartTime; began != nil && v.At != nil {
				r.Started = v.At(began.Time)
			}
			spec.Running = append(spec.Running, r)
		}
		tasks += moved.on[n.Name]
		if v.Slots != nil {
			if most := v.Slots(n.Class); most > 0 {
				admits = min(admits, most)
			}
		}
		if admits < max(1, tasks) {
			n.Unschedulable = true // no slot is free, and 0 would mean no limit
			admits = max(1, tasks)
		}
		n.Slots = admits
		spec.Nodes = append(spec.Nodes, n)
	}
	return spec
}

// moves are the pods that are taken to be on another node, and how many are on
// each.
type moves struct {
	to map[types.UID]string
	on map[string]int
}

func (v View) moved(infos []fwk.NodeInfo) moves {
	m := moves{to: map[types.UID]string{}, on: map[string]int{}}
	if v.Where == nil {
		return m
	}
	there := make(map[string]bool, len(infos))
	for _, info := range infos {
		if n := info.Node(); n != nil {
			there[n.Name] = true
		}
	}
	for _, info := range infos {
		for _, p := range info.GetPods() {
			pod := p.GetPod()
			to := v.Where(cluster.TaskID(pod.UID))
			if n := info.Node(); n == nil || !there[to] || to == n.Name || Ended(pod) || !v.Known(Workload(pod)) ||
				v.Leave != nil && v.Leave(cluster.TaskID(pod.UID)) {
				continue
			}
			m.to[pod.UID] = to
			m.on[to]++
		}
	}
	return m
}

// Class is the class of a node as its labels say; "" where they do not.
func Class(node *v1.Node) string {
	for _, k := range ClassLabels {
		if c := node.Labels[k]; c != "" {
			return c
		}
	}
	return ""
}

func amounts(r fwk.Resource) cluster.Resources {
	out := cluster.Resources{}
	set := func(name string, n int64) {
		if n > 0 {
			out[name] = n
		}
	}
	set(cluster.CPU, r.GetMilliCPU())
	set(cluster.Memory, r.GetMemory())
	set(string(v1.ResourceEphemeralStorage), r.GetEphemeralStorage())
	for name, n := range r.GetScalarResources() {
		set(string(name), n)
	}
	return out
}
