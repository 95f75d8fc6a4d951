package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/sim"
)

// Trace is what became of the jobs of a trace in a World.
type Trace struct {
	Jobs []sim.Job
	// Report says which jobs were left out, and why.
	Report formats.Report
	// Scaled counts jobs of sizes that were not measured: their rate alone is
	// scaled by the rule of history.AloneRates.Rate.
	Scaled int
	// Drawn counts jobs whose workload was drawn; see TraceOptions.
	Drawn int
}

// TraceOptions steer FromTrace.
type TraceOptions struct {
	formats.Options
	// Draw gives jobs of workloads without a rate one of the world's, drawn by
	// Seed, and a worker for each device. What they request besides, and of which
	// class, is dropped. Jobs without devices are left out. It makes use of traces
	// that name no programs.
	Draw bool
	Seed uint64
	// Elastic bounds what scaling may do.
	Elastic Elastic
}

// FromTrace turns the jobs of a trace into jobs of the world. The work of a
// job is its steps over its rate alone on its fastest class in the cluster, or
// the seconds that the trace says. Jobs that cannot run are left out and
// reported; those larger than the cluster only where o.Strict makes them an
// error: the simulator refuses them by name.
func (w *World) FromTrace(list []formats.TraceJob, o TraceOptions) (Trace, error) {
	var out Trace
	if o.Draw {
		list = w.drawWorkloads(list, o.Seed, &out)
	}
	runnable := formats.Runnable{Rates: w.Alone, Classes: w.Classes()}
	if o.Strict {
		for i := range w.Nodes {
			for _, d := range w.Nodes[i].Devices {
				runnable.Devices += max(1, d.Slots)
			}
		}
	}
	kept, report, err := runnable.Check(list, o.Options)
	report.Warnings = append(out.Report.Warnings, report.Warnings...)
	report.Skipped += out.Report.Skipped
	out.Report = report
	if err != nil {
		return out, err
	}
	unknown := 0
	for _, t := range kept {
		best, scaled := 0.0, false
		for _, c := range w.Classes() {
			if r, s, ok := w.Alone.Rate(c, t.Workload, t.Workers, cluster.SpanNode); ok && r > best {
				best, scaled = r, s
			}
		}
		if best == 0 {
			unknown++
			continue
		}
		if scaled {
			out.Scaled++
		}
		job := sim.Job{Job: t.Job(), Work: t.Seconds}
		if w.TraceTasks != nil {
			job.Tasks = w.TraceTasks(t)
		}
		if t.Steps > 0 {
			job.Work = t.Steps / best
		}
		out.Jobs = append(out.Jobs, job)
	}
	if unknown > 0 {
		out.Report.Skipped += unknown
		out.Report.Warnings = append(out.Report.Warnings,
			fmt.Sprintf("jobs of workloads without a rate: %d; left out: let their workloads be drawn, or measure them", unknown))
	}
	out.Jobs = o.Elastic.apply(out.Jobs)
	if len(out.Jobs) == 0 {
		return out, fmt.Errorf("no job is left of %d", len(list))
	}
	return out, nil
}

func (w *World) drawWorkloads(list []formats.TraceJob, seed uint64, out *Trace) []formats.TraceJob {
	known, names := map[string]bool{}, w.Runnable()
	for _, name := range w.Alone.Workloads() {
		known[name] = true
	}
	r := rand.New(rand.NewPCG(seed, streamWorkloads))
	var kept []formats.TraceJob
	none := 0
	for _, t := range list {
		if known[t.Workload] {
			kept = append(kept, t)
			continue
		}
		if t.Devices == 0 {
			none++
			continue
		}
		t.Workload, t.BatchSize = names[r.IntN(len(names))], 0
		t.Workers, t.Devices, t.Requests, t.Classes = t.Workers*t.Devices, 1, nil, nil
		kept = append(kept, t)
		out.Drawn++
	}
	if none > 0 {
		out.Report.Skipped += none
		out.Report.Warnings = append(out.Report.Warnings, fmt.Sprintf("jobs that use no device: %d; left out", none))
	}
	return kept
}

// Like is a stream to draw that resembles jobs: their number, load, sizes and
// the bulk of their durations, on a cluster of that capacity (as Capacity has
// it). Policies for a trace are tuned on such streams.
func (w *World) Like(list []sim.Job) Load {
	l := Load{Jobs: min(len(list), 1000), Load: 0.9}
	if len(list) == 0 {
		return l
	}
	var works []float64
	sizes := map[int]float64{}
	offered, first, last := 0.0, list[0].Arrival, list[0].Arrival
	for i := range list {
		j := &list[i]
		workers := 0
		for _, t := range j.Tasks {
			if t.Role == cluster.Worker {
				workers++
			}
		}
		works = append(works, j.Work)
		sizes[workers]++
		offered += j.Work * float64(workers)
		first, last = min(first, j.Arrival), max(last, j.Arrival)
	}
	slices.Sort(works)
	at := func(q float64) time.Duration {
		return time.Duration(works[int(q*float64(len(works)-1))] * float64(time.Second))
	}
	l.Shortest, l.Longest = at(0.05), at(0.95)
	if span := (last - first).Seconds(); span > 0 {
		l.Load = math.Round(100*min(max(offered/span/w.Capacity(), 0.3), 1.3)) / 100
	}
	for workers := range sizes {
		l.Sizes = append(l.Sizes, sim.Size{Workers: workers, Share: sizes[workers]})
	}
	slices.SortFunc(l.Sizes, func(a, b sim.Size) int { return a.Workers - b.Workers })
	return l
}
