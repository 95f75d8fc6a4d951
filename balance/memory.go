package balance

// memory is what was learned of a worker.
type memory struct {
	iteration int64   // of the last report; -1 before the first of a generation
	speed     float64 // samples a second, smoothed; 0 before the first
	fits      int     // the largest size that ran
	burst     int     // the least that ran out of memory; 0 before any did
	curve     curve
}

func newMemory() *memory { return &memory{iteration: -1} }

// take learns from a report that was checked.
func (m *memory) take(r Report) {
	if r.OutOfMemory {
		if r.BatchSize > 0 && (m.burst == 0 || r.BatchSize < m.burst) {
			m.burst = r.BatchSize
			m.fits = min(m.fits, m.burst-1)
		}
		return
	}
	if r.BatchSize == 0 {
		return
	}
	if m.fits = max(m.fits, r.BatchSize); m.burst > 0 && m.fits >= m.burst {
		m.burst = 0 // what once did not fit does now
	}
	v := float64(r.BatchSize) / r.Compute.Seconds()
	if m.speed == 0 {
		m.speed = v
	}
	m.speed += smoothing * (v - m.speed)
}

// smoothing of the moving average of speeds.
const smoothing = 0.3
