package cluster

import "time"

// Workload is a named program whose performance is measured.
type Workload struct {
	Name     string    `json:"name"`
	Requests Resources `json:"requests,omitempty"`
	Limits   Resources `json:"limits,omitempty"`
	// Edges lead to the workloads that this one exchanges traffic with.
	Edges []Edge `json:"edges,omitempty"`
}

// Edge is traffic to another workload.
type Edge struct {
	To string `json:"to"`
	// Weight is the relative amount of traffic; 0 means 1.
	Weight float64 `json:"weight,omitempty"`
}

// Amount is the edge's weight with its default.
func (e Edge) Amount() float64 {
	if e.Weight == 0 {
		return 1
	}
	return e.Weight
}

// Partners is how many tasks a task of workload from exchanges the edge's traffic
// with, where so many of workload To are there: not with itself.
func (e Edge) Partners(from string, there int) int {
	if e.To == from {
		there--
	}
	return max(0, there)
}

// TaskID names a task, unique in a cluster.
type TaskID string

// Task is one container of a workload.
type Task struct {
	ID       TaskID `json:"id"`
	Workload string `json:"workload"`
	Role     Role   `json:"role,omitempty"`
	// Requests, where not nil, override those of the workload.
	Requests Resources `json:"requests,omitempty"`
	// Devices is how many devices the task needs for itself or to share.
	Devices int `json:"devices,omitempty"`
	// BatchSize is a training task's batch size; 0 where it has none.
	BatchSize int `json:"batch_size,omitempty"`
}

// Group is the tasks placed in one decision.
type Group struct {
	Name string `json:"name"`
	// Gang groups are placed whole or not at all; others may be placed in part.
	Gang     bool          `json:"gang,omitempty"`
	Tasks    []Task        `json:"tasks"`
	Arrival  time.Duration `json:"arrival,omitempty"`
	Priority int           `json:"priority,omitempty"`
	// MinWorkers and MaxWorkers bound the workers that it may be placed with; both
	// 0 where that is those of Tasks.
	MinWorkers int `json:"min_workers,omitempty"`
	MaxWorkers int `json:"max_workers,omitempty"`
}

// Job is a training job: its tasks are a gang.
type Job struct {
	Name     string        `json:"name"`
	Tasks    []Task        `json:"tasks"`
	Arrival  time.Duration `json:"arrival,omitempty"`
	Priority int           `json:"priority,omitempty"`
	// MinWorkers and MaxWorkers bound what scaling may do; both 0 where the job
	// does not scale.
	MinWorkers int `json:"min_workers,omitempty"`
	MaxWorkers int `json:"max_workers,omitempty"`
}

// Group is the job's gang.
func (j Job) Group() Group {
	return Group{
		Name: j.Name, Gang: true, Tasks: j.Tasks, Arrival: j.Arrival, Priority: j.Priority,
		MinWorkers: j.MinWorkers, MaxWorkers: j.MaxWorkers,
	}
}

// Service is a long-running application of replicas of one workload.
type Service struct {
	Name     string `json:"name"`
	Workload string `json:"workload"`
	Replicas []Task `json:"replicas"`
	Priority int    `json:"priority,omitempty"`
}

// Group is the service's replicas, which may be placed in part.
func (s Service) Group() Group {
	return Group{Name: s.Name, Tasks: s.Replicas, Priority: s.Priority}
}

// Running is a task that runs on a node.
type Running struct {
	Task
	Node string `json:"node"`
	// Devices lists the indices in Node.Devices that the task uses.
	On []int `json:"on,omitempty"`
	// Movable tasks may be moved by a policy; others stay.
	Movable bool `json:"movable,omitempty"`
	// Group is the name of the group the task came in.
	Group string `json:"group,omitempty"`
	// Started is when the task began to run, so that a policy may know its age.
	Started time.Duration `json:"started,omitzero"`
	// Sizes is shared by the tasks of a job that may be scaled, nil for others.
	Sizes *Sizes `json:"sizes,omitempty"`
}
