package balance

import (
	"math"
	"slices"
)

// cell is what was measured at one batch size.
type cell struct {
	Size int     `json:"size"`
	N    float64 `json:"n"`    // how many measurements its mean stands for
	Mean float64 `json:"mean"` // of the logarithm of seconds
}

// find is where the cell of a size is among ascending ones, or would be.
func find(cells []cell, size int) (at int, found bool) {
	return slices.BinarySearchFunc(cells, size, func(a cell, s int) int { return a.Size - s })
}

// curve is what is known of a worker's time by batch size; walk says how times
// at sizes that were not tried are guessed.
type curve struct {
	Cells []cell `json:"cells,omitempty"` // ascending
	// Old are the cells from before the last change. All of them are off by one
	// factor now, unless the new ones say otherwise.
	Old []cell `json:"old,omitempty"`
	// Shift is the logarithm of that factor, as it is believed now.
	Shift float64 `json:"shift,omitempty"`

	// Up and Down are the sums of Page's test for a change of the mean (CUSUM,
	// Biometrika 1954), UpRun and DownRun the measurements since each was 0.
	Up      float64 `json:"up,omitempty"`
	Down    float64 `json:"down,omitempty"`
	UpRun   int     `json:"up_run,omitempty"`
	DownRun int     `json:"down_run,omitempty"`
	// Recent are the latest measurements, of which those since a change make the
	// new curve.
	Recent []cell `json:"recent,omitempty"`

	// Squares and Free estimate the noise: squared deviations from the means of
	// cells, and how many of them are free.
	Squares float64 `json:"squares,omitempty"`
	Free    float64 `json:"free,omitempty"`

	// Mean and SD are the curve as it is believed now, at Lo, Lo+1, ... times Grain
	// samples: sizes in the thousands are told apart by more than one.
	Lo    int    `json:"lo,omitempty"`
	Grain int    `json:"grain,omitempty"`
	Mean  floats `json:"mean,omitempty"`
	SD    floats `json:"sd,omitempty"`
	// Step is the walk's step from each size to the next, Told how much of it the
	// cells tell: 0 nothing, 1 all.
	Step floats `json:"step,omitempty"`
	Told floats `json:"told,omitempty"`
	// Late: the worker has changed since the curve was learned.
	Late bool `json:"late,omitempty"`

	cautious *table // what timing made last with caution, and where its search ended
	hint     int
}

const (
	maxN      = 60 // measurements a cell stands for at most, so that it can drift
	maxRecent = 24
)

// Constants of the test for changes, in standard deviations of a measurement.
const (
	cusumDrift = 0.75
	cusumAlarm = 5.5
	cusumClip  = 4
)

// add takes in a measurement of a size, in seconds. True means that the worker
// has changed, and what was known before is old.
func (c *curve) add(size int, seconds, noise float64) (changed bool) {
	y := math.Log(seconds)
	c.Recent = append(c.Recent, cell{size, 1, y})
	if len(c.Recent) > maxRecent {
		c.Recent = append(c.Recent[:0], c.Recent[1:]...)
	}
	if c.test(size, y, noise) {
		c.restart(noise)
		return true
	}
	c.merge(size, y, noise)
	return false
}

// hiccup is how many standard deviations off a measurement is believed.
const hiccup = 3

func (c *curve) merge(size int, y, noise float64) {
	at, found := find(c.Cells, size)
	if !found {
		c.Cells = slices.Insert(c.Cells, at, cell{size, 1, y})
		return
	}
	m := &c.Cells[at]
	d := y - m.Mean
	// What is far off is a hiccup, or the first sign of a change: the test has
	// seen it, the mean takes it in as far as noise goes.
	if m.N >= 2 {
		d = min(max(d, -hiccup*noise), hiccup*noise)
	}
	c.Squares += d * d * m.N / (m.N + 1)
	c.Free++
	if c.Free > 200 {
		c.Squares /= 2
		c.Free /= 2
	}
	m.N = min(m.N+1, maxN)
	m.Mean += d / m.N
}

