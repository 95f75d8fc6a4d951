package balance

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	core "github.com/cotenant/cotenant/balance"
	"github.com/cotenant/cotenant/internal/num"
)

// Schemes of Train.
const (
	BSP    = "bsp"    // equal batches, a barrier after each iteration
	ASP    = "asp"    // no barrier: each worker pushes and pulls when it is done
	SSP    = "ssp"    // no worker is more than Staleness iterations ahead (Ho et al., NIPS 2013)
	FlexRR = "flexrr" // BSP in which who is done takes over samples of who is behind (Harlap et al., SoCC 2016)
	LBBSP  = "lb-bsp" // BSP with batches sized by the shipped Balancer
)

// Schemes lists them in the order of the table.
func Schemes() []string { return []string{BSP, ASP, SSP, FlexRR, LBBSP} }

// Trace is one worker's speed over time.
type Trace struct {
	Worker string
	// Speed in samples a second, CPU and Memory use of the node, each for Step
	// seconds of virtual time; after the last it begins anew.
	Speed, CPU, Memory []float64
}

// Training is a run of SGD on simulated workers. All schemes see the same
// traces, the same samples in the same order of draws, and the same first
// weights.
type Training struct {
	Problem     Problem
	Scheme      string
	Traces      []Trace
	Step        float64 // seconds of virtual time of a value of the traces
	GlobalBatch int
	Rate        float64 // learning rate of the update with the mean gradient
	Communicate float64 // seconds for a worker to push and pull
	Overhead    float64 // seconds of an iteration that do not depend on the batch
	Staleness   int     // SSP; 3 where 0
	Samples     int     // to train on in all
	Predictor   string  // LBBSP
	Seed        uint64
	Points      int // of the curve of the loss; 100 where 0
}

// Point is the loss on all data at a time.
type Point struct {
	Seconds float64 `json:"seconds"`
	Samples int     `json:"samples"`
	Loss    float64 `json:"loss"`
}

// TrainResult says how a run went.
type TrainResult struct {
	Scheme     string
	Seed       uint64
	Seconds    float64 // for all samples
	Iterations int     // updates of the weights
	Idle       float64 // share of the workers' time spent waiting
	Shares     []int   // last batch sizes
	Curve      []Point
}

// TimeTo is when the loss was first at most a value; NaN if it never was.
func (r TrainResult) TimeTo(loss float64) float64 {
	for _, p := range r.Curve {
		if p.Loss <= loss {
			return p.Seconds
		}
	}
	return math.NaN()
}

// Diverged says that a run ended with a loss that is no number, or above the one
// that it began with: the learning rate is too high.
func (r TrainResult) Diverged() bool {
	return !(r.Curve[len(r.Curve)-1].Loss <= r.Curve[0].Loss)
}

// trainer is a run under way.
type trainer struct {
	Training
	weights []float64
	draws   *rand.Rand
	order   []int // what is left of this epoch's permutation
	result  TrainResult
	seen    int
	busy    float64 // seconds of computing, over workers
}

// Train runs the training in virtual time. It is an error if the run is
// described wrongly.
func Train(t Training) (TrainResult, error) {
	if t.Staleness == 0 {
		t.Staleness = 3
	}
	if t.Points == 0 {
		t.Points = 100
	}
	if err := t.check(); err != nil {
		return TrainResult{}, err
	}
	r := &trainer{Training: t, weights: t.Problem.Start(t.Seed), draws: num.Rand(t.Seed, 0xd4)}
	r.result = TrainResult{Scheme: t.Scheme, Seed: t.Seed}
	r.point(0)
	var err error
	switch t.Scheme {
	case BSP, FlexRR, LBBSP:
		err = r.barriers()
	case ASP:
		r.free(math.MaxInt)
	case SSP:
		r.free(t.Staleness)
	}
	return r.result, err
}

func (t Training) check() error {
	if !slices.Contains(Schemes(), t.Scheme) {
		return fmt.Errorf("scheme %q is none of %v", t.Scheme, Schemes())
	}
	if len(t.Traces) == 0 || t.GlobalBatch < len(t.Traces) || t.Samples < t.GlobalBatch || t.Problem == nil {
		return fmt.Errorf("%d workers, global batch %d, %d samples: every worker needs a sample an iteration", len(t.Traces), t.GlobalBatch, t.Samples)
	}
	if !(t.Step > 0) || !(t.Rate > 0) || !(t.Communicate >= 0) || !(t.Overhead >= 0) || t.Staleness < 0 {
		return fmt.Errorf("step %v and rate %v must be positive, communicate %v, overhead %v and staleness %d not negative", t.Step, t.Rate, t.Communicate, t.Overhead, t.Staleness)
	}
	for _, tr := range t.Traces {
		if len(tr.Speed) == 0 || len(tr.CPU) != len(tr.Speed) || len(tr.Memory) != len(tr.Speed) {
			return fmt.Errorf("trace of %q: %d speeds, %d CPU uses, %d memory uses: as many of each, at least one", tr.Worker, len(tr.Speed), len(tr.CPU), len(tr.Memory))
		}
		for _, v := range tr.Speed {
			if !(v > 0) || math.IsInf(v, 0) {
				return fmt.Errorf("trace of %q: speed %v is not positive", tr.Worker, v)
			}
		}
	}
	return nil
}

// at is the index of a trace's value at a time.
func (t Training) at(tr Trace, now float64) int { return int(now/t.Step) % len(tr.Speed) }

// finish is when a worker that starts a batch at a time is done with it: the
// integral of its speed.
func (t Training) finish(tr Trace, from float64, size float64) float64 {
	now := from + t.Overhead
	for size > 1e-9 {
		end := (math.Floor(now/t.Step) + 1) * t.Step
		v := tr.Speed[t.at(tr, now)]
		if now+size/v <= end {
			return now + size/v
		}
		size -= (end - now) * v
		now = end
	}
	return now
}

