package cluster

import "fmt"

// Labels that describe topology. Zone is Kubernetes' well-known label; a
// label HostKey is implied: every node is a domain of its own under it.
const (
	HostKey = "kubernetes.io/hostname"
	ZoneKey = "topology.kubernetes.io/zone"
	RackKey = "cotenant.dev/rack"
)

// Node is a machine.
type Node struct {
	Name string `json:"name"`
	// Class names the hardware; nodes of a class are alike.
	Class string `json:"class,omitempty"`
	// Capacity is what tasks may request in all (Kubernetes: allocatable).
	Capacity Resources `json:"capacity,omitempty"`
	// Slots is the most tasks at a time (Kubernetes: pods); 0 is no limit.
	Slots   int               `json:"slots,omitempty"`
	Devices []Device          `json:"devices,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Taints  []Taint           `json:"taints,omitempty"`
	// Unschedulable keeps new tasks off (Kubernetes: cordoned).
	Unschedulable bool `json:"unschedulable,omitempty"`
}

// Domain is the node's topology domain under a label key; ok is false where
// the node has no such label.
func (n *Node) Domain(key string) (name string, ok bool) {
	if v, has := n.Labels[key]; has {
		return v, true
	}
	if key == HostKey {
		return n.Name, true
	}
	return "", false
}

// Device is an accelerator in a node.
type Device struct {
	Name  string `json:"name"`
	Class string `json:"class,omitempty"`
	// Slots is how many tasks may share the device; 0 means 1.
	Slots int `json:"slots,omitempty"`
	// Links names the devices of the node reached by a fast link (NVLink).
	Links []string `json:"links,omitempty"`
}

// Effects of a taint.
const (
	NoSchedule       = "NoSchedule"
	NoExecute        = "NoExecute"
	PreferNoSchedule = "PreferNoSchedule"
)

// Effects are all of them. Don't change it.
var Effects = []string{NoSchedule, NoExecute, PreferNoSchedule}

// Taint keeps off the tasks that do not tolerate it. PreferNoSchedule keeps
// nothing off.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Toleration lets a task onto nodes with matching taints. An empty Key with
// Exists matches every taint; an empty Effect matches every effect. With Exists,
// Value is empty.
type Toleration struct {
	Key    string `json:"key,omitempty"`
	Exists bool   `json:"exists,omitempty"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect,omitempty"`
}

// Tolerates reports whether t matches taint, by Kubernetes' rule.
func (t Toleration) Tolerates(taint Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Key == "" {
		return t.Exists
	}
	return t.Key == taint.Key && (t.Exists || t.Value == taint.Value)
}

// Nodes makes n alike nodes of a class, named CLASS-0, CLASS-1, ... ("node-0"
// where class is ""), each with the given number of devices and slots.
func Nodes(class string, n, devices, slots int) []Node {
	prefix := class
	if prefix == "" {
		prefix = "node"
	}
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i] = Node{Name: fmt.Sprintf("%s-%d", prefix, i), Class: class, Slots: slots}
		for d := range devices {
			nodes[i].Devices = append(nodes[i].Devices, Device{Name: fmt.Sprint(d), Class: class})
		}
	}
	return nodes
}
