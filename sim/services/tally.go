package services

import "time"

// tally adds up what a Result averages.
type tally struct {
	sum, running, waiting float64 // integrals, in seconds
	seconds, skewed       float64
	most                  int

	arrived, waited int
	done            int
	wait            float64 // of those done, in seconds
	longest         time.Duration
}

func (t *tally) flow(s *Stretch, skewed bool) {
	dt := (s.To - s.From).Seconds()
	t.sum += s.Sum * dt
	t.running += float64(s.Running) * dt
	t.waiting += float64(s.Waiting) * dt
	t.seconds += dt
	if skewed {
		t.skewed += dt
	}
	t.most = max(t.most, s.Waiting)
}

// held counts a task that was not placed at once.
func (t *tally) held(counts bool) {
	if counts {
		t.waited++
	}
}

// placed counts a task that begins to run.
func (t *tally) placed(wait time.Duration, counts bool) {
	if counts {
		t.done++
		t.wait += wait.Seconds()
		t.longest = max(t.longest, wait)
	}
}

// gaveUp counts a task that left without having run since it began to wait.
func (t *tally) gaveUp(wait time.Duration, counts bool) {
	if counts {
		t.longest = max(t.longest, wait)
	}
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func (r *run) result() Result {
	t, out := &r.tally, r.out
	// What still waits has waited up to now.
	for _, w := range r.waiting {
		for _, k := range w.tasks {
			t.gaveUp(r.now-k.since, k.since >= r.Warmup)
		}
	}
	out.Performance = ratio(t.sum, t.running)
	out.Served = ratio(t.sum, t.running+t.waiting)
	out.Running, out.Waiting = ratio(t.running, t.seconds), ratio(t.waiting, t.seconds)
	out.MostWaiting = t.most
	out.Arrived, out.Waited = t.arrived, t.waited
	out.MeanWait, out.MaxWait = ratio(t.wait, float64(t.done)), t.longest.Seconds()
	out.Skewed = ratio(t.skewed, t.seconds)
	return out
}