// take draws the next samples: each once an epoch.
func (r *trainer) take(n int) []int {
	out := make([]int, 0, n)
	for len(out) < n {
		if len(r.order) == 0 {
			r.order = r.draws.Perm(r.Problem.Len())
		}
		k := min(n-len(out), len(r.order))
		out = append(out, r.order[:k]...)
		r.order = r.order[k:]
	}
	return out
}

// point notes the loss if the time for a point has come.
func (r *trainer) point(now float64) {
	if due := len(r.result.Curve) * (r.Samples / r.Points); r.seen >= due || r.seen >= r.Samples {
		r.result.Curve = append(r.result.Curve, Point{now, r.seen, r.Problem.Loss(r.weights)})
	}
}

func (r *trainer) update(gradient []float64, scale float64) {
	for i, g := range gradient {
		r.weights[i] -= r.Rate * scale * g
	}
}

// equal are batch sizes as equal as can be.
func (t Training) equal() []int {
	sizes := make([]int, len(t.Traces))
	for i := range sizes {
		sizes[i] = t.GlobalBatch / len(sizes)
		if i < t.GlobalBatch%len(sizes) {
			sizes[i]++
		}
	}
	return sizes
}

// barriers runs the schemes in which all workers end an iteration together.
func (r *trainer) barriers() error {
	var b *core.Balancer
	if r.Scheme == LBBSP {
		workers := make([]core.Worker, len(r.Traces))
		for i, tr := range r.Traces {
			workers[i] = core.Worker{Name: tr.Worker, Min: 1}
		}
		var err error
		if b, err = core.New(workers, core.Options{GlobalBatch: r.GlobalBatch, Predictor: r.Predictor, Seed: r.Seed}); err != nil {
			return err
		}
	}
	sizes := r.equal()
	now := 0.0
	sum := make([]float64, len(r.weights))
	for k := int64(0); r.seen < r.Samples; k++ {
		if b != nil {
			sizes = b.Next(k).BatchSizes
		}
		done, ends := r.iteration(now, sizes)
		var reports []core.Report
		clear(sum)
		for i, tr := range r.Traces {
			r.Problem.Gradient(r.weights, r.take(sizes[i]), sum)
			r.busy += ends[i] - now
			if b != nil {
				at := r.at(tr, ends[i])
				reports = append(reports, core.Report{
					Worker: tr.Worker, Generation: b.Generation(), Iteration: k, BatchSize: sizes[i],
					Compute: time.Duration((ends[i] - now) * float64(time.Second)), CPU: tr.CPU[at], Memory: tr.Memory[at],
				})
			}
		}
		if b != nil {
			if err := b.Observe(reports); err != nil {
				return err
			}
		}
		now = done + r.Communicate
		// The sum over all samples / X: what weights of x_i / X make of the workers'
		// mean gradients.
		r.update(sum, 1/float64(r.GlobalBatch))
		r.seen += r.GlobalBatch
		r.result.Iterations++
		r.point(now)
	}
	r.result.Shares = slices.Clone(sizes)
	r.end(now)
	return nil
}

func (r *trainer) end(now float64) {
	r.result.Seconds = now
	r.result.Idle = 1 - r.busy/(now*float64(len(r.Traces)))
}

// iteration is when the last worker is done, and when each stops computing.
func (r *trainer) iteration(now float64, sizes []int) (done float64, ends []float64) {
	ends = make([]float64, len(sizes))
	if r.Scheme == FlexRR {
		return r.steal(now, sizes)
	}
	for i, tr := range r.Traces {
		ends[i] = r.finish(tr, now, float64(sizes[i]))
		done = max(done, ends[i])
	}
	return done, ends
}

// free runs the schemes without a barrier: each worker pushes the gradient of
// its batch, at the weights that it pulled when it began, and pulls. A worker
// waits while it is more than slack iterations ahead of the slowest.
func (r *trainer) free(slack int) {
	sizes := r.equal()
	n := len(sizes)
	clock := make([]int, n)
	local := make([][]float64, n)
	waiting := make([]bool, n)
	var events arrivals
	begin := func(i int, now float64) {
		local[i] = append(local[i][:0], r.weights...)
		end := r.finish(r.Traces[i], now, float64(sizes[i]))
		r.busy += end - now
		heap.Push(&events, arrival{end + r.Communicate, i})
	}
	for i := range n {
		begin(i, 0)
	}
	gradient := make([]float64, len(r.weights))
	now := 0.0
	for r.seen < r.Samples {
		e := heap.Pop(&events).(arrival)
		now = e.at
		clear(gradient)
		r.Problem.Gradient(local[e.worker], r.take(sizes[e.worker]), gradient)
		// As a part of the mean over the global batch, so that rates compare.
		r.update(gradient, 1/float64(r.GlobalBatch))
		r.seen += sizes[e.worker]
		r.result.Iterations++
		r.point(now)
		clock[e.worker]++
		waiting[e.worker] = true
		least := slices.Min(clock)
		for i := range n {
			if waiting[i] && clock[i]-least <= slack {
				waiting[i] = false
				begin(i, now)
			}
		}
	}
	r.result.Shares = sizes
	r.end(now)
}

type arrival struct {
	at     float64
	worker int
}

type arrivals []arrival

func (q arrivals) Len() int { return len(q) }
func (q arrivals) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].worker < q[j].worker
}
func (q arrivals) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *arrivals) Push(x any)   { *q = append(*q, x.(arrival)) }
func (q *arrivals) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
