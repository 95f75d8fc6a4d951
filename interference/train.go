package interference

import (
	"math"
	"sync"

	"github.com/cotenant/cotenant/internal/num"
)

// How the networks are trained. Found on one measured table by splits of the
// training part and not moved per data set.
const (
	ensemble  = 8
	batchRows = 64
	warmSteps = 50
	learnRate = 3e-3
)

// defaultSteps grows with the data, and decay, a prior that the function is
// smooth, gives way to it.
func defaultSteps(rows int) int { return min(1000+rows*3/4, 6000) }

func decay(rows int) float32 { return float32(0.3 * math.Sqrt(min(1, 1000/float64(rows)))) }

// reportSteps is how often Progress hears of a member.
const reportSteps = 50

// lesson is a dataset as the networks see it, one row a co-location.
type lesson struct {
	x, y num.Matrix
	// scale is the logarithm per unit of y; 0: not measured.
	scale num.Matrix
	class []int
	fold  []int // the member that does not see the row; -1: all see it
}

func fitNeural(d *dataset, want []int, o Options) *neural {
	n := &neural{space: d.space, metrics: want}
	n.encoder = d.newEncoder()
	n.standardise(d)
	l := n.lesson(d, o.Seed)
	n.members = make([]*network, ensemble)
	steps := o.Steps
	if steps <= 0 {
		steps = defaultSteps(len(d.rows))
	}
	tick := ticker(o.Progress, ensemble*(steps/reportSteps))
	o.parallel(ensemble, func(m int) {
		n.members[m] = l.train(newLikelihood(len(n.classes), len(want), n.outputs()), m, steps, o.Seed, tick)
	})
	n.calibrate(d, l)
	return n
}

// ticker makes Progress safe to call from several goroutines.
func ticker(progress func(done, total int), total int) func(steps int) {
	if progress == nil {
		return func(int) {}
	}
	var mu sync.Mutex
	done := 0
	return func(steps int) {
		mu.Lock()
		defer mu.Unlock()
		done += steps
		progress(done, total)
	}
}

func (d *dataset) newEncoder() encoder {
	e := encoder{workloads: len(d.workloads), classes: len(d.classes)}
	n := e.width()
	sum, sum2 := make([]float64, n), make([]float64, n)
	x := make([]float32, n)
	for _, r := range d.rows {
		e.raw(x, r.class, r.members)
		for i, v := range x {
			sum[i] += float64(v)
			sum2[i] += float64(v) * float64(v)
		}
	}
	rows := float64(len(d.rows))
	for i := range n {
		mean := sum[i] / rows
		sd := math.Sqrt(max(sum2[i]/rows-mean*mean, 0))
		if sd < 1e-3 { // a feature that never varies
			sd = 1
		}
		e.mean, e.scale = append(e.mean, float32(mean)), append(e.scale, float32(sd))
	}
	return e
}

// standardise finds the mean and the standard deviation of the logarithm of
// each output on each class.
func (n *neural) standardise(d *dataset) {
	size := len(n.classes) * n.outputs()
	sum, sum2, count := make([]float64, size), make([]float64, size), make([]float64, size)
	n.eachCell(d, func(_, at, _, _ int, v float64) {
		sum[at] += v
		sum2[at] += v * v
		count[at]++
	})
	n.mean, n.scale = make([]float32, size), make([]float32, size)
	for i := range size {
		n.scale[i] = 1
		if count[i] == 0 {
			continue
		}
		mean := sum[i] / count[i]
		n.mean[i] = float32(mean)
		// A few cells say little of their spread: a floor of 5 % keeps noise from
		// being blown up to size 1.
		n.scale[i] = float32(max(math.Sqrt(max(sum2[i]/count[i]-mean*mean, 0)), 0.05))
	}
}

// eachCell visits the measured cells: row, position in [class*outputs+output],
// output, member within the row, and the logarithm of the ratio.
func (n *neural) eachCell(d *dataset, f func(row, at, output, member int, v float64)) {
	for r, row := range d.rows {
		for k, m := range n.metrics {
			for j, o := range row.obs[m] {
				if o.measured {
					out := k*len(n.workloads) + row.members[j].workload
					f(r, row.class*n.outputs()+out, out, j, logRatio(o.value))
				}
			}
		}
	}
}

