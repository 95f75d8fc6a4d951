package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// Job is a training job with what no policy knows: how long it takes.
type Job struct {
	cluster.Job
	// Work is the seconds that the job needs alone on the fastest class that it
	// may use, at its own number of workers, consolidated.
	Work float64 `json:"work"`
}

// Truth is how fast tasks really run.
type Truth interface {
	// Rates gives the progress of the touched tasks, all of which run in s: at
	// least 0 and finite, 0 for a task that stands still. It may give more tasks
	// than asked for, where a change reaches further (a shared link); touched may
	// be empty, where the last tasks of a node ended. It belongs to the caller;
	// the map is read before the next call, so that it may be the same one each
	// time. NaN ends the run: no task can be where that one is. A Truth with a
	// method Err() error says there why.
	Rates(s *cluster.Snapshot, touched []cluster.TaskID) map[cluster.TaskID]float64
}

// Scaler is implemented by a Truth that knows jobs of other sizes. Config.Scale
// needs one.
type Scaler interface {
	// Scale is the speed alone of a job of the workload with the given number of
	// workers / its speed alone with own workers; more than 0.
	Scale(workload string, own, workers int) float64
}

// Price allows something, at a cost: the time that a job then stands still.
type Price struct {
	On   bool
	Cost time.Duration
}

// Config is a run. Its fields are only read.
type Config struct {
	Nodes []cluster.Node
	// Workloads declares requests; workloads of tasks need not be declared.
	Workloads []cluster.Workload
	Jobs      []Job // in any order
	Truth     Truth
	Policy    place.Policy
	// Name is the policy's name in errors; "" means its type.
	Name string
	// Objective is handed to the policy.
	Objective place.Objective
	// Seed of the policy's Rand and of failures. Failures of nodes do not depend
	// on the policy, nor does the work after which the nth run of a job fails.
	Seed uint64

	// Interval is the grid of decision times: the multiples of it. 0 decides at
	// every instant at which a job arrives or ends, a node fails or comes back.
	Interval time.Duration
	// Backfill offers the whole queue at each decision. Without it the gangs are
	// offered one at a time until the first is held.
	Backfill bool
	// Priorities orders the queue by priority, higher first, then by arrival.
	Priorities bool
	// Migrate allows Decision.Move. The whole job stands still for the cost.
	Migrate Price
	// Scale allows Decision.Resize within MinWorkers..MaxWorkers. A running job
	// stands still for the cost; one that is bound in the same decision starts
	// with that size, free. Growing needs a Binding for each new worker, whose
	// ID WorkerID gives; shrinking ends the last workers. Speed then is progress
	// x Scaler.Scale. Groups and running tasks show their bounds only then, and
	// where the queue was emptied the policy decides once more, with none pending.
	Scale Price
	// Stale is the age of the view that the policy sees; the queue is always of
	// now. With Interval 0 the policy also decides when its view changes.
	Stale time.Duration

	// MTBF is the mean time between failures of a node, exponential; 0 is never.
	// Its jobs go back to the queue, and it takes no tasks for Repair.
	MTBF, Repair time.Duration
	// JobFailure is the probability that a run of a job fails before it ends, at
	// any part of its work alike; less than 1.
	JobFailure float64
	// Checkpoint is the seconds of work after which a job saves its state; what
	// it did since is lost when it fails. 0 saves nothing: it begins anew.
	Checkpoint float64
	// MaxRestarts is how often a job starts again before it is given up and
	// listed as unfinished; 0 means 1000.
	MaxRestarts int

	// Observe gives the policy, if it is a place.Observer, an Outcome for each
	// stretch of time in which nothing changed, when it ends.
	Observe bool
	// Watch, where not nil, is called with each stretch of time.
	Watch func(Stretch)
	// Decided, where not nil, is called with each decision before it is checked.
	Decided func(place.Request, place.Decision)
	// Stop, where not nil, is asked now and then; true ends the run with what it
	// has reached. It is also the policy's Request.Stop.
	Stop func() bool
}

// Stretch is a span of time in which nothing changed. Its slices are valid
// during the call only.
type Stretch struct {
	From, To time.Duration
	View     *cluster.Snapshot
	// Queued is the number of jobs that wait.
	Queued int
	// Progress is how fast each task of View.Running() could go, and Rate at what
	// pace its job did go: the least progress of the gang, scaled.
	Progress, Rate []float64
	// Still is until when the task's job stands still, for a move or a resize.
	Still []time.Duration
}

