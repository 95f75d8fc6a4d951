package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cotenant/cotenant/cluster"
)

// jobsFile is what --jobs reads as YAML or JSON.
type jobsFile struct {
	Jobs []jobEntry `json:"jobs"`
}

// jobEntry is a job that waits. Zero values are the defaults: one worker of
// one device, no parameter servers.
type jobEntry struct {
	Name     string `json:"name"`
	Workload string `json:"workload"`
	Workers  int    `json:"workers"`
	// ParameterServers are of the workload WORKLOAD/ps.
	ParameterServers int `json:"parameter_servers"`
	// MinWorkers and MaxWorkers are how far it may be scaled (--scale); without
	// MaxWorkers it is not.
	MinWorkers int `json:"min_workers"`
	MaxWorkers int `json:"max_workers"`
	// Devices of each worker; nil means 1.
	Devices *int `json:"devices"`
	// Requests are of each worker, PSRequests of each parameter server; without,
	// those of the workload.
	Requests   quantities `json:"requests"`
	PSRequests quantities `json:"ps_requests"`
	// Arrival is a duration ("90s", "2h"), or seconds.
	Arrival  quantity `json:"arrival"`
	Priority int      `json:"priority"`
}

// maxGang bounds the tasks of a job in a file.
const maxGang = 1 << 16

// jobColumns are the columns of a CSV of jobs.
var jobColumns = []string{"name", "workload", "workers", "parameter_servers", "devices", "arrival", "priority", "min_workers", "max_workers"}

// readJobs reads the jobs that wait, in order of arrival.
func readJobs(in *inputs, file string) ([]cluster.Group, error) {
	data, err := in.text("jobs", file)
	if err != nil {
		return nil, err
	}
	what := "jobs " + file
	var entries []jobEntry
	var where []string
	if head, _, _ := bytes.Cut(data, []byte("\n")); bytes.Contains(head, []byte(",")) && bytes.Contains(head, []byte("workload")) &&
		!bytes.ContainsAny(head, "{[:") {
		entries, where, err = readJobTable(what, data)
	} else {
		var f jobsFile
		err = decodeStrict(what, data, &f)
		entries = f.Jobs
		for i, e := range entries {
			where = append(where, fmt.Sprintf("%s: jobs[%d] (%s)", what, i, e.Name))
		}
	}
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%s: no jobs; list them under \"jobs\", or as lines of a CSV with the columns %s", what, strings.Join(jobColumns, ", "))
	}
	var groups []cluster.Group
	seen := map[string]bool{}
	for i, e := range entries {
		if seen[e.Name] {
			return nil, fmt.Errorf("%s: listed before; names are unique", where[i])
		}
		seen[e.Name] = true
		g, err := e.group()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where[i], err)
		}
		groups = append(groups, g)
	}
	slices.SortStableFunc(groups, func(a, b cluster.Group) int { return int(max(-1, min(1, a.Arrival-b.Arrival))) })
	return groups, nil
}

func (e jobEntry) group() (cluster.Group, error) {
	devices := 1
	if e.Devices != nil {
		devices = *e.Devices
	}
	workers := max(e.Workers, 1)
	g := cluster.Group{Name: e.Name, Gang: true, Priority: e.Priority, MaxWorkers: e.MaxWorkers}
	if e.MaxWorkers > 0 {
		g.MinWorkers = max(e.MinWorkers, 1)
	}
	switch {
	case e.Name == "":
		return g, errors.New("no name")
	case e.Workload == "":
		return g, errors.New("no workload: name what its workers run")
	case e.Workers < 0 || e.ParameterServers < 0 || workers+e.ParameterServers > maxGang:
		return g, fmt.Errorf("%d workers and %d parameter servers; give 1 to %d tasks in all", e.Workers, e.ParameterServers, maxGang)
	case e.MaxWorkers == 0 && e.MinWorkers != 0 || e.MaxWorkers != 0 && (e.MinWorkers < 0 || max(e.MinWorkers, 1) > workers || e.MaxWorkers < workers || e.MaxWorkers > maxGang):
		return g, fmt.Errorf("min_workers %d, max_workers %d: its %d workers must lie between them; without max_workers it is not scaled", e.MinWorkers, e.MaxWorkers, workers)
	case devices < 0 || devices > 1024:
		return g, fmt.Errorf("%d devices for each worker; give 0 to 1024", devices)
	}
	var err error
	if g.Arrival, err = e.Arrival.time(); err != nil {
		return g, fmt.Errorf("arrival: %w", err)
	}
	requests, err := e.Requests.resources("requests")
	if err != nil {
		return g, err
	}
	psRequests, err := e.PSRequests.resources("ps_requests")
	if err != nil {
		return g, err
	}
	for i := range workers {
		g.Tasks = append(g.Tasks, cluster.Task{
			ID: cluster.TaskID(fmt.Sprintf("%s/worker-%d", e.Name, i)), Workload: e.Workload, Role: cluster.Worker, Devices: devices, Requests: requests,
		})
	}
	for i := range e.ParameterServers {
		g.Tasks = append(g.Tasks, cluster.Task{
			ID: cluster.TaskID(fmt.Sprintf("%s/ps-%d", e.Name, i)), Workload: e.Workload + "/ps", Role: cluster.ParameterServer, Requests: psRequests,
		})
	}
	return g, nil
}

// time reads a duration, or seconds, from 0 to a century.
func (q quantity) time() (time.Duration, error) {
	if q.text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(q.text)
	if err != nil {
		var seconds float64
		if seconds, err = strconv.ParseFloat(q.text, 64); err != nil || !(seconds >= 0 && seconds < 3.2e9) {
			return 0, fmt.Errorf("%q is neither a duration, such as 2h, nor a number of seconds", q.text)
		}
		d = time.Duration(seconds * float64(time.Second))
	}
	if d < 0 {
		return 0, fmt.Errorf("%q is negative", q.text)
	}
	return d, nil
}

func readJobTable(what string, data []byte) (entries []jobEntry, where []string, err error) {
	r := csv.NewReader(bytes.NewReader(data))
	r.TrimLeadingSpace = true
	header, err := r.Read()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", what, err)
	}
	for i, name := range header {
		header[i] = strings.TrimSpace(name)
		if !slices.Contains(jobColumns, header[i]) || slices.Contains(header[:i], header[i]) {
			return nil, nil, fmt.Errorf("%s: line 1: column %q; the columns are %s, each once, of which name and workload are needed", what, name, strings.Join(jobColumns, ", "))
		}
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return entries, where, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", what, err)
		}
		line, _ := r.FieldPos(0)
		at := fmt.Sprintf("%s: line %d", what, line)
		var e jobEntry
		for i, text := range record {
			text = strings.TrimSpace(text)
			var n int
			if text != "" && !slices.Contains([]string{"name", "workload", "arrival"}, header[i]) {
				if n, err = strconv.Atoi(text); err != nil {
					return nil, nil, fmt.Errorf("%s: %s: %q is not a whole number", at, header[i], text)
				}
			}
			switch header[i] {
			case "name":
				e.Name = text
			case "workload":
				e.Workload = text
			case "workers":
				e.Workers = n
			case "parameter_servers":
				e.ParameterServers = n
			case "devices":
				if text != "" {
					e.Devices = &n
				}
			case "arrival":
				e.Arrival.text = text
			case "priority":
				e.Priority = n
			case "min_workers":
				e.MinWorkers = n
			case "max_workers":
				e.MaxWorkers = n
			}
		}
		entries, where = append(entries, e), append(where, fmt.Sprintf("%s (%s)", at, e.Name))
	}
}
