package history

import (
	"slices"

	"github.com/cotenant/cotenant/cluster"
)

// AloneRates is how fast jobs run with nothing beside them: by class,
// workload, number of workers and how far apart those sit. It is immutable
// and safe for concurrent use.
type AloneRates struct {
	classes, workloads []string
	table              map[aloneKey][]sized
}

// aloneKey is a curve of rates over the number of workers.
type aloneKey struct {
	class, workload string
	apart           bool
}

// sized is the rate (of the whole job) with a number of workers.
type sized struct {
	workers int
	rate    float64
}

// NewAloneRates takes the rates alone out of samples: those whose co-location
// is the task by itself. Repeats are averaged. A rate of 0 is no rate: such
// samples are passed over, and the size counts as not measured. A single
// worker may sit apart from its parameter server; where it was measured at one
// span only, that rate counts for both.
func NewAloneRates(samples []Sample) *AloneRates {
	a := &AloneRates{table: map[aloneKey][]sized{}}
	type place struct {
		aloneKey
		workers int
	}
	sum, n := map[place]float64{}, map[place]float64{}
	for _, s := range samples {
		if s.Metric != Rate || !s.Colocation.Alone() || s.Value <= 0 {
			continue
		}
		a.classes = append(a.classes, s.Class)
		a.workloads = append(a.workloads, s.Workload)
		workers, repeats := max(s.Workers, 1), float64(max(s.Repeats, 1))
		p := place{aloneKey{s.Class, s.Workload, isApart(s.Span)}, workers}
		sum[p] += s.Value * repeats
		n[p] += repeats
	}
	for p, total := range sum {
		rate := sized{p.workers, total / n[p]}
		a.table[p.aloneKey] = append(a.table[p.aloneKey], rate)
		other := p
		other.apart = !p.apart
		if _, measured := sum[other]; p.workers == 1 && !measured {
			a.table[other.aloneKey] = append(a.table[other.aloneKey], rate)
		}
	}
	for _, curve := range a.table {
		slices.SortFunc(curve, func(x, y sized) int { return x.workers - y.workers })
	}
	slices.Sort(a.classes)
	slices.Sort(a.workloads)
	a.classes, a.workloads = slices.Compact(a.classes), slices.Compact(a.workloads)
	return a
}

// isApart says whether a job of that span counts as spread over servers.
func isApart(s cluster.Span) bool { return s == cluster.SpanRack || s == cluster.SpanApart }

// Classes lists the classes that have a rate, sorted. Don't change it.
func (a *AloneRates) Classes() []string { return a.classes }

// Workloads lists the workloads that have a rate on some class, sorted. Don't
// change it.
func (a *AloneRates) Workloads() []string { return a.workloads }

// Rate is the rate of a whole job alone, in the unit that the workload counts
// (steps/s), with its workers on one node (or device) or, for the spans rack
// and apart, on several.
//
// A size that was not measured is scaled from those that were, and scaled says
// so. Between two measured sizes the rate lies on the straight line between
// them; above the largest (and below the smallest) every worker goes as fast
// as in the nearest measured size. That is a model, not data: it knows nothing
// of the cost of communication beyond the largest size. ok is false where the
// workload has no rate on the class.
func (a *AloneRates) Rate(class, workload string, workers int, span cluster.Span) (rate float64, scaled, ok bool) {
	workers = max(workers, 1)
	curve := a.table[aloneKey{class, workload, isApart(span)}]
	if len(curve) == 0 {
		// Measured only at the other span: better than nothing, and no measurement.
		curve, scaled = a.table[aloneKey{class, workload, !isApart(span)}], true
	}
	if len(curve) == 0 {
		return 0, false, false
	}
	at, found := slices.BinarySearchFunc(curve, workers, func(s sized, n int) int { return s.workers - n })
	switch {
	case found:
		return curve[at].rate, scaled, true
	case at == 0:
		return curve[0].rate * float64(workers) / float64(curve[0].workers), true, true
	case at == len(curve):
		last := curve[at-1]
		return last.rate * float64(workers) / float64(last.workers), true, true
	}
	lo, hi := curve[at-1], curve[at]
	part := float64(workers-lo.workers) / float64(hi.workers-lo.workers)
	return lo.rate + part*(hi.rate-lo.rate), true, true
}

// Scale is the rate alone of a job of the given number of workers over that of
// one of own workers, each on its fastest class of those given, on one node.
// ok is false where the workload has no rate, and where the job would grow
// beyond the largest size measured: what comes of that is anybody's guess.
func (a *AloneRates) Scale(workload string, own, workers int, classes []string) (scale float64, ok bool) {
	before, after, largest := 0.0, 0.0, 0
	for _, c := range classes {
		if r, _, known := a.Rate(c, workload, own, cluster.SpanNode); known {
			before = max(before, r)
		}
		if r, _, known := a.Rate(c, workload, workers, cluster.SpanNode); known {
			after = max(after, r)
		}
		for _, apart := range []bool{false, true} {
			if curve := a.table[aloneKey{c, workload, apart}]; len(curve) > 0 {
				largest = max(largest, curve[len(curve)-1].workers)
			}
		}
	}
	if before == 0 || after == 0 || workers > own && workers > largest {
		return 0, false
	}
	return after / before, true
}

// Progress is a job's progress alone: its rate on the class, at its number of
// workers and span, over its rate on the fastest of the classes it may use,
// there on one node. It can pass 1, where a job is faster apart. Classes on
// which the workload has no rate are passed over; ok is false where class is
// one of them.
func (a *AloneRates) Progress(class, workload string, workers int, span cluster.Span, classes []string) (p float64, ok bool) {
	rate, _, ok := a.Rate(class, workload, workers, span)
	if !ok {
		return 0, false
	}
	var best float64
	for _, c := range classes {
		if r, _, known := a.Rate(c, workload, workers, cluster.SpanNode); known {
			best = max(best, r)
		}
	}
	if best == 0 {
		return 0, false
	}
	return rate / best, true
}
