package contention

// resource is one of the things that the tasks on a node share.
type resource int

const (
	compute resource = iota
	memory
	pcie
	disk
	nic
	uplink // the node's way to other racks
	resources
)

// phase is one use of a resource in an iteration: an amount, in CPU-seconds or
// GB, that moves at no more than a peak.
type phase struct {
	of     resource
	amount float64
	peak   float64
	weight float64 // tasks of the job that move it at once
	// bound is the part of a phase of computing that waits for memory; a thread
	// that waits keeps its core. stream is the bandwidth that it then draws.
	bound, stream float64
}

// part is the tasks of one job on one node.
type part struct {
	job         *job
	gang        *gang // the tasks that it stands for, where there are some
	node        int
	rack        string
	workers, ps int

	fixed  float64 // seconds of a worker's stage that nothing slows
	worker []phase // of a worker's stage, one after the other
	update []phase // of a parameter server's
	net    []phase // all at once: the longest counts
	demand [resources]claim
	stages [3]float64 // seconds without neighbours: worker, net, update
	now    [3]float64 // the same beside its neighbours
}

// job is a gang and where it runs. Its numbers without neighbours depend on
// nothing else, so they are computed when it is placed.
type job struct {
	workload    *Workload
	workers, ps int
	parts       []*part
	base        float64 // seconds of an iteration here, without neighbours
	best        float64 // the same, placed as well as it can be
}

// place computes what does not depend on neighbours.
func (m *model) place(j *job) {
	w, s := j.workload, &m.Server
	j.base = 0
	if j.workers == 0 {
		return // parameter servers without workers idle
	}
	inRack := map[string][2]int{}
	for _, p := range j.parts {
		n := inRack[p.rack]
		inRack[p.rack] = [2]int{n[0] + p.workers, n[1] + p.ps}
	}
	samples := float64((w.Batch + j.workers - 1) / j.workers)
	gradients := w.Gradients / 1e3
	for _, p := range j.parts {
		n, k := float64(p.workers), float64(p.ps)
		p.fixed, p.worker, p.update, p.net = 0, p.worker[:0], p.update[:0], p.net[:0]
		if p.workers > 0 {
			p.fixed = w.Fixed + w.PerWorker*float64(j.workers) + w.Device*samples
			work := w.WorkerCPUFixed + w.WorkerCPU*samples
			pcieGB := (samples*w.SampleDevice/1e6 + 2*gradients) * n
			if j.ps == 0 {
				pcieGB = samples * w.SampleDevice / 1e6 * n
			}
			p.worker = append(
				p.worker,
				m.computing(work, w.WorkerCPUs, w.WorkerMemoryBound, n),
				phase{of: pcie, amount: pcieGB, peak: min(s.DevicePCIe*n, s.PCIe), weight: n},
				phase{of: disk, amount: samples * w.SampleDisk / 1e6 * n, peak: s.Disk, weight: n},
			)
		}
		if p.ps > 0 {
			work := (w.UpdateCPU + w.AggregateCPU*float64(j.workers)) / float64(j.ps)
			p.update = append(p.update, m.computing(work, w.PSCPUs, w.PSMemoryBound, k))
		}
		if j.ps > 0 {
			shard := gradients / float64(j.ps)
			near := inRack[p.rack]
			// Push and pull overlap, so that each direction carries this much.
			away := shard * (n*float64(j.ps-p.ps) + k*float64(j.workers-p.workers))
			far := shard * (n*float64(j.ps-near[1]) + k*float64(j.workers-near[0]))
			p.net = append(
				p.net,
				phase{of: nic, amount: away, peak: s.NIC, weight: n + k},
				phase{of: uplink, amount: far, peak: s.NIC / s.Oversubscription, weight: n + k},
			)
		}
		p.stages = [3]float64{p.fixed, 0, 0}
		for _, u := range p.worker {
			p.stages[0] += u.alone()
		}
		for _, u := range p.net {
			p.stages[1] = max(p.stages[1], u.alone())
		}
		for _, u := range p.update {
			p.stages[2] += u.alone()
		}
	}
	j.base = j.slowest(func(p *part) [3]float64 { return p.stages })
	for _, p := range j.parts {
		p.demand = [resources]claim{}
		for _, stage := range [][]phase{p.worker, p.update, p.net} {
			for _, u := range stage {
				p.claim(u.of, u.peak, u.weight, u.alone()/j.base)
				p.claim(memory, u.stream, u.weight, u.bound*u.alone()/j.base)
			}
		}
	}
}

// claim adds a use of a resource, for a part of the time, to what p demands. A
// job that uses it twice in an iteration demands the mean of both for the sum
// of the times.
func (p *part) claim(of resource, rate, weight, busy float64) {
	d := &p.demand[of]
	both := d.busy + busy
	if both == 0 {
		return
	}
	d.rate = (d.rate*d.busy + rate*busy) / both
	d.weight = (d.weight*d.busy + weight*busy) / both
	d.busy = both
}

// computing is the CPU time of n tasks, each of work CPU-seconds on up to cpus
// threads.
func (m *model) computing(work, cpus, bound, n float64) phase {
	s := &m.Server
	return phase{
		of: compute, amount: work * n, peak: min(cpus*n, s.Compute), weight: n,
		bound: bound, stream: min(s.TaskMemoryBandwidth*n, s.MemoryBandwidth),
	}
}

func (u phase) alone() float64 {
	if u.amount == 0 {
		return 0
	}
	return u.amount / u.peak
}

// slowest is the seconds of an iteration when the stages of each part take
// what stages says.
func (j *job) slowest(stages func(*part) [3]float64) float64 {
	worst := [3]float64{}
	for _, p := range j.parts {
		for i, t := range stages(p) {
			worst[i] = max(worst[i], t)
		}
	}
	return worst[0] + worst[1] + worst[2]
}

// beside is the seconds of the stages of p among the parts that share its node.
func (m *model) beside(p *part, node []*part) [3]float64 {
	if len(node) == 1 {
		return p.stages
	}
	out := [3]float64{p.fixed, 0, 0}
	for _, u := range p.worker {
		out[0] += m.seconds(u, p, node)
	}
	for _, u := range p.net {
		out[1] = max(out[1], m.seconds(u, p, node))
	}
	for _, u := range p.update {
		out[2] += m.seconds(u, p, node)
	}
	return out
}

// seconds is how long a phase of p takes among its neighbours. Where a thread
// waits for memory the scarcer of core and memory counts.
func (m *model) seconds(u phase, p *part, node []*part) float64 {
	alone := u.alone()
	if alone == 0 {
		return 0
	}
	slow := u.peak / m.gets(u.of, claim{rate: u.peak, weight: u.weight}, p, node)
	if u.bound == 0 {
		return alone * slow
	}
	stalled := u.stream / m.gets(memory, claim{rate: u.stream, weight: u.weight}, p, node)
	return alone * ((1-u.bound)*slow + u.bound*max(slow, stalled))
}

// gets is the rate that p gets of a resource of its node while it asks for own.
func (m *model) gets(of resource, own claim, p *part, node []*part) float64 {
	m.claims = m.claims[:0]
	for _, o := range node {
		if d := o.demand[of]; o != p && d.busy > 0 {
			d.busy = min(1, d.busy*m.strength)
			m.claims = append(m.claims, d)
		}
	}
	return share(m.capacity[of], own, m.claims)
}
