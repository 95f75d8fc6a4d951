package balance

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Balancer decides the shares of one job. It is not safe for concurrent use.
type Balancer struct {
	options    Options
	workers    []Worker
	limits     []limits
	index      map[string]int // of a worker's name
	generation int64
	// known is what was learned of workers, the former ones too: who comes back
	// is most likely on the same machine.
	known map[string]*memory
	// sizes hold now; nil until the first Next of a generation.
	sizes []int
	// decided are the latest shares of this generation, ascending; asking for the
	// same iteration again gives the same vector.
	decided []Shares
	// fresh says that something was observed since the last decision.
	fresh      bool
	allocator  allocator
	forecaster *forecaster
	// untrained says that rows came which the predictors have not learned from.
	untrained bool
}

// allocator decides sizes from what is known of the workers. Current is nil at
// the start of a generation. The result must hold within the limits.
type allocator interface {
	allocate(b *Balancer, current []int, iteration int64) ([]int, error)
}

// maxDecided is how many past decisions can be asked for again.
const maxDecided = 64

// maxDuration bounds what a report can measure.
const maxDuration = 24 * time.Hour

// maxUse bounds CPU and memory use, in whatever unit: a petabyte in bytes.
const maxUse = 1e15

// New makes a Balancer for the first generation of a job. It is an error if
// the options or the workers are invalid, or if no vector within the limits
// sums to the global batch.
func New(workers []Worker, o Options) (*Balancer, error) {
	if o.Allocator == "" {
		o.Allocator = CPU
	}
	if o.Predictor == "" {
		o.Predictor = Auto
	}
	if o.Threshold == 0 {
		o.Threshold = DefaultThreshold
	}
	if math.IsNaN(o.Threshold) || o.Threshold >= 1 {
		return nil, fmt.Errorf("%w: threshold: %v is not a share of the iteration time below 1", ErrInvalid, o.Threshold)
	}
	b := &Balancer{options: o, known: map[string]*memory{}}
	b.options.Last = nil
	switch o.Allocator {
	case CPU, Federated:
		b.allocator = bySpeed{upload: o.Allocator == Federated}
	case GPU:
		b.allocator = &byGPU{}
	default:
		return nil, fmt.Errorf("%w: allocator: %q is none of %s, %s, %s", ErrInvalid, short(o.Allocator), CPU, GPU, Federated)
	}
	f, ok := newForecaster(o.Predictor, o.Seed)
	if !ok {
		return nil, fmt.Errorf("%w: predictor: %q is none of %s, %s, %s, %s, %s, %s", ErrInvalid, short(o.Predictor), Auto, Last, EMA, ARIMA, RNN, NARX)
	}
	b.forecaster = f
	if err := b.take(workers); err != nil {
		return nil, err
	}
	b.generation = 1
	if last := o.Last; last != nil {
		if last.Generation < 0 || last.Iteration < 0 {
			return nil, fmt.Errorf("%w: last: generation %d, iteration %d: negative", ErrInvalid, last.Generation, last.Iteration)
		}
		b.generation = max(last.Generation, 1)
		if holds(b.limits, last.BatchSizes, o.GlobalBatch) {
			b.sizes = slices.Clone(last.BatchSizes)
			b.decided = []Shares{{b.generation, last.Iteration, b.sizes}}
		} else {
			b.generation++
		}
	}
	return b, nil
}

// take checks workers and makes them the current ones.
func (b *Balancer) take(workers []Worker) error {
	all, err := checkAll(workers, b.options.GlobalBatch)
	if err != nil {
		return err
	}
	b.limits = all
	b.workers = make([]Worker, len(workers))
	b.index = make(map[string]int, len(workers))
	for i, w := range workers {
		w.Buckets = slices.Clone(w.Buckets)
		b.workers[i] = w
		b.index[w.Name] = i
		if b.known[w.Name] == nil {
			b.known[w.Name] = newMemory()
		}
	}
	b.forecaster.complete() // of those who leave, too
	b.forecaster.all = b.forecaster.all[:0]
	for _, w := range b.workers {
		b.forecaster.all = append(b.forecaster.all, b.known[w.Name])
	}
	return nil
}

// Change begins a new generation: workers died, joined, or have other limits.
// What is known of workers is kept by their names. On an error the old
// generation stays.
func (b *Balancer) Change(workers []Worker) error {
	if err := b.take(workers); err != nil {
		return err
	}
	b.generation++
	b.sizes, b.decided, b.fresh = nil, nil, true
	if g, ok := b.allocator.(*byGPU); ok {
		*g = byGPU{Studied: g.Studied} // who is new has a curve to learn
	}
	b.forget()
	for _, w := range b.workers {
		b.known[w.Name].Iteration = -1
	}
	return nil
}

// forget drops former workers when there are many more than current ones.
func (b *Balancer) forget() {
	if len(b.known) <= 2*len(b.workers)+256 {
		return
	}
	for name := range b.known { // deletes all that match, in any order
		if _, current := b.index[name]; !current {
			delete(b.known, name)
		}
	}
}

