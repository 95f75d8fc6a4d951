package contention

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/sim"
)

// JobsConfig describes a stream of jobs.
type JobsConfig struct {
	Jobs int
	Seed uint64
	// Load is the rate of arrivals x the mean over jobs of work x workers /
	// Devices, the devices of the cluster.
	Load    float64
	Devices int
	// MaxWorkers and MaxPS bound a job's tasks, each drawn uniformly from 1;
	// 0 means 4.
	MaxWorkers, MaxPS int
	// Shortest and Longest bound the work of a job, log-uniform; both 0 mean half
	// an hour and 8 hours.
	Shortest, Longest time.Duration
}

// The defaults of JobsConfig.
const (
	defaultTasks    = 4
	defaultShortest = 30 * time.Minute
	defaultLongest  = 8 * time.Hour
)

// Jobs draws a sim.Stream of the world's workloads, all alike often. Sizes do
// not depend on each other; the number of parameter servers has a source of
// its own, so that it does not shift what else a seed draws.
func (c Constants) Jobs(j JobsConfig) ([]sim.Job, error) {
	workers, ps := cmp.Or(j.MaxWorkers, defaultTasks), cmp.Or(j.MaxPS, defaultTasks)
	if workers < 1 || ps < 1 {
		return nil, fmt.Errorf("contention: jobs of up to %d workers and %d parameter servers; give at least 1 of each", workers, ps)
	}
	stream := sim.Stream{Jobs: j.Jobs, Load: j.Load, Capacity: float64(j.Devices), Min: j.Shortest, Max: j.Longest}
	if stream.Min == 0 && stream.Max == 0 {
		stream.Min, stream.Max = defaultShortest, defaultLongest
	}
	for n := 1; n <= workers; n++ {
		stream.Sizes = append(stream.Sizes, sim.Size{Workers: n, Share: 1})
	}
	byName := map[string]*Workload{}
	for i := range c.Workloads {
		w := &c.Workloads[i]
		stream.Workloads = append(stream.Workloads, w.Name)
		byName[w.Name] = w
	}
	servers := rand.New(rand.NewPCG(j.Seed, 0x7073))
	stream.Tasks = func(name, workload string, workers int) []cluster.Task {
		return byName[workload].Tasks(name, workers, 1+servers.IntN(ps))
	}
	jobs, err := stream.Draw(j.Seed)
	if err != nil {
		return nil, fmt.Errorf("contention: %w", err)
	}
	return jobs, nil
}

// Tasks are the tasks of a job: NAME/worker-0 and on, of one device each, and
// NAME/ps-0 and on, of none.
func (w *Workload) Tasks(name string, workers, ps int) []cluster.Task {
	tasks := sim.Workers(name, w.Name, workers)
	for i := range tasks {
		tasks[i].BatchSize = portion(w.Batch, workers, i)
	}
	for i := range ps {
		tasks = append(tasks, cluster.Task{
			ID: cluster.TaskID(fmt.Sprintf("%s/ps-%d", name, i)), Workload: w.Name + psSuffix, Role: cluster.ParameterServer,
		})
	}
	return tasks
}

// portion is the i-th of k even portions of n.
func portion(n, k, i int) int {
	if i < n%k {
		return n/k + 1
	}
	return n / k
}
