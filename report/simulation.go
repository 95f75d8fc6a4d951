package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"time"
)

// Simulation is what policies made of the same jobs, for WriteSimulation. NaN
// stands for an unknown number throughout; times are seconds.
type Simulation struct {
	Title   string
	Created time.Time
	// Command is the command line that made it, so that a reader can repeat it.
	Command string
	// Facts say what was run, and under which rules.
	Facts []Fact
	Seeds int
	// Bound is the lower bound / spread's mean JCT.
	Bound    float64
	Policies []Simulated
	// Workloads are those that BesideHours counts, by index.
	Workloads []string
	// True and Believed are the performance of workload [i] beside [j]: as it
	// is, and as the policies believed. Either may be nil.
	True, Believed [][]float64
	// Sharing says in words what jobs share: "a device".
	Sharing string
}

// Fact is a line of a description.
type Fact struct{ Name, Text string }

// Simulated is what one policy did.
type Simulated struct {
	Name string
	// Words say in one sentence what the policy does.
	Words string
	// Ratio is the mean over seeds of its mean JCT / spread's, Closed the share
	// of the gap between spread and the lower bound that it closes, each with a
	// standard error.
	Ratio, RatioError, Closed, ClosedError float64
	Mean, Median, P95, LongestWait         float64
	// JCTs are those of all jobs of all seeds, in any order.
	JCTs []float64
	// Queue is the number of jobs that wait, from each time on, in one run.
	Queue []QueueStep
	// Beside is how long tasks of two workloads ran beside each other in that
	// run.
	Beside []BesideHours
	// Error, where not empty, says what went wrong.
	Error string
}

// QueueStep is a length of the queue from a time on, in seconds.
type QueueStep struct {
	From   float64
	Queued int
}

// BesideHours is a pair of workloads, by index, and the hours of its tasks.
type BesideHours struct {
	A, B  int
	Hours float64
}

var (
	//go:embed simulation.html
	simulationHTML string
	//go:embed simulation.css
	simulationCSS string
)

var simulationPage = withParts("simulation", simulationHTML)

// WriteSimulation writes a comparison of policies as one HTML page, like
// Write: everything is escaped, and nothing is written if the page cannot be
// made.
func WriteSimulation(w io.Writer, s Simulation) error {
	var b bytes.Buffer
	if err := simulationPage.Execute(&b, newSimulationView(s)); err != nil {
		return fmt.Errorf("report %q: %w", s.Title, err)
	}
	if _, err := b.WriteTo(w); err != nil {
		return fmt.Errorf("report %q: %w", s.Title, err)
	}
	return nil
}
