package compare

import (
	"math"

	"github.com/cotenant/cotenant/sim"
)

// Row is how one policy did over all seeds, held against spread seed by seed.
// Numbers are NaN where they cannot be told: no run, or runs that left jobs
// unfinished, of which the mean JCT means nothing.
type Row struct {
	Spec Spec
	// Ratio is the mean over seeds of mean JCT / spread's mean JCT, and RatioError
	// its standard error; NaN with one seed.
	Ratio, RatioError float64
	// Bound is the same ratio of the lower bound.
	Bound, BoundError float64
	// Closed is the share of the gap (spread - lower bound) that is closed, of
	// means over seeds, and ClosedError its standard error by the jackknife.
	Closed, ClosedError float64
	// MeanJCT, MedianJCT, P95JCT are means over seeds, in seconds; MaxWait is the
	// longest over all seeds, MaxWaitMean the mean over seeds of the longest.
	MeanJCT, MedianJCT, P95JCT, MaxWait, MaxWaitMean, Makespan float64
	// WaitRatio is the mean over seeds of the longest wait / spread's.
	WaitRatio float64
	// Decisions, Moves, Restarts and jobs Unfinished and Refused add up over seeds.
	Decisions, Moves, Restarts, Unfinished, Refused int
	Runs, Failed                                    int
}

// Rows sums up outcomes: a row for each policy, in their order. Spread must be
// among them for ratios to be known.
func Rows(outcomes []Outcome) []Row {
	spread := map[uint64]*sim.Result{}
	for i := range outcomes {
		if o := &outcomes[i]; o.Spec.Text == Spread && o.Err == nil && len(o.Result.Unfinished) == 0 {
			spread[o.Seed] = &o.Result
		}
	}
	var rows []Row
	for from := 0; from < len(outcomes); {
		to := from
		for to < len(outcomes) && outcomes[to].Spec.Text == outcomes[from].Spec.Text {
			to++
		}
		rows = append(rows, newRow(outcomes[from:to], spread))
		from = to
	}
	return rows
}

func newRow(outcomes []Outcome, spread map[uint64]*sim.Result) Row {
	r := Row{Spec: outcomes[0].Spec, Runs: len(outcomes)}
	var ratio, bound, wait, mean, median, p95, longest, makespan []float64
	var gained, gap []float64
	for i := range outcomes {
		o := &outcomes[i]
		if o.Err != nil {
			r.Failed++
			continue
		}
		x := &o.Result
		r.Decisions += x.Decisions
		r.Moves += x.Moves
		r.Restarts += x.Restarts
		r.Unfinished += len(x.Unfinished)
		r.Refused += len(x.Refused)
		mean, median, p95 = append(mean, x.MeanJCT), append(median, x.MedianJCT), append(p95, x.P95JCT)
		longest, makespan = append(longest, x.MaxWait), append(makespan, x.Makespan)
		r.MaxWait = max(r.MaxWait, x.MaxWait)
		s := spread[o.Seed]
		if s == nil || s.MeanJCT == 0 {
			continue
		}
		ratio, bound = append(ratio, x.MeanJCT/s.MeanJCT), append(bound, s.LowerBound/s.MeanJCT)
		gained, gap = append(gained, s.MeanJCT-x.MeanJCT), append(gap, s.MeanJCT-s.LowerBound)
		if s.MaxWait > 0 {
			wait = append(wait, x.MaxWait/s.MaxWait)
		}
	}
	r.MeanJCT, _ = meanError(mean)
	r.MedianJCT, _ = meanError(median)
	r.P95JCT, _ = meanError(p95)
	r.MaxWaitMean, _ = meanError(longest)
	r.Makespan, _ = meanError(makespan)
	r.Bound, r.BoundError = meanError(bound)
	r.WaitRatio, _ = meanError(wait)
	r.Ratio, r.RatioError = meanError(ratio)
	r.Closed, r.ClosedError = jackknife(gained, gap)
	if r.Unfinished > 0 || r.Failed > 0 {
		r.Ratio, r.RatioError, r.Closed, r.ClosedError = math.NaN(), math.NaN(), math.NaN(), math.NaN()
	}
	return r
}

// meanError is the mean and its standard error: NaN without values, the latter
// also with one.
func meanError(values []float64) (mean, standard float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	if n == 1 {
		return mean, math.NaN()
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(squares / (n - 1) / n)
}

// jackknife is the ratio of two sums and its standard error.
func jackknife(over, under []float64) (ratio, standard float64) {
	n := len(over)
	a, b := 0.0, 0.0
	for i := range over {
		a += over[i]
		b += under[i]
	}
	if b <= 0 {
		return math.NaN(), math.NaN()
	}
	if n < 2 {
		return a / b, math.NaN()
	}
	parts := make([]float64, n)
	center := 0.0
	for i := range over {
		parts[i] = (a - over[i]) / (b - under[i])
		center += parts[i] / float64(n)
	}
	squares := 0.0
	for _, p := range parts {
		squares += (p - center) * (p - center)
	}
	return a / b, math.Sqrt(squares * float64(n-1) / float64(n))
}
