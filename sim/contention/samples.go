package contention

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// source is the Source of samples of this world.
const source = "contention"

// SamplesConfig says what a profiler measures.
type SamplesConfig struct {
	// Colocations is how many it measures.
	Colocations int
	Seed        uint64
	// Noise is the standard deviation of a measurement, relative to it.
	Noise float64
	// MaxWorkers and MaxPS bound the jobs that it runs; 0 means 4.
	MaxWorkers, MaxPS int
}

// Samples are what a profiler would measure: it puts tasks of random jobs on
// one node, up to a random number or what fits, and times them. Half of the
// jobs are on the node whole, where they fit; the others have a random part
// of their tasks there and the rest on idle nodes. A sample is the mean over
// the tasks of one workload in the co-location; alone is the same jobs placed
// the same, with nobody beside them. Rates are iterations a second.
func (t *Truth) Samples(c SamplesConfig) ([]history.Sample, error) {
	workers, ps := cmp.Or(c.MaxWorkers, defaultTasks), cmp.Or(c.MaxPS, defaultTasks)
	if c.Colocations < 0 || workers < 1 || ps < 1 || !(c.Noise >= 0) || c.Noise > 1 {
		return nil, fmt.Errorf("contention: %d co-locations of jobs of up to %d workers and %d parameter servers with noise %g; give positive numbers, noise 0 to 1", c.Colocations, workers, ps, c.Noise)
	}
	r := rand.New(rand.NewPCG(c.Seed, 0x73616d70))
	var out []history.Sample
	for range c.Colocations {
		out = append(out, t.measure(t.crowd(r, workers, ps), r, c.Noise)...)
	}
	return out, nil
}

// crowd fills node 0 with parts of random jobs.
func (m *model) crowd(r *rand.Rand, workers, ps int) []*part {
	var node []*part
	goal := 1 + r.IntN(2*m.Server.Devices)
	var used usage
	for tries := 0; goal > 0 && tries < 8; tries++ {
		w := &m.Workloads[r.IntN(len(m.Workloads))]
		j := &job{workload: w, workers: 1 + r.IntN(workers), ps: 1 + r.IntN(ps)}
		here := &part{job: j, workers: j.workers, ps: j.ps}
		if r.IntN(2) == 0 {
			here.workers, here.ps = r.IntN(j.workers+1), r.IntN(j.ps+1)
		}
		if here.workers+here.ps == 0 || here.workers+here.ps > goal || !m.fitsBeside(used, here) {
			continue
		}
		used = used.with(here)
		goal -= here.workers + here.ps
		j.parts = []*part{here}
		m.elsewhere(j, here)
		m.place(j)
		node = append(node, here)
	}
	return node
}

// usage is what the tasks on a node request.
type usage struct {
	devices      int
	cpus, memory float64
}

func (u usage) with(p *part) usage {
	w := p.job.workload
	n, k := float64(p.workers), float64(p.ps)
	return usage{u.devices + p.workers, u.cpus + n*w.WorkerCPUs + k*w.PSCPUs, u.memory + n*w.WorkerMemory + k*w.PSMemory}
}

func (m *model) fitsBeside(u usage, p *part) bool {
	u = u.with(p)
	return u.devices <= m.Server.Devices && u.cpus <= m.Server.CPUs && u.memory <= m.Server.Memory
}

// elsewhere puts the tasks of a job that are not here on idle nodes, each on
// the first that has room.
func (m *model) elsewhere(j *job, here *part) {
	workers, ps := j.workers-here.workers, j.ps-here.ps
	for node := 1; workers+ps > 0; node++ {
		p := &part{job: j, node: node}
		for workers > 0 && m.fits(j.workload, p.workers+1, p.ps) {
			p.workers++
			workers--
		}
		for ps > 0 && m.fits(j.workload, p.workers, p.ps+1) {
			p.ps++
			ps--
		}
		j.parts = append(j.parts, p)
	}
}

