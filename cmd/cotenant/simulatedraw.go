package main

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
)

// drawn reads what jobs are drawn.
func (f *simulateFlags) drawn() (compare.Load, error) {
	l := compare.Load{Jobs: f.jobs, Load: f.load, Priorities: f.priorities}
	if f.durations != "" {
		low, high, ok := strings.Cut(f.durations, ":")
		var err1, err2 error
		l.Shortest, err1 = time.ParseDuration(low)
		l.Longest, err2 = time.ParseDuration(high)
		if !ok || err1 != nil || err2 != nil || l.Shortest <= 0 || l.Longest < l.Shortest {
			return l, wrongUse("--durations %s: give MIN:MAX, both above 0, such as 0.5h:53h", f.durations)
		}
	}
	var err error
	if l.Elastic, err = f.bounds(); err != nil || f.sizes == "" {
		return l, err
	}
	for part := range strings.SplitSeq(f.sizes, ",") {
		workers, share, ok := strings.Cut(part, ":")
		n, err1 := strconv.Atoi(strings.TrimSpace(workers))
		v, err2 := strconv.ParseFloat(share, 64)
		if !ok || err1 != nil || err2 != nil || n < 1 || n > 1<<16 || !(v > 0) || math.IsInf(v, 0) {
			return l, wrongUse("--sizes %s: %q is not WORKERS:SHARE, such as 4:0.15", f.sizes, part)
		}
		l.Sizes = append(l.Sizes, sim.Size{Workers: n, Share: v})
	}
	return l, nil
}

// bounds reads how far jobs may be scaled.
func (f *simulateFlags) bounds() (compare.Elastic, error) {
	var e compare.Elastic
	low, high, ok := strings.Cut(f.elastic, ":")
	var err1, err2 error
	e.Min, err1 = strconv.ParseFloat(low, 64)
	e.Max, err2 = strconv.ParseFloat(high, 64)
	if !ok || err1 != nil || err2 != nil || e.Check() != nil {
		return e, wrongUse("--elastic %s: give MIN:MAX, factors around 1, such as 0.5:2", f.elastic)
	}
	return e, nil
}
