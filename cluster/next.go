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
	return NewChain(s).Next(gone, added)
}

// Chain makes snapshots one after another, as Snapshot.Next does, in memory
// that it takes in large pieces: where tasks only begin, nothing is copied. The
// snapshots are safe for concurrent use; the Chain itself is not.
type Chain struct {
	last *Snapshot
	// room begins with last.Running() in the memory that the chain owns; what
	// lies behind it is seen by no snapshot.
	room []Running
	long bool // it has made more than one
	// brief: a snapshot stands only until the next.
	brief bool
}

// NewChain begins a chain after s.
func NewChain(s *Snapshot) *Chain { return &Chain{last: s} }

// NewBriefChain begins a chain of which each snapshot stands only until the
// next is made, as a simulator needs that asks a million times: Running is
// changed in place, which costs no more than what begins and ends. The last
// tasks take the places of those that end, the last place first.
func NewBriefChain(s *Snapshot) *Chain { return &Chain{last: s, brief: true} }

// Next is the snapshot after the last one; see Snapshot.Next. After an error
// the last one stands.
func (c *Chain) Next(gone []int, added []Running) (*Snapshot, error) {
	s := c.last
	old := s.spec.Running
	for i, at := range gone {
		if at < 0 || at >= len(old) || i > 0 && at <= gone[i-1] {
			return nil, fmt.Errorf("running task %d of %d cannot end: positions must be ascending and there", at, len(old))
		}
	}
	n := &Snapshot{spec: s.spec, nodeIndex: s.nodeIndex, workload: s.workload, dimensions: s.dimensions}
	for i := range added {
		r := &added[i]
		if _, ok := s.nodeIndex[r.Node]; !ok {
			return nil, fmt.Errorf("running task %q: node %q is not in the cluster", r.ID, r.Node)
		}
		if r.Workload == "" {
			return nil, fmt.Errorf("running task %q: workload is empty", r.ID)
		}
		n.meet(r, s)
	}
	if c.brief {
		n.spec.Running = c.change(old, gone, added)
		c.last = n
		return n, nil
	}
	to := c.room
	if size := len(old) - len(gone) + len(added); len(gone) > 0 || cap(c.room)-len(old) < len(added) {
		to = c.take(size)
		from := 0
		for _, at := range gone {
			to = append(to, old[from:at]...)
			from = at + 1
		}
		to = append(to, old[from:]...)
	}
	to = append(to, added...)
	c.room = to
	n.spec.Running = to[:len(to):len(to)]
	c.last = n
	return n, nil
}

// change changes what runs in memory of the chain's own.
func (c *Chain) change(old []Running, gone []int, added []Running) []Running {
	to := old
	if !c.long {
		c.long = true
		to = append(make([]Running, 0, 2*(len(old)+len(added))), old...)
	}
	for i := len(gone) - 1; i >= 0; i-- {
		last := len(to) - 1
		to[gone[i]] = to[last]
		to[last] = Running{}
		to = to[:last]
	}
	return append(to, added...)
}

// take gives memory that no snapshot sees, for size tasks and maybe more.
func (c *Chain) take(size int) []Running {
	if free := c.room[len(c.room):]; cap(free) >= size {
		return free
	}
	if !c.long {
		c.long = true
		return make([]Running, 0, size)
	}
	return make([]Running, 0, max(256, 2*size))
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
