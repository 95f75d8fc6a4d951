package contention

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Config says which world, and how harsh.
type Config struct {
	// Constants describe the world; nil is Default.
	Constants *Constants
	// Strength multiplies what neighbours demand of shared resources: 0.7 and
	// 1.3 are 30 % weaker and stronger contention; 0 means 1. What a job takes
	// without neighbours does not depend on it.
	Strength float64
}

// model is a world compiled: what the truth, the samples and the generator of
// jobs share.
type model struct {
	Constants
	strength float64
	capacity [resources]float64
	byName   map[string]role
	alone    map[shape]float64
	claims   []claim // scratch
}

// role is what a workload name stands for.
type role struct {
	workload *Workload
	ps       bool
}

// shape is what a job's time alone depends on.
type shape struct {
	workload    *Workload
	workers, ps int
}

func newModel(c Config) (*model, error) {
	m := &model{strength: cmp.Or(c.Strength, 1), byName: map[string]role{}, alone: map[shape]float64{}}
	if m.strength < 0 || math.IsNaN(m.strength) || m.strength > 100 {
		return nil, fmt.Errorf("contention: strength is %g; give a number above 0, 1 for the world as it is", c.Strength)
	}
	if c.Constants == nil {
		m.Constants = Default()
	} else {
		if err := c.Constants.Validate(); err != nil {
			return nil, fmt.Errorf("contention: %w", err)
		}
		m.Constants = *c.Constants
		m.Workloads = slices.Clone(m.Workloads)
	}
	s := m.Server
	m.capacity = [resources]float64{
		compute: s.Compute, memory: s.MemoryBandwidth, pcie: s.PCIe, disk: s.Disk,
		nic: s.NIC, uplink: s.NIC / s.Oversubscription,
	}
	for i := range m.Workloads {
		w := &m.Workloads[i]
		m.byName[w.Name] = role{w, false}
		m.byName[w.Name+psSuffix] = role{w, true}
	}
	return m, nil
}

// fits says whether a server can hold that many tasks of a workload.
func (m *model) fits(w *Workload, workers, ps int) bool {
	s := m.Server
	return workers <= s.Devices &&
		float64(workers)*w.WorkerCPUs+float64(ps)*w.PSCPUs <= s.CPUs &&
		float64(workers)*w.WorkerMemory+float64(ps)*w.PSMemory <= s.Memory
}

// best is the seconds of an iteration of a job on idle servers of one rack, as
// well placed as it can be: the least over the ways to divide its workers
// evenly over some nodes and its parameter servers evenly over the same or
// other nodes.
func (m *model) best(w *Workload, workers, ps int) float64 {
	key := shape{w, workers, ps}
	if t, ok := m.alone[key]; ok {
		return t
	}
	best := math.Inf(1)
	for kw := min(1, workers); kw <= workers; kw++ {
		for kp := min(1, ps); kp <= ps; kp++ {
			// The parameter servers with the first workers, with the last, or apart.
			for _, shift := range [...]int{0, max(0, kw-kp), kw} {
				if j := m.even(w, workers, ps, kw, kp, shift); j != nil {
					m.place(j)
					best = min(best, j.base)
				}
			}
		}
	}
	m.alone[key] = best
	return best
}

// even divides workers over nodes 0..kw-1 and parameter servers over kp nodes
// from shift on; nil where a node is too small.
func (m *model) even(w *Workload, workers, ps, kw, kp, shift int) *job {
	j := &job{workload: w, workers: workers, ps: ps}
	for n := range max(kw, shift+kp) {
		p := &part{job: j, node: n}
		if n < kw {
			p.workers = portion(workers, kw, n)
		}
		if n >= shift && n < shift+kp {
			p.ps = portion(ps, kp, n-shift)
		}
		if !m.fits(w, p.workers, p.ps) {
			return nil
		}
		if p.workers+p.ps > 0 {
			j.parts = append(j.parts, p)
		}
	}
	return j
}

// portion is the i-th of k even portions of n.
func portion(n, k, i int) int {
	if i < n%k {
		return n/k + 1
	}
	return n / k
}