// test runs the test for a change with a measurement.
func (c *curve) test(size int, y, noise float64) bool {
	at := size/max(c.Grain, 1) - c.Lo
	if at < 0 || at >= len(c.Mean) {
		return false
	}
	sd := c.SD[at]
	z := (y - c.Mean[at]) / math.Sqrt(noise*noise+sd*sd)
	z = min(max(z, -cusumClip), cusumClip)
	c.Up, c.UpRun = max(0, c.Up+z-cusumDrift), c.UpRun+1
	c.Down, c.DownRun = max(0, c.Down-z-cusumDrift), c.DownRun+1
	if c.Up == 0 {
		c.UpRun = 0
	}
	if c.Down == 0 {
		c.DownRun = 0
	}
	return c.Up > cusumAlarm || c.Down > cusumAlarm
}

// restart makes the cells old but for the measurements since the change.
func (c *curve) restart(noise float64) {
	since := slices.Clone(c.Recent[max(0, len(c.Recent)-c.changed()):])
	for i := len(since) - 2; i >= 0; i-- { // the last was not taken in
		c.unmerge(since[i], noise)
	}
	c.Old = merged(c.Old, c.Shift, c.Cells)
	c.Cells = nil
	c.Up, c.Down, c.UpRun, c.DownRun = 0, 0, 0, 0
	c.Recent = since
	for _, m := range since {
		c.merge(m.Size, m.Mean, math.Inf(1))
	}
	// Until the curve is learned anew it is the old one, shifted.
	shift := 0.0
	for _, m := range since {
		shift += (m.Mean - c.Mean[c.index(m.Size)]) / float64(len(since))
	}
	c.Mean = slices.Clone(c.Mean)
	for k := range c.Mean {
		c.Mean[k] += shift
	}
	c.Late = true
	c.stale()
}

// changed is how many of the latest measurements the change is before: of the
// sum's run, which may have begun before it by chance, those that split it best
// into some around the curve and some around another level, in squares.
func (c *curve) changed() int {
	run := c.UpRun
	if c.Down > cusumAlarm {
		run = c.DownRun
	}
	run = min(run, len(c.Recent))
	best, most, sum := run, math.Inf(-1), 0.0
	for n := 1; n <= run; n++ {
		m := c.Recent[len(c.Recent)-n]
		sum += m.Mean - c.Mean[c.index(m.Size)]
		// How much less squares are around the mean of n than around the curve.
		if less := sum * sum / float64(n); less >= most {
			best, most = n, less
		}
	}
	return best
}

// index is where Mean has a size, or the next that it has.
func (c *curve) index(size int) int {
	return min(max(size/max(c.Grain, 1)-c.Lo, 0), len(c.Mean)-1)
}

// at is the believed time of a size in seconds.
func (c *curve) at(size int) float64 {
	if size == 0 {
		return 0
	}
	return math.Exp(c.Mean[c.index(size)])
}

// tried says whether a size was ever measured.
func (c *curve) tried(size int) bool {
	_, now := find(c.Cells, size)
	_, before := find(c.Old, size)
	return now || before
}

// unmerge takes a measurement out of its cell, as if merge had not been called.
func (c *curve) unmerge(m cell, noise float64) {
	at, found := find(c.Cells, m.Size)
	switch {
	case !found:
	case c.Cells[at].N < 2:
		c.Cells = slices.Delete(c.Cells, at, at+1)
	default:
		a := &c.Cells[at]
		d := (m.Mean - a.Mean) * a.N / (a.N - 1)
		if a.N > 2 {
			d = min(max(d, -hiccup*noise), hiccup*noise)
		}
		a.Mean -= d / a.N
		a.N--
	}
}

// merged are cells from before a change, shifted, and those since.
func merged(old []cell, shift float64, cells []cell) []cell {
	out := slices.Clone(cells)
	for _, m := range old {
		m.Mean += shift
		at, found := find(out, m.Size)
		if !found {
			out = slices.Insert(out, at, m)
			continue
		}
		a := &out[at]
		a.Mean = (a.Mean*a.N + m.Mean*m.N) / (a.N + m.N)
		a.N = min(a.N+m.N, maxN)
	}
	return out
}

// stale drops what was made of the curve.
func (c *curve) stale() {
	if c.cautious != nil {
		c.hint = c.cautious.hint
	}
	c.cautious = nil
}
