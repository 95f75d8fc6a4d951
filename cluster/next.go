package cluster

import (
	"fmt"
	"maps"
	"slices"
)

// Next is the snapshot after some tasks ended and others began: gone lists
// positions in Running, ascending, and added follows what stays. Nodes,
// workloads and constraints are shared with s, which does not change.
//
// It costs a copy of Running and a look at added; what was valid is not
// validated again. That no ID is taken twice is the caller's to see to. An
// added task without a workload or on an unknown node is an error, and so are
// positions that are not ascending or not there.
func (s *Snapshot) Next(gone []int, added []Running) (*Snapshot, error) {
	old := s.spec.Running
	size := max(0, len(old)-len(gone)+len(added))
	n := &Snapshot{spec: s.spec, nodeIndex: s.nodeIndex, workload: s.workload, dimensions: s.dimensions}
	n.spec.Running = make([]Running, 0, size)
	from := 0
	for _, at := range gone {
		if at < from || at >= len(old) {
			return nil, fmt.Errorf("running task %d of %d cannot end: positions must be ascending and there", at, len(old))
		}
		n.spec.Running = append(n.spec.Running, old[from:at]...)
		from = at + 1
	}
	n.spec.Running = append(n.spec.Running, old[from:]...)
	for i := range added {
		r := &added[i]
		_, ok := s.nodeIndex[r.Node]
		switch {
		case !ok:
			return nil, fmt.Errorf("running task %q: node %q is not in the cluster", r.ID, r.Node)
		case r.Workload == "":
			return nil, fmt.Errorf("running task %q: workload is empty", r.ID)
		}
		n.spec.Running = append(n.spec.Running, *r)
		n.meet(r, s)
	}
	return n, nil
}

// meet adds what a task names and the snapshot has not met, in copies of what
// it shares with its predecessor.
func (s *Snapshot) meet(r *Running, shared *Snapshot) {
	if _, ok := s.workload[r.Workload]; !ok {
		if len(s.workload) == len(shared.workload) {
			s.workload = maps.Clone(shared.workload)
			s.spec.Workloads = slices.Clone(shared.spec.Workloads)
		}
		s.declare(r.Workload)
	}
	for name, amount := range r.Requests {
		if at, ok := slices.BinarySearch(s.dimensions, name); !ok && amount != 0 {
			s.dimensions = slices.Insert(slices.Clone(s.dimensions), at, name)
		}
	}
}
