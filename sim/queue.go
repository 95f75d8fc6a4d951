package sim

import (
	"slices"

	"github.com/cotenant/cotenant/cluster"
)

// queue holds the jobs that wait in the order of their ranks, and beside it
// their gangs as policies get them, so that nothing is built at a decision.
type queue struct {
	jobs   []*job
	groups []cluster.Group
}

func (q *queue) find(rank int32) (int, bool) {
	return slices.BinarySearchFunc(q.jobs, rank, func(j *job, rank int32) int { return int(j.rank - rank) })
}

func (q *queue) add(j *job) {
	at, _ := q.find(j.rank)
	q.jobs = slices.Insert(q.jobs, at, j)
	g := j.spec.Group()
	if j.sizes == nil {
		g.MinWorkers, g.MaxWorkers = 0, 0 // the run does not scale
	}
	q.groups = slices.Insert(q.groups, at, g)
}

// remove takes a job out. What stands before it moves up where that is less:
// most jobs that are placed stand near the head.
func (q *queue) remove(j *job) {
	at, ok := q.find(j.rank)
	if !ok {
		return
	}
	if at < len(q.jobs)/2 {
		copy(q.jobs[1:at+1], q.jobs[:at])
		copy(q.groups[1:at+1], q.groups[:at])
		q.jobs[0], q.groups[0] = nil, cluster.Group{}
		q.jobs, q.groups = q.jobs[1:], q.groups[1:]
		return
	}
	q.jobs = slices.Delete(q.jobs, at, at+1)
	q.groups = slices.Delete(q.groups, at, at+1)
}
