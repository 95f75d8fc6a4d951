package report

import (
	"time"

	"github.com/cotenant/cotenant/cluster"
)

// Data is everything that a report shows. Only what is given is shown; NaN
// stands for an unknown number throughout.
type Data struct {
	Title string
	// Created is when the report was made; not shown where zero.
	Created time.Time
	// Command is the command line that made it, so that a reader can repeat it.
	Command  string
	Measured Measured
	// Split says in words what the models learned from and what was held out.
	Split  string
	Models []Model
	Plan   Plan
	// Jobs are training jobs under several policies; nothing is shown of them
	// where it is nil.
	Jobs *Simulation
}

// Model is how well a kind of model predicts held-out co-locations.
type Model struct {
	Kind string
	// Runs has one entry a seed; the table shows their mean and spread.
	Runs []Run
	// Points are the held-out cells of the first run that the model answers.
	Points []Point
}

// Run is the error of one fitted model on the cells held out from it. Errors
// are relative: |predicted - measured| / measured.
type Run struct {
	Seed              uint64
	Train, HeldOut    int // co-locations
	Mean, Median, P95 float64
	// Answered is the share of held-out cells about which the model is not
	// silent, 0 to 1.
	Answered float64
	// Coverage is the share of held-out values inside the model's 90 %
	// interval; NaN where it gives none.
	Coverage float64
	Seconds  float64
}

// Point is one held-out cell: a workload in a co-location.
type Point struct {
	Colocation          cluster.Colocation
	Workload            string
	Measured, Predicted float64
}

// Plan is one batch of tasks placed by several policies.
type Plan struct {
	// Batch is the number of tasks by workload.
	Batch map[string]int
	Nodes int
	// Slots is the most tasks on a node; 0 where it is not one number.
	Slots     int
	Objective string
	// Minimises says that a lower value is better.
	Minimises bool
	// Sees and Judge say in words what the policies were given to decide by,
	// and what their decisions are valued by.
	Sees, Judge string
	Bound       Bound
	Policies    []Policy
}

// Bound is the limit on what any placement of the batch can reach.
type Bound struct {
	Value   float64 // NaN where none was computed
	Proven  bool
	Seconds float64
}

// Policy is what one policy made of the batch.
type Policy struct {
	Name string
	// Words say in one sentence what the policy does.
	Words string
	// Predicted is the value under what the policy saw, True the value as
	// judged; NaN where unknown.
	Predicted, True float64
	// Share is how much of the bound True reaches, at most 1.
	Share float64
	// Held is the number of tasks that were not placed.
	Held    int
	Seconds float64
	// Error, where not empty, says why there is no placement.
	Error string
	Nodes []Node
}

// Node is what a placement put on one node.
type Node struct {
	Name  string
	Class string
	Slots int // 0 where there is no limit
	// Tasks by workload.
	Tasks cluster.Colocation
	// Performance of each workload's tasks, as judged; no entry where unknown.
	Performance map[string]float64
}
