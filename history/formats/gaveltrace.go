package formats

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// TraceJob is a job of a trace: what it runs, how much of it, and when it
// came.
type TraceJob struct {
	// Name is unique in the trace: "job-12" is that of line 12, where the trace
	// names none.
	Name string `json:"name"`
	// Workload is what each worker runs; BatchSize its batch size, 0 where it
	// has none.
	Workload  string `json:"workload"`
	BatchSize int    `json:"batch_size,omitempty"`
	Workers   int    `json:"workers"`
	// Devices and Requests are of each worker.
	Devices  int               `json:"devices"`
	Requests cluster.Resources `json:"requests,omitempty"`
	// Classes are those that its devices must be of; none means any.
	Classes []string `json:"classes,omitempty"`
	// The work, in one of two forms: Steps of the whole job, or Seconds that it
	// ran. The other is 0.
	Steps   float64 `json:"steps,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	// Arrival counts from the trace's zero, in JSON in nanoseconds.
	Arrival time.Duration `json:"arrival"`
	// Weight is the job's weight among others, 1 where the trace has none. SLO is
	// its deadline as the trace has it, 0 where there is none.
	Weight float64 `json:"weight"`
	SLO    float64 `json:"slo,omitempty"`
	// Line is where the job stands in its file.
	Line int `json:"line"`
}

// Work is the job's work: the seconds it needs alone on the class, at its own
// number of workers, on one node. scaled says that no such size was measured
// (AloneRates.Rate); ok is false where the workload has no rate on the class.
// A trace that tells seconds is taken by its word.
func (j TraceJob) Work(rates *history.AloneRates, class string) (seconds float64, scaled, ok bool) {
	if j.Steps == 0 {
		return j.Seconds, false, true
	}
	rate, scaled, ok := rates.Rate(class, j.Workload, j.Workers, cluster.SpanNode)
	if !ok {
		return 0, false, false
	}
	return j.Steps / rate, scaled, true
}

// ReadGavelTrace reads a trace of Gavel's (OSDI 2020): a job a line, fields
// separated by tabs, no header. Two layouts exist:
//
//	job type, command, working directory, name of the steps argument, needs data directory (0/1),
//	total steps, workers, weight, SLO (-1 = none), arrival (s)
//	job type, command, name of the steps argument, needs data directory (0/1), total steps, arrival (s), workers
//
// A file keeps to one. Jobs come in order of arrival: one that stands after a
// later one is put in its place, and counted; strict, it is an error. Equal
// lines are two jobs. Options.Exclude leaves out families of workloads.
func ReadGavelTrace(r io.Reader, o Options) ([]TraceJob, Report, error) {
	o = o.withDefaults()
	in, err := unpack(r, o)
	if err != nil {
		return nil, Report{}, err
	}
	t := gavelTrace{reporter: newReporter(o, "line")}
	lines := lineReader{in: in, max: o.MaxRecord}
	for {
		line, err := lines.next()
		if err == io.EOF {
			break
		}
		if err != nil && !errors.Is(err, errLineTooLong) {
			return nil, t.Report, err
		}
		if err == nil && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var job TraceJob
		if err == nil {
			job, err = t.parse(line, lines.number)
		}
		if err != nil {
			if err := t.bad(lines.number, err); err != nil {
				return nil, t.Report, err
			}
			continue
		}
		if len(t.jobs) == o.MaxSamples {
			return nil, t.Report, t.fatal("%w: more than %d jobs; raise the limit if the file is sound", ErrTooLarge, o.MaxSamples)
		}
		t.duplicate(line)
		t.Read++
		if t.excludes(job.Workload) {
			t.excluded++
			continue
		}
		t.jobs = append(t.jobs, job)
	}
	if lines.open {
		t.warn("the last line has no end; if the file was cut off there, its last value may be too short")
	}
	return t.finish()
}

type gavelTrace struct {
	*reporter
	jobs     []TraceJob
	fields   int           // of a line: 7 or 10, as the first sound line has
	latest   time.Duration // arrival so far
	early    int           // jobs that stand after a later one
	excluded int
}

// Limits of what a job of a trace can be.
const (
	maxSteps  = 1e15
	maxWeight = 1e9
)

func (t *gavelTrace) parse(line []byte, number int) (TraceJob, error) {
	if !utf8.Valid(line) {
		return TraceJob{}, errors.New("is not UTF-8 text")
	}
	f := strings.Split(string(line), "\t")
	switch {
	case len(f) != 7 && len(f) != 10:
		return TraceJob{}, fmt.Errorf("%d fields between tabs, where a trace has 7 or 10", len(f))
	case t.fields != 0 && len(f) != t.fields:
		return TraceJob{}, fmt.Errorf("%d fields, where the lines above have %d", len(f), t.fields)
	}
	column := map[string]int{"job_type": 0, "needs_data_dir": 3, "total_steps": 4, "arrival_time": 5, "scale_factor": 6}
	if len(f) == 10 {
		column = map[string]int{
			"job_type": 0, "needs_data_dir": 4, "total_steps": 5, "scale_factor": 6, "priority_weight": 7, "SLO": 8, "arrival_time": 9,
		}
	}
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	get := func(name string) string { return f[column[name]] }
	model, err := parseGavelModel(get("job_type"))
	if err != nil {
		return TraceJob{}, &fieldError{"job_type", get("job_type"), err}
	}
	j := TraceJob{
		Name: "job-" + strconv.Itoa(number), Workload: model.workload, BatchSize: model.batch, Devices: 1, Weight: 1, Line: number,
	}
	if d := get("needs_data_dir"); d != "0" && d != "1" {
		return j, badField("needs_data_dir", d, "is neither 0 nor 1")
	}
	if j.Workers, err = parseWorkers(get("scale_factor")); err != nil {
		return j, &fieldError{"scale_factor", get("scale_factor"), err}
	}
	if j.Steps, err = traceNumber(get("total_steps"), maxSteps); err == nil && j.Steps == 0 {
		err = errors.New("is no work")
	}
	if err != nil {
		return j, &fieldError{"total_steps", get("total_steps"), err}
	}
	if j.Arrival, err = parseSeconds(get("arrival_time")); err != nil {
		return j, &fieldError{"arrival_time", get("arrival_time"), err}
	}
	if len(f) == 10 {
		if j.Weight, err = traceNumber(get("priority_weight"), maxWeight); err != nil {
			return j, &fieldError{"priority_weight", get("priority_weight"), err}
		}
		// -1 is the trace's way to say that there is none.
		if v, missing, err := parseNumber(get("SLO")); err != nil || missing || v != -1 {
			if j.SLO, err = traceNumber(get("SLO"), maxSteps); err != nil {
				return j, &fieldError{"SLO", get("SLO"), err}
			}
		}
	}
	if j.Arrival < t.latest {
		if t.Strict {
			return j, badField("arrival_time", get("arrival_time"), "is before that of a line above, %g", t.latest.Seconds())
		}
		t.early++
	}
	t.latest = max(t.latest, j.Arrival)
	t.fields = len(f)
	return j, nil
}

// traceNumber is a number from 0 to most that must be there.
func traceNumber(text string, most float64) (float64, error) {
	v, missing, err := parseNumber(text)
	switch {
	case err != nil:
		return 0, err
	case missing:
		return 0, errors.New("is no number")
	case v < 0:
		return 0, errors.New("is negative")
	case v > most:
		return 0, fmt.Errorf("is more than %g", most)
	}
	return v, nil
}

func (t *gavelTrace) finish() ([]TraceJob, Report, error) {
	if t.early > 0 {
		slices.SortStableFunc(t.jobs, func(a, b TraceJob) int { return cmp.Compare(a.Arrival, b.Arrival) })
		t.warn("jobs that arrive before one above them: %d; put in order of arrival", t.early)
	}
	if t.excluded > 0 {
		t.warn("jobs of the excluded %s: %d; left out", strings.Join(slices.Sorted(slices.Values(t.Exclude)), ", "), t.excluded)
	}
	report, err := t.done(len(t.jobs), "jobs")
	if err != nil {
		return nil, report, err
	}
	return t.jobs, report, nil
}
