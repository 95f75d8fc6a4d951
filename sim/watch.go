package sim

import (
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// showStretch calls Watch with the time from now to another instant.
func (r *run) showStretch(to time.Duration) {
	s := &r.stretch
	s.From, s.To, s.View, s.Queued = r.now, to, r.current, len(r.queue.jobs)
	s.Progress, s.Rate, s.Still = s.Progress[:0], s.Rate[:0], s.Still[:0]
	for _, t := range r.order {
		s.Progress = append(s.Progress, t.rate)
		s.Rate = append(s.Rate, t.job.rate)
		s.Still = append(s.Still, t.job.still)
	}
	r.Watch(*s)
}

// measure is what could be measured between now and another instant. Jobs that
// stood still showed nothing.
func (r *run) measure(to time.Duration) place.Outcome {
	o := place.Outcome{Now: to, View: r.current, Performance: make(map[cluster.TaskID]float64, len(r.order))}
	for _, t := range r.order {
		if t.job.still <= r.now {
			o.Performance[t.ID] = t.rate
		}
	}
	return o
}

// tell gives the observer what happened since it was last told.
func (r *run) tell() {
	if r.observer == nil || r.outcome.View == nil && len(r.finished) == 0 {
		return
	}
	if r.outcome.View == nil {
		r.outcome = place.Outcome{Now: r.now, View: r.current}
	}
	r.outcome.Finished = r.finished
	r.observer.Observe(r.outcome)
	r.outcome, r.finished = place.Outcome{}, nil
}
