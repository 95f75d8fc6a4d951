package contention

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/sim"
)

// JobsConfig describes a stream of jobs.
type JobsConfig struct {
	Jobs int
	Seed uint64
	// Load is the rate of arrivals x the mean over jobs of work x workers / the
	// devices of the cluster; 1 is as much as the devices can do.
	Load    float64
	Devices int
	// MaxWorkers and MaxPS bound a job's tasks, each drawn uniformly from 1;
	// 0 means 4.
	MaxWorkers, MaxPS int
	// Shortest and Longest bound the work of a job, log-uniform; 0 means half an
	// hour and 8 hours.
	Shortest, Longest time.Duration
}

// The defaults of JobsConfig.
const (
	defaultTasks    = 4
	defaultShortest = 30 * time.Minute
	defaultLongest  = 8 * time.Hour
)

// Jobs draws a stream: workloads uniformly, sizes uniformly, work log-uniform,
// arrivals as a Poisson process whose rate gives the load. The same seed gives
// the same jobs at every load, closer together or further apart.
func (c Constants) Jobs(j JobsConfig) ([]sim.Job, error) {
	workers, ps := cmp.Or(j.MaxWorkers, defaultTasks), cmp.Or(j.MaxPS, defaultTasks)
	shortest, longest := cmp.Or(j.Shortest, defaultShortest).Seconds(), cmp.Or(j.Longest, defaultLongest).Seconds()
	switch {
	case j.Jobs < 0 || j.Devices < 1 || workers < 1 || ps < 1:
		return nil, fmt.Errorf("contention: %d jobs of up to %d workers and %d parameter servers on %d devices; give positive numbers", j.Jobs, workers, ps, j.Devices)
	case !(j.Load > 0) || math.IsInf(j.Load, 1):
		return nil, fmt.Errorf("contention: load is %g; give a number above 0", j.Load)
	case shortest <= 0 || longest < shortest:
		return nil, fmt.Errorf("contention: work from %v to %v; give a shortest above 0 and a longest not below it", j.Shortest, j.Longest)
	}
	mean := shortest
	if longest > shortest {
		mean = (longest - shortest) / math.Log(longest/shortest)
	}
	gap := mean * float64(1+workers) / 2 / (j.Load * float64(j.Devices))
	r := rand.New(rand.NewPCG(j.Seed, 0x6a6f6273))
	jobs := make([]sim.Job, j.Jobs)
	now := 0.0
	for i := range jobs {
		w := &c.Workloads[r.IntN(len(c.Workloads))]
		job := w.Job(fmt.Sprintf("job-%05d", i), 1+r.IntN(workers), 1+r.IntN(ps))
		work := shortest * math.Pow(longest/shortest, r.Float64())
		now += gap * r.ExpFloat64()
		if now*1e9 > math.MaxInt64 {
			return nil, fmt.Errorf("contention: job %d arrives after %g s, longer than a time can be; raise the load or draw fewer", i, now)
		}
		job.Arrival = time.Duration(now * 1e9)
		jobs[i] = sim.Job{Job: job, Work: work}
	}
	return jobs, nil
}

// Job is a job of the workload. Its tasks are NAME/worker-0.. and NAME/ps-0..;
// each worker needs a device.
func (w *Workload) Job(name string, workers, ps int) cluster.Job {
	job := cluster.Job{Name: name}
	for i := range workers {
		job.Tasks = append(job.Tasks, cluster.Task{
			ID: cluster.TaskID(fmt.Sprintf("%s/worker-%d", name, i)), Workload: w.Name, Role: cluster.Worker, Devices: 1,
			BatchSize: portion(w.Batch, workers, i),
		})
	}
	for i := range ps {
		job.Tasks = append(job.Tasks, cluster.Task{
			ID: cluster.TaskID(fmt.Sprintf("%s/ps-%d", name, i)), Workload: w.Name + psSuffix, Role: cluster.ParameterServer,
		})
	}
	return job
}