func (n *neural) lesson(d *dataset, seed uint64) *lesson {
	rows := len(d.rows)
	l := &lesson{
		x: num.New(rows, n.encoder.width()), y: num.New(rows, n.outputs()), scale: num.New(rows, n.outputs()),
		class: make([]int, rows), fold: make([]int, rows),
	}
	n.eachCell(d, func(r, at, out, _ int, v float64) {
		l.y.Row(r)[out] = (float32(v) - n.mean[at]) / n.scale[at]
		l.scale.Row(r)[out] = n.scale[at]
	})
	next := 0
	order := num.Rand(seed, 0).Perm(rows)
	for _, r := range order {
		n.encoder.encode(l.x.Row(r), d.rows[r].class, d.rows[r].members)
		l.class[r], l.fold[r] = d.rows[r].class, -1
		if d.rows[r].tasks() > 1 {
			l.fold[r] = next % ensemble
			next++
		}
	}
	return l
}

// train fits one member on every fold but its own.
func (l *lesson) train(errors *likelihood, member, steps int, seed uint64, tick func(int)) *network {
	net := newNetwork(l.x.Cols, l.y.Cols, seed, member)
	var rows []int
	for r, f := range l.fold {
		if f != member {
			rows = append(rows, r)
		}
	}
	rng := num.Rand(seed, 2, uint64(member))
	adam := num.NewAdam(net.params(), decay(len(rows)))
	size := min(batchRows, len(rows))
	full := newActivations(size, l.x.Cols, l.y.Cols, true)
	scratch := [2]num.Matrix{num.New(size, hidden), num.New(size, hidden)}
	at := len(rows)
	for step := range steps {
		if at+size > len(rows) {
			rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			at = 0
		}
		batch := rows[at : at+size]
		at += size
		for i, r := range batch {
			copy(full.x.Row(i), l.x.Row(r))
		}
		net.forward(full)
		errors.gradient(full.y, l, batch)
		net.backward(full, scratch)
		adam.Step(num.Cosine(learnRate, step, steps, warmSteps))
		if (step+1)%reportSteps == 0 {
			tick(1)
		}
	}
	return net
}

// leftOut is what the member that did not see a cell says of it.
type leftOut struct {
	row, member, metric int // metric: position in neural.metrics
	value               float64
	residual
}

// calibrate learns, from each member's residuals on its own fold, how far to
// trust the networks against kin, and the noise of both together.
func (n *neural) calibrate(d *dataset, l *lesson) {
	ys := make([]num.Matrix, ensemble)
	for m, net := range n.members {
		a := newActivations(len(l.fold), l.x.Cols, l.y.Cols, false)
		a.x = l.x
		net.forward(a)
		ys[m] = a.y
	}
	var left []leftOut
	n.eachCell(d, func(r, at, out, member int, v float64) {
		m := l.fold[r]
		if m < 0 {
			return
		}
		var sum, m2 float64
		for _, y := range ys {
			sum += float64(y.Row(r)[out])
		}
		for _, y := range ys {
			dev := float64(y.Row(r)[out]) - sum/ensemble
			m2 += dev * dev
		}
		scale := float64(n.scale[at])
		p := float64(n.mean[at]) + scale*float64(ys[m].Row(r)[out])
		left = append(left, leftOut{r, member, out / len(n.workloads), v, residual{
			group: d.rows[r].class*len(n.workloads) + out%len(n.workloads),
			p:     p, err: p - v, spread: scale * math.Sqrt(m2/(ensemble-1)),
		}})
	})
	n.blend(d, left)
	residuals := make([][]residual, len(n.metrics))
	for _, o := range left {
		residuals[o.metric] = append(residuals[o.metric], o.residual)
	}
	n.noise = make([]noise, len(n.metrics))
	for k := range n.metrics {
		n.noise[k] = fitNoise(residuals[k], len(n.classes)*len(n.workloads), d.shared(n.metrics[k]))
	}
}
