package cluster

import (
	"fmt"
	"math"
	"slices"
)

// Spec is what a Snapshot is made of.
type Spec struct {
	Nodes       []Node      `json:"nodes"`
	Running     []Running   `json:"running,omitempty"`
	Workloads   []Workload  `json:"workloads,omitempty"`
	Constraints Constraints `json:"constraints,omitzero"`
}

// Snapshot is an immutable view of a cluster. The slices and maps it returns
// are shared: callers must not change them. It is safe for concurrent use.
type Snapshot struct {
	spec       Spec
	nodeIndex  map[string]int
	workload   map[string]int
	dimensions []string // names of resources that some node or task counts
}

// NewSnapshot checks a Spec and keeps it. Workloads that tasks name without
// being declared are added with no requests: their tasks take one slot.
func NewSnapshot(spec Spec) (*Snapshot, error) {
	s := &Snapshot{spec: spec, nodeIndex: make(map[string]int, len(spec.Nodes)), workload: map[string]int{}}
	dims := map[string]bool{}
	for i := range spec.Nodes {
		n := &spec.Nodes[i]
		if n.Name == "" {
			return nil, fmt.Errorf("node %d: name is empty", i)
		}
		if _, twice := s.nodeIndex[n.Name]; twice {
			return nil, fmt.Errorf("node %q: listed twice", n.Name)
		}
		if n.Slots < 0 {
			return nil, fmt.Errorf("node %q: slots %d is negative", n.Name, n.Slots)
		}
		for _, r := range n.Capacity.Names() {
			if n.Capacity[r] < 0 {
				return nil, fmt.Errorf("node %q: capacity of %s is %d, negative", n.Name, r, n.Capacity[r])
			}
			dims[r] = true
		}
		s.nodeIndex[n.Name] = i
	}
	s.spec.Workloads = slices.Clone(spec.Workloads)
	for i := range s.spec.Workloads {
		w := &s.spec.Workloads[i]
		if w.Name == "" {
			return nil, fmt.Errorf("workload %d: name is empty", i)
		}
		if _, twice := s.workload[w.Name]; twice {
			return nil, fmt.Errorf("workload %q: declared twice", w.Name)
		}
		s.workload[w.Name] = i
		for _, r := range w.Requests.Names() {
			if w.Requests[r] < 0 {
				return nil, fmt.Errorf("workload %q: request of %s is %d, negative", w.Name, r, w.Requests[r])
			}
			dims[r] = true
		}
		for _, e := range w.Edges {
			if e.To == "" || !(e.Weight >= 0) || math.IsInf(e.Weight, 0) {
				return nil, fmt.Errorf("workload %q: edge to %q with weight %g: name a workload and give a finite weight of 0 or more", w.Name, e.To, e.Weight)
			}
		}
	}
	ids := make(map[TaskID]bool, len(spec.Running))
	for _, r := range spec.Running {
		_, ok := s.nodeIndex[r.Node]
		switch {
		case !ok:
			return nil, fmt.Errorf("running task %q: node %q is not in the cluster", r.ID, r.Node)
		case r.Workload == "":
			return nil, fmt.Errorf("running task %q: workload is empty", r.ID)
		case ids[r.ID]:
			return nil, fmt.Errorf("running task %q: listed twice", r.ID)
		}
		ids[r.ID] = true
		s.declare(r.Workload)
		for _, name := range r.Requests.Names() {
			dims[name] = true
		}
	}
	if err := spec.Constraints.validate(); err != nil {
		return nil, err
	}
	for _, name := range spec.Constraints.Workloads() {
		s.declare(name)
	}
	for name := range dims {
		s.dimensions = append(s.dimensions, name)
	}
	slices.Sort(s.dimensions)
	return s, nil
}

func (s *Snapshot) declare(name string) {
	if _, ok := s.workload[name]; !ok {
		s.workload[name] = len(s.spec.Workloads)
		s.spec.Workloads = append(s.spec.Workloads, Workload{Name: name})
	}
}

// Nodes lists the nodes; their positions are the node indices of this package.
func (s *Snapshot) Nodes() []Node { return s.spec.Nodes }

// NodeIndex finds a node by name.
func (s *Snapshot) NodeIndex(name string) (int, bool) {
	i, ok := s.nodeIndex[name]
	return i, ok
}

// Running lists the tasks that run.
func (s *Snapshot) Running() []Running { return s.spec.Running }

// Workloads lists the declared workloads and those that running tasks and
// constraints name.
func (s *Snapshot) Workloads() []Workload { return s.spec.Workloads }

// Workload finds a workload by name.
func (s *Snapshot) Workload(name string) (Workload, bool) {
	i, ok := s.workload[name]
	if !ok {
		return Workload{}, false
	}
	return s.spec.Workloads[i], true
}

// Constraints are the cluster's hard rules.
func (s *Snapshot) Constraints() Constraints { return s.spec.Constraints }

// Slots is the number of tasks that the schedulable nodes can hold in all,
// running ones included; ok is false where some node has no limit.
func (s *Snapshot) Slots() (n int, ok bool) {
	for i := range s.spec.Nodes {
		if s.spec.Nodes[i].Unschedulable {
			continue
		}
		if s.spec.Nodes[i].Slots == 0 {
			return 0, false
		}
		n += s.spec.Nodes[i].Slots
	}
	return n, true
}
