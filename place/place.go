package place

import (
	"math/rand/v2"
	"time"

	"github.com/cotenant/cotenant/cluster"
)

// Request is all that a policy may know when it decides.
type Request struct {
	View *cluster.Snapshot
	// Pending are the groups to place, in arrival order.
	Pending   []cluster.Group
	Now       time.Duration
	Objective Objective
	// Expected is, for each workload, how many of its tasks will arrive within one
	// mean lifetime of a service, as far as the past tells; nil where unknown. In
	// a steady state that is the number of its tasks that run at a time.
	Expected map[string]float64
	// Rand is the only source of randomness; nil where the policy draws nothing.
	Rand *rand.Rand
	// Stop, where not nil, is asked between steps of a search: true means decide
	// with what you have. Deadlines and evaluation budgets are the caller's.
	Stop func() bool
}

// Stopped asks Stop, if there is one.
func (r Request) Stopped() bool { return r.Stop != nil && r.Stop() }

// Tasks lists the pending tasks of all groups in order.
func (r Request) Tasks() []cluster.Task {
	var tasks []cluster.Task
	for _, g := range r.Pending {
		tasks = append(tasks, g.Tasks...)
	}
	return tasks
}

// Decision is what a policy wants done. A pending task is in Bind or in Hold.
type Decision struct {
	Bind   []Binding `json:"bind"`
	Move   []Move    `json:"move,omitempty"`
	Resize []Resize  `json:"resize,omitempty"`
	Hold   []Hold    `json:"hold,omitempty"`
	Why    Reasons   `json:"why,omitempty"`
}

// Binding places a pending task.
type Binding struct {
	Task cluster.TaskID `json:"task"`
	Node string         `json:"node"`
	// Devices are indices in Node.Devices; empty where the task needs none.
	Devices []int `json:"devices,omitempty"`
}

// Move takes a running task to another node.
type Move struct {
	Task    cluster.TaskID `json:"task"`
	To      string         `json:"to"`
	Devices []int          `json:"devices,omitempty"`
}

// Resize scales a running job to a number of workers.
type Resize struct {
	Group   string `json:"group"`
	Workers int    `json:"workers"`
}

// Hold leaves a task pending, and says why in words.
type Hold struct {
	Task cluster.TaskID `json:"task"`
	Why  string         `json:"why"`
}

// Reasons explain bindings: what a policy weighed for each task.
type Reasons map[cluster.TaskID]Reason

// Reason is the account of one decision: one sentence, then the component
// scores that led to it, by name, higher is better.
type Reason struct {
	Words  string             `json:"words"`
	Scores map[string]float64 `json:"scores,omitempty"`
}

// Policy decides placements. The same Request and seed give the same Decision.
type Policy interface {
	Place(Request) (Decision, error)
}

// Observer is implemented by policies that learn online.
type Observer interface {
	Observe(Outcome)
}

// Outcome is what really happened to placed tasks.
type Outcome struct {
	Now time.Duration
	// View is the cluster while the performances held.
	View *cluster.Snapshot
	// Performance (or progress, for jobs) by task, as measured.
	Performance map[cluster.TaskID]float64
	// Finished lists groups that ended since the last Outcome.
	Finished []string
}