// Generation is the number of the current membership.
func (b *Balancer) Generation() int64 { return b.generation }

// Workers are the current ones, in the order of the shares.
func (b *Balancer) Workers() []Worker { return slices.Clone(b.workers) }

// Options are those of New, with defaults filled in.
func (b *Balancer) Options() Options { return b.options }

// Observe takes reports in, of one iteration or of several, of all workers or
// of some. Reports that are refused, each with an error of its own in the
// joined result, do not keep the others out.
func (b *Balancer) Observe(reports []Report) error {
	return errors.Join(b.ObserveEach(reports)...)
}

// Learn trains the predictors, and learns the curves of many workers, on what was observed. Observe does so first, if
// it was not done since the last; calling it after Next, when the shares are
// out, keeps training off the way from the last report to the shares. It
// changes nothing about what is decided.
func (b *Balancer) Learn() {
	if !b.untrained {
		return
	}
	b.untrained = false
	if g, ok := b.allocator.(*byGPU); ok {
		g.study(b)
		return
	}
	b.forecaster.learn()
}

func (b *Balancer) observe(r Report, noise float64) error {
	_, ok := b.index[r.Worker]
	switch {
	case r.Generation != b.generation:
		return fmt.Errorf("report of %q, iteration %d: %w: %d, the current one is %d", short(r.Worker), r.Iteration, ErrStale, r.Generation, b.generation)
	case !ok:
		return fmt.Errorf("report of iteration %d: %w %q: generation %d has no such name", r.Iteration, ErrUnknownWorker, short(r.Worker), b.generation)
	}
	if err := r.check(); err != nil {
		return fmt.Errorf("report of %q, iteration %d: %w", short(r.Worker), r.Iteration, err)
	}
	m := b.known[r.Worker]
	if r.Iteration <= m.Iteration {
		return fmt.Errorf("report of %q, iteration %d: %w, up to iteration %d", short(r.Worker), r.Iteration, ErrDuplicate, m.Iteration)
	}
	m.Iteration = r.Iteration
	b.fresh = true
	if !m.take(r) {
		return nil
	}
	b.untrained = true
	if g, ok := b.allocator.(*byGPU); ok && m.Curve.add(r.BatchSize, r.Compute.Seconds(), noise) {
		g.Since, g.Spent, g.Again = 0, 0, true
	}
	return nil
}

// check refuses what no measurement gives.
func (r Report) check() error {
	bad := func(field string, value any, why string) error {
		return fmt.Errorf("%w: %s: %v %s", ErrInvalid, field, value, why)
	}
	use := func(field string, v float64) error {
		if math.IsNaN(v) || v < 0 || v > maxUse {
			return bad(field, v, "is no use of a resource; leave it 0 where it is not measured")
		}
		return nil
	}
	switch {
	case r.Iteration < 0:
		return bad("iteration", r.Iteration, "is negative")
	case r.BatchSize < 0 || r.BatchSize > maxBatch:
		return bad("batch size", r.BatchSize, "is no batch size")
	case r.Compute < 0 || r.Compute > maxDuration:
		return bad("compute", r.Compute, "is no time of an iteration")
	case r.Compute == 0 && r.BatchSize > 0 && !r.OutOfMemory:
		return bad("compute", r.Compute, fmt.Sprintf("for a batch of %d: nothing is that fast", r.BatchSize))
	case r.Communicate < 0 || r.Communicate > maxDuration:
		return bad("communicate", r.Communicate, "is no time of an iteration")
	}
	if err := use("cpu", r.CPU); err != nil {
		return err
	}
	return use("memory", r.Memory)
}

// Next decides the shares of an iteration from all that was observed. They
// hold until other shares do. Asked again for an iteration, or for one before
// the last, it gives what it decided then.
func (b *Balancer) Next(iteration int64) Shares {
	if n := len(b.decided); n > 0 && iteration <= b.decided[n-1].Iteration {
		i := n - 1
		for i > 0 && b.decided[i].Iteration > iteration {
			i--
		}
		return b.decided[i].clone()
	}
	if b.sizes == nil || b.fresh {
		b.fresh = false
		sizes, err := b.allocator.allocate(b, b.sizes, iteration)
		if err != nil || !holds(b.limits, sizes, b.options.GlobalBatch) {
			if sizes = b.sizes; sizes == nil {
				sizes = b.equal()
			}
		}
		b.sizes = sizes
	}
	s := Shares{b.generation, iteration, b.sizes}
	if len(b.decided) == maxDecided {
		b.decided = append(b.decided[:0], b.decided[1:]...)
	}
	b.decided = append(b.decided, s)
	return s.clone()
}

func (s Shares) clone() Shares {
	s.BatchSizes = slices.Clone(s.BatchSizes)
	return s
}

// equal are the shares of workers of which nothing is known.
func (b *Balancer) equal() []int {
	n := len(b.workers)
	sizes, err := proportional(b.limits, ones(n), make([]float64, n), b.options.GlobalBatch)
	if err != nil {
		return b.sizes // excluded by checkAll, which has solved this very problem
	}
	return sizes
}
