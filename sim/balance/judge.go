package balance

// Windows in which a run on curves is judged, in iterations.
const (
	FirstIterations = 30 // the start, when nothing is known
	SettledFrom     = 100
	RecoverIn       = 30 // after a change
	RecoverWindow   = 10
)

// Judged are ratios of a run's time to the least possible.
type Judged struct {
	First     float64 // the first 30 iterations together
	Settled   float64 // from iteration 100 to the first change, or the end
	MeanMs    float64 // of an iteration in that window
	OptimalMs float64 // the least possible there
	Back      float64 // ten iterations from the 30th after the last change; 0 where none changes
	After     float64 // the rest of the run after those
	Shares    []int
}

// Judge gives the ratios of a run. Runs shorter than the windows are judged on
// their second half.
func (c Curves) Judge(r CurvesResult) Judged {
	end, last := len(r.Ms), -1
	for _, ch := range c.Changes {
		if ch.Iteration > 0 && ch.Iteration < len(r.Ms) {
			end = min(end, ch.Iteration)
			last = max(last, ch.Iteration)
		}
	}
	from := min(SettledFrom, end/2)
	j := Judged{First: r.ratio(0, FirstIterations), Settled: r.ratio(from, end)}
	for k := from; k < end; k++ {
		j.MeanMs += r.Ms[k] / float64(end-from)
		j.OptimalMs += r.OptimalMs[k] / float64(end-from)
	}
	if last >= 0 {
		j.Back = r.ratio(last+RecoverIn, last+RecoverIn+RecoverWindow)
		j.After = r.ratio(last+RecoverIn+RecoverWindow, len(r.Ms))
	}
	return j
}

// ratio is the time of iterations from..to by the least possible; 0 without any.
func (r CurvesResult) ratio(from, to int) float64 {
	ms, best := 0.0, 0.0
	for k := from; k < min(to, len(r.Ms)); k++ {
		ms += r.Ms[k]
		best += r.OptimalMs[k]
	}
	if best == 0 {
		return 0
	}
	return ms / best
}
