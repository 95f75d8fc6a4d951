package balance

// Windows in which a run on curves is judged, in iterations.
const (
	FirstIterations = 30 // the start, when nothing is known
	SettledFrom     = 100
	RecoverIn       = 30 // after a change
	RecoverWindow   = 10
)

// Window is a part of a run, from one iteration to before another; empty where
// there are none.
type Window struct{ From, To int }

// Windows are the parts of a run that it is judged on.
type Windows struct {
	First   Window // when nothing is known
	Settled Window // from iteration 100 to the first change, or the end; of shorter runs the second half
	Back    Window // ten iterations from the 30th after the last change; empty where none changes
	After   Window // the rest of the run after those
}

// Windows are those of a run, however long it is.
func (c Curves) Windows() Windows {
	iterations, last := c.iterations(), -1
	end := iterations
	for _, ch := range c.Changes {
		if ch.Iteration > 0 && ch.Iteration < iterations {
			end = min(end, ch.Iteration)
			last = max(last, ch.Iteration)
		}
	}
	w := Windows{First: Window{0, min(FirstIterations, iterations)}, Settled: Window{min(SettledFrom, end/2), end}}
	if last >= 0 {
		back := min(last+RecoverIn, iterations)
		after := min(back+RecoverWindow, iterations)
		w.Back, w.After = Window{back, after}, Window{after, iterations}
	}
	return w
}

// Judged are ratios of a run's time to the least possible, by the windows; 0
// where a window is empty.
type Judged struct {
	First, Settled, Back, After float64
	MeanMs                      float64 // of an iteration in the window Settled
	OptimalMs                   float64 // the least possible there
}

// Judge gives the ratios of a run.
func (c Curves) Judge(r CurvesResult) Judged {
	w := c.Windows()
	j := Judged{First: r.ratio(w.First), Settled: r.ratio(w.Settled), Back: r.ratio(w.Back), After: r.ratio(w.After)}
	for k := w.Settled.From; k < w.Settled.To; k++ {
		j.MeanMs += r.Ms[k] / float64(w.Settled.To-w.Settled.From)
		j.OptimalMs += r.OptimalMs[k] / float64(w.Settled.To-w.Settled.From)
	}
	return j
}

// ratio is the time of a window's iterations by the least possible; 0 without any.
func (r CurvesResult) ratio(w Window) float64 {
	ms, best := 0.0, 0.0
	for k := w.From; k < w.To; k++ {
		ms += r.Ms[k]
		best += r.OptimalMs[k]
	}
	if best == 0 {
		return 0
	}
	return ms / best
}
