package formats

import (
	"cmp"
	"io"
	"slices"
)

// ReadOpenbJobs reads the pod list of Alibaba's trace gpu-v2023 (openb) as a
// trace of jobs: each pod is a job of one worker that came when it was created
// and ran from when it was scheduled until it was deleted. Jobs are in order
// of arrival, which the file is not. Pods that were never scheduled or ended
// when they began have no work, and are left out.
func ReadOpenbJobs(r io.Reader, o Options) ([]TraceJob, Report, error) {
	l, report, err := readOpenbPods(r, o)
	if err != nil {
		return nil, report, err
	}
	var jobs []TraceJob
	never, instant := 0, 0
	for _, p := range l.pods {
		switch {
		case p.Scheduled == nil:
			never++
			continue
		case p.Deleted <= *p.Scheduled:
			instant++
			continue
		}
		jobs = append(jobs, TraceJob{
			Name: string(p.Task.ID), Workload: p.Task.Workload, Workers: 1, Devices: p.Task.Devices, Requests: p.Task.Requests,
			Classes: p.Classes, Seconds: (p.Deleted - *p.Scheduled).Seconds(), Arrival: p.Created, Weight: 1, Line: p.Line,
		})
	}
	slices.SortStableFunc(jobs, func(a, b TraceJob) int { return cmp.Compare(a.Arrival, b.Arrival) })
	if never > 0 {
		l.warn("pods that were never scheduled: %d; no jobs, left out", never)
	}
	if instant > 0 {
		l.warn("pods that ended when they began, or before: %d; no jobs, left out", instant)
	}
	if l.early > 0 {
		l.warn("pods created before the pod above them: %d; put in order of arrival", l.early)
	}
	report, err = l.done(len(jobs), "jobs")
	if err != nil {
		return nil, report, err
	}
	return jobs, report, nil
}
