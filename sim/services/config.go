package services

import (
	"fmt"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/sim"
)

// Arrival is a group of replicas that somebody asks for, with what no policy
// knows: until when. It is the same whatever a policy does.
type Arrival struct {
	// Group is placed in part where it does not fit whole, unless it is a gang.
	// Group.Arrival is when it comes. Its tasks take the requests of their
	// workload, and no devices.
	cluster.Group
	// Until is when each task is no longer wanted, wherever it is: placed or
	// waiting. Never stands for the end of all days.
	Until []time.Duration
}

// Never is later than any horizon.
const Never = time.Duration(1<<63 - 1)

// Config is a run. Its fields are only read.
type Config struct {
	// Cluster has nodes, workloads and constraints; nothing runs in it yet.
	Cluster cluster.Spec
	// Arrivals, in any order. Those of one instant come one after the other, in
	// the order given, and the policy decides after each.
	Arrivals []Arrival
	// Truth is the performance of co-located tasks.
	Truth  interference.Model
	Policy place.Policy
	// Name is the policy's name in errors; "" means its type.
	Name string
	// Objective is handed to the policy; what is measured is performance.
	Objective place.Objective
	// Seed of the policy's Rand and of failures, which do not depend on the policy.
	Seed uint64

	// Horizon is when the run ends. What happens before Warmup does not count.
	Horizon, Warmup time.Duration
	// Lifetime is the mean lifetime of a service, in which Request.Expected
	// counts; 0 leaves that nil.
	Lifetime time.Duration

	// Migrate allows Decision.Move: the task has no performance for the cost. The
	// policy then decides at every change, with none pending too.
	Migrate sim.Price
	// MTBF is the mean time between failures of a node, exponential; 0 is never.
	// Its tasks wait again, and it takes none for Repair.
	MTBF, Repair time.Duration

	// Samples is at how many moments, evenly over what counts, Result.Samples
	// tells what runs.
	Samples int
	// Watch, where not nil, is called with each stretch of time.
	Watch func(Stretch)
	// Decided, where not nil, is called with each decision once it is carried out.
	// What happened to the cluster since the last call came through Watch. The
	// View, as policies see it, stands during the call only.
	Decided func(place.Request, place.Decision)
	// Memory, where not nil, keeps what the truth says from run to run.
	Memory *Memory
	// Stop, where not nil, is asked now and then; true ends the run with an error.
	// It is also the policy's Request.Stop.
	Stop func() bool
}

// Memory keeps what one truth said about co-locations, for runs with the same
// workloads; the zero value is empty. It is for one run at a time.
type Memory struct {
	workloads []string
	values    *place.Values
	parts     map[place.Config][]float64
}

// Stretch is a span of time in which nothing changed. Within warm-up or not is
// to be told from its times: no stretch reaches over Warmup.
type Stretch struct {
	From, To time.Duration
	// Sum is the performance of all tasks that run, added up; a task that is being
	// moved adds nothing.
	Sum float64
	// Running and Waiting are numbers of tasks.
	Running, Waiting int
}

func (c *Config) validate() error {
	switch {
	case c.Truth == nil:
		return fmt.Errorf("services: no truth; set Config.Truth")
	case c.Policy == nil:
		return fmt.Errorf("services: no policy; set Config.Policy")
	case len(c.Cluster.Nodes) == 0:
		return fmt.Errorf("services: no nodes")
	case len(c.Cluster.Running) > 0:
		return fmt.Errorf("services: %d tasks run already; a run begins with an empty cluster: let them arrive", len(c.Cluster.Running))
	case c.Horizon <= 0 || c.Horizon > longest:
		return fmt.Errorf("services: horizon %s; it must be more than 0 and at most %s", c.Horizon, longest)
	case c.Warmup < 0 || c.Warmup >= c.Horizon:
		return fmt.Errorf("services: warm-up of %s; it must be at least 0 and less than the horizon %s", c.Warmup, c.Horizon)
	case c.Samples < 0:
		return fmt.Errorf("services: %d samples", c.Samples)
	}
	for _, d := range []struct {
		name string
		time time.Duration
	}{
		{"lifetime", c.Lifetime},
		{"cost of a move", c.Migrate.Cost},
		{"mean time between failures", c.MTBF},
		{"time of repair", c.Repair},
	} {
		if d.time < 0 || d.time > longest {
			return fmt.Errorf("services: %s is %s; it must be from 0 to %s", d.name, d.time, longest)
		}
	}
	if err := c.LimitFailures(); err != nil {
		return fmt.Errorf("services: %w", err)
	}
	for i := range c.Arrivals {
		if err := c.Arrivals[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

// LimitFailures is an error where more than MaxFailures are to be expected.
func (c *Config) LimitFailures() error {
	if c.MTBF == 0 {
		return nil
	}
	failures := float64(len(c.Cluster.Nodes)) * float64(c.Horizon) / (float64(c.MTBF) + float64(c.Repair))
	if failures > MaxFailures {
		return fmt.Errorf("%d nodes that run for %s and are repaired in %s would fail some %.3g times in %s; at most %d: let them run longer, or shorten the horizon",
			len(c.Cluster.Nodes), c.MTBF, c.Repair, failures, c.Horizon, MaxFailures)
	}
	return nil
}

// longest bounds every time, so that sums of two do not overflow.
const longest time.Duration = 1 << 61

func (a *Arrival) validate() error {
	switch {
	case a.Name == "":
		return fmt.Errorf("services: a group that arrives at %s has no name", a.Arrival)
	case len(a.Until) != len(a.Tasks):
		return fmt.Errorf("group %q: %d times of leaving for %d tasks", a.Name, len(a.Until), len(a.Tasks))
	case a.Arrival < 0:
		return fmt.Errorf("group %q: arrives at %s; it must be at least 0", a.Name, a.Arrival)
	}
	for i, t := range a.Tasks {
		switch {
		case t.ID == "":
			return fmt.Errorf("group %q: task %d has no ID", a.Name, i)
		case t.Workload == "":
			return fmt.Errorf("group %q: task %q has no workload", a.Name, t.ID)
		case t.Requests != nil || t.Devices != 0:
			return fmt.Errorf("group %q: task %q has requests of its own; declare them for its workload", a.Name, t.ID)
		case a.Until[i] <= a.Arrival:
			return fmt.Errorf("group %q: task %q leaves at %s; it must be after it arrives, at %s", a.Name, t.ID, a.Until[i], a.Arrival)
		}
	}
	return nil
}
