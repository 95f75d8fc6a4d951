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
			p.worker = m.computing(p.worker, work, w.WorkerCPUs, w.WorkerMemoryBound, n)
			pcieGB := (samples*w.SampleDevice/1e6 + 2*gradients) * n
			if j.ps == 0 {
				pcieGB = samples * w.SampleDevice / 1e6 * n
			}
			p.worker = append(
				p.worker,
				phase{pcie, pcieGB, min(s.DevicePCIe*n, s.PCIe), n},
				phase{disk, samples * w.SampleDisk / 1e6 * n, s.Disk, n},
			)
		}
		if p.ps > 0 {
			work := (w.UpdateCPU + w.AggregateCPU*float64(j.workers)) / float64(j.ps)
			p.update = m.computing(p.update, work, w.PSCPUs, w.PSMemoryBound, k)
		}
		if j.ps > 0 {
			shard := gradients / float64(j.ps)
			near := inRack[p.rack]
			// Push and pull overlap, so that each direction carries this much.
			away := shard * (n*float64(j.ps-p.ps) + k*float64(j.workers-p.workers))
			far := shard * (n*float64(j.ps-near[1]) + k*float64(j.workers-near[0]))
			p.net = append(p.net, phase{nic, away, s.NIC, n + k}, phase{uplink, far, s.NIC / s.Oversubscription, n + k})
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
				d := &p.demand[u.of]
				// A job that uses a resource in two stages asks for the mean of its two
				// peaks.
				if both := d.busy + u.alone(); both > 0 {
					d.rate = (d.rate*d.busy + u.amount) / both
					d.weight = (d.weight*d.busy + u.weight*u.alone()) / both
					d.busy = both
				}
			}
		}
		for i := range p.demand {
			p.demand[i].busy /= j.base
		}
	}
}

// computing splits the CPU time of n tasks, each of work CPU-seconds on up to
// cpus threads, into what computes and what waits for memory.
func (m *model) computing(to []phase, work, cpus, bound, n float64) []phase {
	s := &m.Server
	return append(
		to,
		phase{compute, work * (1 - bound) * n, min(cpus*n, s.Compute), n},
		phase{memory, work / cpus * bound * s.TaskMemoryBandwidth * n, min(s.TaskMemoryBandwidth*n, s.MemoryBandwidth), n},
	)
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

// seconds is how long a phase of p takes among its neighbours.
func (m *model) seconds(u phase, p *part, node []*part) float64 {
	if u.amount == 0 {
		return 0
	}
	m.claims = m.claims[:0]
	for _, o := range node {
		if d := o.demand[u.of]; o != p && d.rate > 0 {
			m.claims = append(m.claims, claim{d.rate, d.weight, min(1, d.busy*m.strength)})
		}
	}
	return u.amount / share(m.capacity[u.of], claim{rate: u.peak, weight: u.weight}, m.claims)
}
