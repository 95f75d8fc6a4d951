package interference

import (
	"github.com/cotenant/cotenant/internal/num"
)

// likelihood says how measurements fall around the truth. The tasks of one
// co-location were measured together, so most of what is wrong with one is
// wrong with all: whatever else the machine did in that minute slowed
// everybody. In the logarithm, for task t of co-location c,
//
//	measured = truth + shared[c] + own[c, t]
//
// where both errors have the heavy tails of a Student distribution. Networks
// that take every cell's error for its own chase the shared part; networks
// that know of it learn from the differences within a co-location, and get by
// with a third of the measurements.
//
// The gradient is that of the log-likelihood: a step of
// expectation-maximisation over the shared error and the weights that make a
// normal distribution a Student one (Lange, Little and Taylor, Robust
// statistical modeling using the t distribution, 1989). The variances are
// estimated along the way, from the residuals of each batch. Metrics share no
// error with each other: where rates fall, latencies rise.
type likelihood struct {
	outputs int       // by metric and workload, as in neural
	own     []float64 // variance, by class and output
	shared  []float64 // variance, by class and metric
	metrics int
	// Sums over a batch, to update the variances by.
	ownSum, ownCells, sharedSum, sharedRows []float64
}

const (
	// tails is the Student distribution's degrees of freedom.
	tails = 4
	// startVariance is that of an error of 3 %, leastVariance of .5 %: nobody
	// measures better, and a network that has learned its data by heart must not
	// think so.
	startVariance, leastVariance = 0.03 * 0.03, 0.005 * 0.005
	// forget is the weight of a batch's variance in the running mean.
	forget = 0.01
)

func newLikelihood(classes, metrics, outputs int) *likelihood {
	k := &likelihood{
		outputs: outputs, metrics: metrics,
		own: make([]float64, classes*outputs), shared: make([]float64, classes*metrics),
		ownSum: make([]float64, classes*outputs), ownCells: make([]float64, classes*outputs),
		sharedSum: make([]float64, classes*metrics), sharedRows: make([]float64, classes*metrics),
	}
	for i := range k.own {
		k.own[i] = startVariance
	}
	for i := range k.shared {
		k.shared[i] = startVariance
	}
	return k
}

// gradient replaces the outputs of a batch by the gradient of the negative
// log-likelihood of its measured cells, per cell, in units of startVariance.
func (k *likelihood) gradient(y num.Matrix, l *lesson, batch []int) {
	clear(k.ownSum)
	clear(k.ownCells)
	clear(k.sharedSum)
	clear(k.sharedRows)
	cells := 0
	width := k.outputs / k.metrics
	for i, r := range batch {
		for m := range k.metrics {
			from, to := m*width, (m+1)*width
			cells += k.row(y.Row(i)[from:to], l.y.Row(r)[from:to], l.scale.Row(r)[from:to], l.class[r], m)
		}
	}
	for i, n := range k.ownCells {
		if n > 0 {
			k.own[i] += forget * (max(k.ownSum[i]/n, leastVariance) - k.own[i])
		}
	}
	for i, n := range k.sharedRows {
		if n > 0 {
			k.shared[i] += forget * (max(k.sharedSum[i]/n, leastVariance) - k.shared[i])
		}
	}
	unit := float32(startVariance / float64(max(cells, 1)))
	for i := range y.Data {
		y.Data[i] *= unit
	}
}

// row does one metric of one co-location; it returns the cells measured.
// Scales of 0 mark those that were not.
func (k *likelihood) row(out, want, scale []float32, class, metric int) int {
	at := class*k.outputs + metric*len(out)
	own, shared := k.own[at:at+len(out)], k.shared[class*k.metrics+metric]
	cells := 0
	// The shared error as a normal distribution would have it, then with the
	// weights that follow from it.
	var mean, precision float64
	weight := 1.0
	for pass := range 2 {
		var sum float64
		precision, cells = weight/shared, 0
		for j, s := range scale {
			if s == 0 {
				continue
			}
			cells++
			e := float64(s) * float64(out[j]-want[j])
			p := 1 / own[j]
			if pass > 0 {
				p *= student((e - mean) * (e - mean) * p)
			}
			sum += p * e
			precision += p
		}
		if cells == 0 {
			clear(out)
			return 0
		}
		mean = sum / precision
		weight = student(mean * mean / shared)
	}
	for j, s := range scale {
		if s == 0 {
			out[j] = 0
			continue
		}
		d := float64(s)*float64(out[j]-want[j]) - mean
		k.ownSum[at+j] += min(d*d, 9*own[j]) + 1/precision
		k.ownCells[at+j]++
		out[j] = float32(float64(s) * student(d*d/own[j]) * d / own[j])
	}
	if cells > 1 { // one cell cannot tell its own error from a shared one
		k.sharedSum[class*k.metrics+metric] += min(mean*mean, 9*shared) + 1/precision
		k.sharedRows[class*k.metrics+metric]++
	}
	return cells
}

// student is the weight of an error whose square is z times its variance.
func student(z float64) float64 { return (tails + 1) / (tails + z) }
