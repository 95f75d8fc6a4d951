package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cotenant/cotenant/cluster"
)

// Stream draws jobs that arrive at random: Poisson arrivals, workloads alike
// often, durations log-uniform. The same Stream and seed give the same jobs,
// and another load gives the same jobs closer together or further apart.
type Stream struct {
	// Jobs is how many to draw.
	Jobs int
	// Load is arrival rate x mean time alone on the reference class / Capacity. A
	// job of several workers counts once for each.
	Load float64
	// Capacity is one job a device, each weighted by its class's speed over the
	// reference class's: see Capacity.
	Capacity  float64
	Workloads []string
	// Min and Max bound the time alone on the reference class; both 0 mean half
	// an hour and 53 hours.
	Min, Max time.Duration
	// Sizes is the mix of workers; empty means single workers.
	Sizes []Size
	// Alone is the progress of a job alone on the reference class, which turns its
	// time there into work; nil where that class is the fastest there is.
	Alone func(workload string, workers int) float64
	// Tasks makes the tasks of a job; nil makes workers of one device each.
	Tasks func(name, workload string, workers int) []cluster.Task
}

// Size is a number of workers and how often jobs have it, relative to others.
type Size struct {
	Workers int
	Share   float64
}

// Capacity adds up the devices of nodes, each weighted by its class's speed /
// the reference class's speed.
func Capacity(nodes []cluster.Node, speed func(class string) float64) float64 {
	sum := 0.0
	for i := range nodes {
		for _, d := range nodes[i].Devices {
			sum += speed(d.Class)
		}
	}
	return sum
}

// Draw draws the jobs, in order of arrival: job-0, job-1, ...
func (s Stream) Draw(seed uint64) ([]Job, error) {
	if s.Min == 0 && s.Max == 0 {
		s.Min, s.Max = 30*time.Minute, 53*time.Hour
	}
	if len(s.Sizes) == 0 {
		s.Sizes = []Size{{Workers: 1, Share: 1}}
	}
	if s.Tasks == nil {
		s.Tasks = Workers
	}
	shares, workers, err := s.check()
	if err != nil {
		return nil, err
	}
	lo, hi := s.Min.Seconds(), s.Max.Seconds()
	mean := lo
	if hi > lo {
		mean = (hi - lo) / math.Log(hi/lo)
	}
	gap := mean * workers / (s.Load * s.Capacity)
	// A source for each thing drawn, so that one does not shift the others.
	source := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }
	arrivals, kinds, times, sizes := source(1), source(2), source(3), source(4)
	jobs := make([]Job, s.Jobs)
	at := 0.0
	for i := range jobs {
		at += arrivals.ExpFloat64() * gap
		if at > horizon.Seconds() {
			return nil, fmt.Errorf("stream: job %d of %d would arrive after %s; raise the load %g or draw fewer", i, s.Jobs, horizon, s.Load)
		}
		name := fmt.Sprintf("job-%d", i)
		workload := s.Workloads[kinds.IntN(len(s.Workloads))]
		alone := lo * math.Pow(hi/lo, times.Float64())
		pick := sizes.Float64() * shares
		size := s.Sizes[0].Workers
		for _, z := range s.Sizes {
			if z.Share > 0 {
				size = z.Workers
				if pick -= z.Share; pick < 0 {
					break
				}
			}
		}
		progress := 1.0
		if s.Alone != nil {
			progress = s.Alone(workload, size)
			if !(progress > 0) || math.IsInf(progress, 1) {
				return nil, fmt.Errorf("stream: %s with %d workers has the progress %g alone on the reference class; it must be finite and more than 0",
					workload, size, progress)
			}
		}
		jobs[i] = Job{
			Job:  cluster.Job{Name: name, Tasks: s.Tasks(name, workload, size), Arrival: time.Duration(at * 1e9)},
			Work: alone * progress,
		}
	}
	return jobs, nil
}

// check adds up the shares of the sizes and finds the mean number of workers.
func (s *Stream) check() (shares, workers float64, err error) {
	switch {
	case s.Jobs < 0:
		return 0, 0, fmt.Errorf("stream: %d jobs", s.Jobs)
	case !(s.Load > 0) || math.IsInf(s.Load, 1):
		return 0, 0, fmt.Errorf("stream: load %g; it must be finite and more than 0", s.Load)
	case !(s.Capacity > 0) || math.IsInf(s.Capacity, 1):
		return 0, 0, fmt.Errorf("stream: capacity %g; it must be finite and more than 0", s.Capacity)
	case len(s.Workloads) == 0:
		return 0, 0, fmt.Errorf("stream: no workloads to draw from")
	case s.Min <= 0 || s.Max < s.Min:
		return 0, 0, fmt.Errorf("stream: durations from %s to %s; they must be more than 0 and in order", s.Min, s.Max)
	}
	for _, z := range s.Sizes {
		if z.Workers < 1 || !(z.Share >= 0) || math.IsInf(z.Share, 1) {
			return 0, 0, fmt.Errorf("stream: size of %d workers with share %g; at least 1 worker, and a finite share of at least 0", z.Workers, z.Share)
		}
		shares += z.Share
		workers += z.Share * float64(z.Workers)
	}
	if shares == 0 {
		return 0, 0, fmt.Errorf("stream: the shares of all sizes are 0")
	}
	return shares, workers / shares, nil
}

// Workers makes the tasks of a job of workers alone, NAME/worker-0 and on, of
// one device each.
func Workers(name, workload string, workers int) []cluster.Task {
	tasks := make([]cluster.Task, workers)
	for i := range tasks {
		tasks[i] = cluster.Task{
			ID: cluster.TaskID(fmt.Sprintf("%s/worker-%d", name, i)), Workload: workload, Role: cluster.Worker, Devices: 1,
		}
	}
	return tasks
}
