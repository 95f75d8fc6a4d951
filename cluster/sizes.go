package cluster

import "fmt"

// Sizes are what scaling may make of a job.
type Sizes struct {
	// Workers are the workers that the job came with, in order: its own size.
	Workers []TaskID `json:"workers"`
	// MinWorkers and MaxWorkers are as in Job.
	MinWorkers int `json:"min_workers"`
	MaxWorkers int `json:"max_workers"`
}

// Sizes are those of the group; nil where it does not scale.
func (g Group) Sizes() *Sizes {
	if g.MaxWorkers == 0 {
		return nil
	}
	z := &Sizes{MinWorkers: g.MinWorkers, MaxWorkers: g.MaxWorkers}
	for _, t := range g.Tasks {
		if t.Role == Worker {
			z.Workers = append(z.Workers, t.ID)
		}
	}
	return z
}

// WorkerID is the ID of the i-th worker of a job, counted from 0: of those that
// the job came with, or NAME/worker-I for those that scaling adds. A job that
// shrinks loses its last workers.
func (z *Sizes) WorkerID(job string, i int) TaskID {
	if i < len(z.Workers) {
		return z.Workers[i]
	}
	return TaskID(fmt.Sprintf("%s/worker-%d", job, i))
}