// measure times every workload on a node whose jobs have no other neighbours.
func (m *model) measure(node []*part, r *rand.Rand, noise float64) []history.Sample {
	type cell struct {
		role         cluster.Role
		tasks        int
		value, alone float64
		jobs         []*part
	}
	colocation, cells := cluster.Colocation{}, map[string]*cell{}
	for _, p := range node {
		now := m.beside(p, node)
		rest := [3]float64{}
		for _, o := range p.job.parts {
			if o != p {
				for i := range rest {
					rest[i] = max(rest[i], o.stages[i])
				}
			}
		}
		add := func(name string, tasks int, role cluster.Role, alone, beside float64) {
			if tasks == 0 {
				return
			}
			c := cells[name]
			if c == nil {
				c = &cell{role: role}
				cells[name] = c
			}
			colocation[name] += tasks
			c.tasks += tasks
			c.alone += float64(tasks) / alone
			c.value += float64(tasks) / beside
			c.jobs = append(c.jobs, p)
		}
		name := p.job.workload.Name
		// As in answer: a worker waits for the parameter servers and the network,
		// a parameter server for the workers.
		add(name, p.workers, cluster.Worker,
			p.stages[0]+max(rest[1], p.stages[1])+max(rest[2], p.stages[2]),
			now[0]+max(rest[1], now[1])+max(rest[2], now[2]))
		add(name+psSuffix, p.ps, cluster.ParameterServer,
			max(rest[0], p.stages[0])+max(rest[1], p.stages[1])+p.stages[2],
			max(rest[0], now[0])+max(rest[1], now[1])+now[2])
	}
	out := make([]history.Sample, 0, len(cells))
	for _, name := range colocation.Workloads() {
		c := cells[name]
		n := float64(c.tasks)
		s := history.Sample{
			Source: source, Scope: history.ScopeNode, Colocation: colocation, Workload: name, Role: c.role, Metric: history.Rate,
			Value: noisy(c.value/n, r, noise), Alone: noisy(c.alone/n, r, noise),
		}
		if len(c.jobs) == 1 {
			s.Workers, s.Span = c.jobs[0].job.workers, c.jobs[0].job.span()
		}
		out = append(out, s)
	}
	return out
}

// noisy is a measurement of v: never less than a tenth of it.
func noisy(v float64, r *rand.Rand, sd float64) float64 {
	if sd == 0 {
		return v
	}
	return v * max(0.1, 1+sd*r.NormFloat64())
}

func (j *job) span() cluster.Span {
	if len(j.parts) == 1 {
		return cluster.SpanNode
	}
	return cluster.SpanApart
}

// testbed is the number of servers over which AloneSamples spreads a job.
const testbed = 6

// AloneSamples are the rates of whole jobs on idle servers, in iterations a
// second: for each workload, and up to maxWorkers workers and maxPS parameter
// servers, placed as well as it can be (span node) and dealt out one task a
// server over six (span apart).
func (t *Truth) AloneSamples(maxWorkers, maxPS int) []history.Sample {
	var out []history.Sample
	for i := range t.Workloads {
		w := &t.Workloads[i]
		for workers := 1; workers <= maxWorkers; workers++ {
			for ps := 1; ps <= maxPS; ps++ {
				s := history.Sample{
					Source: source, Scope: history.ScopeNode, Colocation: cluster.Colocation{w.Name: 1}, Workload: w.Name,
					Role: cluster.Worker, Workers: workers, Metric: history.Rate,
				}
				rate := 1 / t.best(w, workers, ps)
				s.Span, s.Value, s.Alone = cluster.SpanNode, rate, rate
				out = append(out, s)
				rate = 1 / t.dealt(w, workers, ps)
				s.Span, s.Value, s.Alone = cluster.SpanApart, rate, rate
				out = append(out, s)
			}
		}
	}
	return out
}

// dealt is the seconds of an iteration with the tasks dealt out over servers,
// workers first, one each in turn.
func (m *model) dealt(w *Workload, workers, ps int) float64 {
	for servers := testbed; ; servers++ {
		j := &job{workload: w, workers: workers, ps: ps}
		parts := make([]*part, servers)
		for i := range parts {
			parts[i] = &part{job: j, node: i}
		}
		for i := range workers + ps {
			if i < workers {
				parts[i%servers].workers++
			} else {
				parts[i%servers].ps++
			}
		}
		fits := true
		for _, p := range parts {
			fits = fits && m.fits(w, p.workers, p.ps)
			if p.workers+p.ps > 0 {
				j.parts = append(j.parts, p)
			}
		}
		if fits {
			m.place(j)
			return j.base
		}
	}
}

// Scale is the speed alone of a job of the workload with the given number of
// workers over its speed with own, each with as many parameter servers as it
// had workers to begin with. 1 for workloads that the world does not know.
func (t *Truth) Scale(workload string, own, workers int) float64 {
	role := t.byName[workload]
	if role.workload == nil || own < 1 || workers < 1 {
		return 1
	}
	return t.best(role.workload, own, own) / t.best(role.workload, workers, own)
}
