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