// WorkerID is the ID of the i-th worker of a job, counted from 0: that of its
// i-th task with the role worker where there is one, and NAME/worker-I for
// those that scaling adds.
func WorkerID(j cluster.Job, i int) cluster.TaskID {
	n := 0
	for _, t := range j.Tasks {
		if t.Role == cluster.Worker {
			if n == i {
				return t.ID
			}
			n++
		}
	}
	return cluster.TaskID(fmt.Sprintf("%s/worker-%d", j.Name, i))
}

// maxWorkers bounds what a job may scale to.
const maxWorkers = 1 << 16

func (c *Config) validate() error {
	switch {
	case c.Truth == nil:
		return fmt.Errorf("sim: no truth; set Config.Truth")
	case c.Policy == nil:
		return fmt.Errorf("sim: no policy; set Config.Policy")
	case !(c.JobFailure >= 0 && c.JobFailure < 1):
		return fmt.Errorf("sim: probability %g that a job fails; it must be at least 0 and less than 1", c.JobFailure)
	case !(c.Checkpoint >= 0) || math.IsInf(c.Checkpoint, 1):
		return fmt.Errorf("sim: checkpoint after %g s of work; it must be finite and at least 0", c.Checkpoint)
	case c.MaxRestarts < 0:
		return fmt.Errorf("sim: %d restarts; it must be at least 0", c.MaxRestarts)
	}
	for _, d := range []struct {
		name string
		time time.Duration
	}{
		{"interval", c.Interval},
		{"cost of a move", c.Migrate.Cost},
		{"cost of a resize", c.Scale.Cost},
		{"age of the view", c.Stale},
		{"mean time between failures", c.MTBF},
		{"time of repair", c.Repair},
	} {
		if d.time < 0 || d.time > horizon {
			return fmt.Errorf("sim: %s is %s; it must be from 0 to %s", d.name, d.time, horizon)
		}
	}
	if _, ok := c.Truth.(Scaler); c.Scale.On && !ok {
		return fmt.Errorf("sim: scaling is on, but the truth (%T) knows no other sizes: it has no Scale", c.Truth)
	}
	for i := range c.Jobs {
		if err := c.Jobs[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

func (j *Job) validate() error {
	switch {
	case j.Name == "":
		return fmt.Errorf("sim: a job that arrives at %s has no name", j.Arrival)
	case len(j.Tasks) == 0:
		return fmt.Errorf("job %q: no tasks", j.Name)
	case !(j.Work > 0) || j.Work > horizon.Seconds():
		return fmt.Errorf("job %q: work %g s; it must be more than 0 and at most %g", j.Name, j.Work, horizon.Seconds())
	case j.Arrival < 0 || j.Arrival > horizon:
		return fmt.Errorf("job %q: arrival %s; it must be from 0 to %s", j.Name, j.Arrival, horizon)
	}
	workers := 0
	for _, t := range j.Tasks {
		switch {
		case t.ID == "":
			return fmt.Errorf("job %q: a task has no ID", j.Name)
		case t.Workload == "":
			return fmt.Errorf("job %q: task %q has no workload", j.Name, t.ID)
		case t.Devices < 0:
			return fmt.Errorf("job %q: task %q asks for %d devices", j.Name, t.ID, t.Devices)
		}
		if len(t.Requests) > 0 {
			for _, r := range t.Requests.Names() {
				if t.Requests[r] < 0 {
					return fmt.Errorf("job %q: task %q asks for %d of %s", j.Name, t.ID, t.Requests[r], r)
				}
			}
		}
		if t.Role == cluster.Worker {
			workers++
		}
	}
	if j.MinWorkers != 0 || j.MaxWorkers != 0 {
		if j.MinWorkers < 1 || j.MinWorkers > workers || j.MaxWorkers < workers || j.MaxWorkers > maxWorkers {
			return fmt.Errorf("job %q: scales from %d to %d workers; it has %d, which must lie between, and 1..%d around both",
				j.Name, j.MinWorkers, j.MaxWorkers, workers, maxWorkers)
		}
	}
	return nil
}
