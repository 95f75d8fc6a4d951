package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cotenant/cotenant/cluster"
)

// nodes are the failures of nodes: each node has its own stream of randomness,
// so that they are the same whatever a policy does.
type nodes struct {
	rand []*rand.Rand
	due  int // nodes with a next failure or repair: all or none
	down int
	up   []bool
}

func (r *run) startNodes() {
	if r.MTBF == 0 {
		return
	}
	r.nodes.up = make([]bool, len(r.Nodes))
	for n := range r.Nodes {
		r.nodes.rand = append(r.nodes.rand, rand.New(rand.NewPCG(r.Seed, uint64(n)<<8|streamNodes)))
		r.nodes.up[n] = true
		r.setFailure(n)
	}
}

func (r *run) setFailure(n int) {
	wait := min(r.nodes.rand[n].ExpFloat64()*r.MTBF.Seconds(), horizon.Seconds())
	r.setNode(n, r.now+max(1, time.Duration(wait*1e9)))
}

func (r *run) setNode(n int, at time.Duration) {
	r.due.set(int32(len(r.jobs)+n), at)
	r.nodes.due = len(r.Nodes)
}

// nodeEvent fails a node that is up, with every job on it, and brings back one
// that is down.
func (r *run) nodeEvent(n int) error {
	up := !r.nodes.up[n]
	r.nodes.up[n] = up
	if up {
		r.nodes.down--
		r.setFailure(n)
	} else {
		r.nodes.down++
		r.setNode(n, r.now+max(1, r.Repair))
		for len(r.on[n]) > 0 {
			j := r.on[n][0].job
			r.settleWork(j)
			r.fail(j)
		}
	}
	if err := r.settle(); err != nil {
		return err
	}
	nodes := slices.Clone(r.room.nodes)
	nodes[n].Unschedulable = !up || r.Nodes[n].Unschedulable
	s, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes, Workloads: r.current.Workloads(), Running: r.current.Running()})
	if err != nil {
		return err
	}
	r.room.nodes = nodes
	r.room.close(n)
	r.chain = cluster.NewChain(s)
	r.show(s)
	return nil
}

// fail ends a run of a job before its work is done: what it did since its last
// checkpoint is lost, and it goes back to where it stood in the queue.
func (r *run) fail(j *job) {
	r.leave(j)
	j.unsize()
	done := j.spec.Work - j.remaining
	kept := 0.0
	if r.Checkpoint > 0 {
		kept = min(math.Floor(done/r.Checkpoint)*r.Checkpoint, done)
	}
	j.result.Lost += done - kept
	j.remaining = j.spec.Work - kept
	if j.result.Restarts == r.MaxRestarts {
		j.result.State, j.result.Why = Unfinished, "it failed too often and was given up"
		return
	}
	j.result.Restarts++
	r.out.Restarts++
	r.enqueue(j)
}

// drawFailure settles whether the run of a job that begins now will fail, and
// after what part of its work: by seed, job and run alone.
func (r *run) drawFailure(j *job) {
	j.failAt = -1
	if r.JobFailure == 0 {
		return
	}
	draw := rand.New(rand.NewPCG(r.Seed, uint64(j.index)<<32|uint64(j.result.Restarts)<<8|streamJobs))
	if draw.Float64() < r.JobFailure {
		j.failAt = j.remaining * draw.Float64()
	}
}
