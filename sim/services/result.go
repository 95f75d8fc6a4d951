package services

import (
	"math"
	"time"
)

// Result is what came of a run, over the time after the warm-up where it is an
// average.
type Result struct {
	// Performance is the time-averaged performance of a running task: the
	// integral of the sum / the integral of the number of running tasks.
	Performance float64 `json:"performance"`
	// Served is the same over all wanted tasks: one that waits has performance 0.
	Served float64 `json:"performance_wanted"`
	// Running and Waiting are mean numbers of tasks; their sum is what is wanted.
	Running float64 `json:"mean_running"`
	Waiting float64 `json:"mean_waiting"`
	// MostWaiting is the highest number of waiting tasks.
	MostWaiting int `json:"most_waiting"`
	// Waited is the number of tasks that had to wait at all, of Arrived; MeanWait
	// is in seconds, over the tasks that were placed, MaxWait over all.
	Arrived  int     `json:"tasks_arrived"`
	Waited   int     `json:"tasks_waited"`
	MeanWait float64 `json:"mean_wait_s"`
	MaxWait  float64 `json:"max_wait_s"`

	// Over the whole run: Placed counts tasks, again for those that come back
	// from a failed node, and Displaced those.
	Events    int `json:"events"`
	Decisions int `json:"decisions"`
	Placed    int `json:"placed"`
	Moved     int `json:"moved"`
	Failures  int `json:"failures"`
	Displaced int `json:"displaced"`
	// Skewed is the share of time in which departures had left some workload
	// less even than its spread allows. That breaks no rule: no decision may make
	// it worse.
	Skewed float64 `json:"skewed"`
	// Violations is the number of decisions that broke a constraint, put more on a
	// node than it holds, or named what does not exist. A run with one fails: a
	// Result always has 0.
	Violations int `json:"violations"`

	Samples []Sample `json:"-"`
}

// Sample is what runs at a moment.
type Sample struct {
	At time.Duration
	// Tasks is how many run of each workload.
	Tasks map[string]int
	// Sum is the performance of all of them.
	Sum              float64
	Running, Waiting int
	// Worst is the lowest performance.
	Worst float64
	// Down lists the nodes that have failed, ascending.
	Down []int
	// Near is the mean near share of the tasks that run (place.NearShare), where
	// the objective counts traffic; 0 elsewhere.
	Near float64
}

// Near is the mean over the moments of their near shares, those left out at
// which there is none; NaN where that is all.
func (r *Result) Near() float64 {
	sum, n := 0.0, 0
	for _, s := range r.Samples {
		if !math.IsNaN(s.Near) {
			sum += s.Near
			n++
		}
	}
	return sum / float64(n)
}
