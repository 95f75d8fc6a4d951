package sim

import (
	"slices"
	"time"
)

// State is what became of a job.
type State string

// The states of a job in a Result.
const (
	Finished   State = "finished"
	Unfinished State = "unfinished"
	Refused    State = "refused" // cannot fit the empty cluster
)

// JobResult is what became of a job.
type JobResult struct {
	Name     string `json:"name"`
	Workload string `json:"workload"` // of its first worker
	State    State  `json:"state"`
	// Why says in words why a job was refused or given up.
	Why     string        `json:"why,omitempty"`
	Arrival time.Duration `json:"arrival"`
	// Start is when it first ran; meaningless unless Started.
	Start    time.Duration `json:"start"`
	Finish   time.Duration `json:"finish"` // meaningless unless finished
	Started  bool          `json:"started"`
	Work     float64       `json:"work"`           // seconds
	Lost     float64       `json:"lost,omitempty"` // seconds of work done in vain
	Tasks    int           `json:"tasks"`          // of the gang as it came
	Workers  int           `json:"workers"`
	Moves    int           `json:"moves,omitempty"`   // decisions that moved a task of it
	Resizes  int           `json:"resizes,omitempty"` // while it ran
	Restarts int           `json:"restarts,omitempty"`
}

// JCT is the job completion time; 0 for a job that did not finish.
func (j *JobResult) JCT() time.Duration {
	if j.State != Finished {
		return 0
	}
	return j.Finish - j.Arrival
}

// Result is what a run came to. The statistics of JCT are over the jobs that
// finished, in seconds, 0 where none did: compare runs only where Unfinished
// is empty.
type Result struct {
	Jobs []JobResult `json:"jobs"` // in the order of Config.Jobs

	MeanJCT   float64 `json:"mean_jct_s"`
	MedianJCT float64 `json:"median_jct_s"`
	P95JCT    float64 `json:"p95_jct_s"`
	// MaxWait is the longest time from arrival to first start, or to the end of
	// the run for those that never started, in seconds.
	MaxWait float64 `json:"max_wait_s"`
	// Makespan is the time from the first arrival to the last finish, in seconds.
	Makespan float64 `json:"makespan_s"`
	// LowerBound is the mean work of the jobs that finished: no placement's mean
	// JCT is below it while progress is at most 1 and no job grows.
	LowerBound float64 `json:"lower_bound_s"`

	End time.Duration `json:"end"` // of the run
	// Events counts arrivals, finishes, failures and repairs; Decisions the calls
	// of the policy.
	Events    int `json:"events"`
	Decisions int `json:"decisions"`
	Moves     int `json:"moves,omitempty"`
	Resizes   int `json:"resizes,omitempty"`
	Restarts  int `json:"restarts,omitempty"`
	// Stale counts the jobs whose bindings, moves or resizes were refused since
	// they fitted only in the old view.
	Stale int `json:"stale,omitempty"`
	// Refused and Unfinished list jobs by name, in the order of Config.Jobs.
	Refused    []string `json:"refused,omitempty"`
	Unfinished []string `json:"unfinished,omitempty"`
	// Why says why the run ended with jobs unfinished.
	Why string `json:"why,omitempty"`
}

func (r *run) result() Result {
	out := r.out
	out.End = r.now
	out.Jobs = make([]JobResult, len(r.jobs))
	var jcts []time.Duration
	var sum, work float64
	first, last := never, time.Duration(0)
	for i, j := range r.jobs {
		res := &out.Jobs[i]
		*res = j.result
		first = min(first, res.Arrival)
		if res.State == "" {
			res.State = Unfinished
		}
		end := r.now
		switch {
		case res.Started:
			end = res.Start
		case res.State == Refused:
			end = res.Arrival
		}
		out.MaxWait = max(out.MaxWait, (end - res.Arrival).Seconds())
		switch res.State {
		case Refused:
			out.Refused = append(out.Refused, res.Name)
		case Unfinished:
			out.Unfinished = append(out.Unfinished, res.Name)
		case Finished:
			last = max(last, res.Finish)
			jcts = append(jcts, res.JCT())
			sum += res.JCT().Seconds()
			work += res.Work
		}
	}
	if len(out.Unfinished) == 0 {
		out.Why = ""
	}
	if n := len(jcts); n > 0 {
		slices.Sort(jcts)
		out.MeanJCT, out.LowerBound = sum/float64(n), work/float64(n)
		out.MedianJCT = (jcts[(n-1)/2].Seconds() + jcts[n/2].Seconds()) / 2
		out.P95JCT = jcts[(n*95+99)/100-1].Seconds()
		out.Makespan = (last - first).Seconds()
	}
	return out
}
