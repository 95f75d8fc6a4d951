package formats

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// ReadTrace reads a trace of jobs in either format, told apart by content:
// openb's pods or Gavel's jobs.
func ReadTrace(r io.Reader, o Options) ([]TraceJob, Report, error) {
	o = o.withDefaults()
	in, err := unpack(r, o)
	if err != nil {
		return nil, Report{}, err
	}
	head, err := in.Peek(4 << 10)
	if err != nil && err != io.EOF {
		return nil, Report{}, err
	}
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \r\n"), []byte{'\n'})
	if bytes.Contains(line, []byte("creation_time")) {
		return ReadOpenbJobs(in, o)
	}
	return ReadGavelTrace(in, o)
}

// Job is the trace's job as the cluster sees it: a gang of workers named
// NAME/worker-0, NAME/worker-1, ... Its priority is the whole part of its
// weight.
func (j TraceJob) Job() cluster.Job {
	out := cluster.Job{Name: j.Name, Arrival: j.Arrival, Priority: int(j.Weight)}
	for i := range j.Workers {
		out.Tasks = append(out.Tasks, cluster.Task{
			ID: cluster.TaskID(fmt.Sprintf("%s/worker-%d", j.Name, i)), Workload: j.Workload, Role: cluster.Worker,
			Requests: j.Requests, Devices: j.Devices, BatchSize: j.BatchSize,
		})
	}
	return out
}

// Runnable is what a trace is held against before it is replayed.
type Runnable struct {
	// Rates, where not nil, must know each job's workload, on one of Classes.
	Rates   *history.AloneRates
	Classes []string
	// Devices is how many device slots the cluster has in all: a device that two
	// tasks may share has two. 0 does not bound the size of jobs.
	Devices int
}

// Check leaves out the jobs that cannot run: of unknown workloads, larger than
// the cluster, of a name that came before. As in every reader here they are
// counted and named, and with Options.Strict the first one is an error; Where
// and errors give the lines of the trace.
func (c Runnable) Check(jobs []TraceJob, o Options) ([]TraceJob, Report, error) {
	r := newReporter(o.withDefaults(), "line")
	names := make(map[string]bool, len(jobs))
	kept := make([]TraceJob, 0, len(jobs))
	for _, j := range jobs {
		if err := c.check(j, names); err != nil {
			if err := r.bad(j.Line, err); err != nil {
				return nil, r.Report, err
			}
			continue
		}
		names[j.Name] = true
		r.Read++
		kept = append(kept, j)
	}
	report, err := r.done(len(kept), "jobs that can run")
	if err != nil {
		return nil, report, err
	}
	return kept, report, nil
}

func (c Runnable) check(j TraceJob, names map[string]bool) error {
	switch need := float64(j.Workers) * float64(j.Devices); {
	case names[j.Name]:
		return badField("name", j.Name, "is that of a job above")
	case c.Devices > 0 && need > float64(c.Devices):
		return badField("workers", fmt.Sprint(j.Workers), "need %.0f devices, the cluster has room for %d tasks on its devices", need, c.Devices)
	case j.Steps == 0 && !(j.Seconds > 0) || math.IsInf(j.Seconds, 0):
		return badField("seconds", fmt.Sprint(j.Seconds), "is no work")
	}
	if c.Rates == nil || j.Steps == 0 {
		return nil
	}
	for _, class := range c.Classes {
		if _, _, ok := j.Work(c.Rates, class); ok {
			return nil
		}
	}
	if len(c.Classes) == 0 {
		return errors.New("no class to run on: name those of the cluster")
	}
	return badField("workload", j.Workload, "has no rate on %s", strings.Join(c.Classes, ", "))
}
