package balance

import (
	"fmt"
	"math"
	"slices"
	"time"

	core "github.com/cotenant/cotenant/balance"
	"github.com/cotenant/cotenant/internal/num"
)

// Policies of RunCurves.
const (
	Equal        = "equal"        // the same for all, as far as limits allow
	Proportional = "proportional" // to each worker's speed in the last iteration
	Cotenant     = "cotenant"     // balance's GPU allocator
	Best         = "optimal"      // exact on the true curves
)

// Change swaps or slows a worker's curve from an iteration on.
type Change struct {
	Iteration int
	Worker    string
	Factor    float64 // on the times of its own curve; 0 with Like
	Like      string  // another worker, whose curve it gets
}

// Curves is a run on measured curves.
type Curves struct {
	Workers     []Curve
	GlobalBatch int
	Policy      string
	Iterations  int     // 300 where 0
	Noise       float64 // standard deviation of what is measured, relative
	Changes     []Change
	// Delay is how many iterations pass before reports are known: 0 means that
	// those of iteration k shape iteration k+1.
	Delay int
	Seed  uint64
	// Watch, where not nil, sees each iteration.
	Watch func(iteration int, sizes []int, ms, optimalMs float64)
}

// CurvesResult says how a run went. Times are those of the true curves: noise
// is in what the policy measures, not in what is counted.
type CurvesResult struct {
	Policy      string
	GlobalBatch int
	Seed        uint64
	Ms          []float64 // of each iteration
	OptimalMs   []float64 // the least possible in each iteration
	Settled     []int     // sizes of the last iteration before the first change
	Converged   int       // iterations until within 3 % of the optimum for good, up to the first change; -1 never
}

// RunCurves plays the iterations. It is an error if the curves cannot meet the
// global batch or the run is described wrongly.
func RunCurves(c Curves) (CurvesResult, error) {
	c.Iterations = c.iterations()
	if err := c.check(); err != nil {
		return CurvesResult{}, err
	}
	p, err := newSizer(c)
	if err != nil {
		return CurvesResult{}, err
	}
	rng := num.Rand(c.Seed, 0xc0)
	now := slices.Clone(c.Workers)
	best, bestMs, err := Optimal(now, c.GlobalBatch)
	if err != nil {
		return CurvesResult{}, err
	}
	r := CurvesResult{Policy: c.Policy, GlobalBatch: c.GlobalBatch, Seed: c.Seed}
	type measured struct {
		sizes []int
		ms    []float64
	}
	var waiting []measured
	for k := range c.Iterations {
		changed := false
		for _, ch := range c.Changes {
			if ch.Iteration == k {
				c.apply(ch, now)
				changed = true
			}
		}
		if changed {
			if best, bestMs, err = Optimal(now, c.GlobalBatch); err != nil {
				return CurvesResult{}, err
			}
		}
		if len(waiting) > c.Delay {
			if err := p.observe(k-1-c.Delay, waiting[0].sizes, waiting[0].ms); err != nil {
				return CurvesResult{}, err
			}
			waiting = waiting[1:]
		}
		sizes := p.next(k, best)
		m := measured{sizes: sizes}
		for i, s := range sizes {
			m.ms = append(m.ms, now[i].At(s)*math.Exp(c.Noise*rng.NormFloat64()))
		}
		waiting = append(waiting, m)
		ms := slowest(now, sizes)
		r.Ms, r.OptimalMs = append(r.Ms, ms), append(r.OptimalMs, bestMs)
		if k < c.firstChange() {
			r.Settled = sizes
		}
		if c.Watch != nil {
			c.Watch(k, sizes, ms, bestMs)
		}
	}
	r.Converged = c.converged(r)
	return r, nil
}

func (c Curves) iterations() int {
	if c.Iterations == 0 {
		return 300
	}
	return c.Iterations
}

func (c Curves) check() error {
	names := map[string]Curve{}
	for _, w := range c.Workers {
		names[w.Worker] = w
	}
	if c.Iterations < 0 || c.Delay < 0 || !(c.Noise >= 0) || c.Noise > 1 {
		return fmt.Errorf("iterations %d, delay %d and noise %v must not be negative, and noise at most 1", c.Iterations, c.Delay, c.Noise)
	}
	for _, ch := range c.Changes {
		if _, ok := names[ch.Worker]; !ok {
			return fmt.Errorf("change at iteration %d: no curve of worker %q", ch.Iteration, ch.Worker)
		}
		if like, ok := names[ch.Like]; ch.Like != "" && (!ok || like.Lo > names[ch.Worker].Lo || like.Hi() < names[ch.Worker].Hi()) {
			return fmt.Errorf("change at iteration %d: no curve of %q that reaches as far as that of %q", ch.Iteration, ch.Like, ch.Worker)
		}
		if ch.Like == "" && !(ch.Factor > 0 && ch.Factor <= 1000) {
			return fmt.Errorf("change at iteration %d: factor %v is not in (0, 1000]", ch.Iteration, ch.Factor)
		}
	}
	return nil
}

func (c Curves) apply(ch Change, now []Curve) {
	i := slices.IndexFunc(c.Workers, func(w Curve) bool { return w.Worker == ch.Worker })
	if ch.Like != "" {
		own := c.Workers[i]
		j := slices.IndexFunc(c.Workers, func(w Curve) bool { return w.Worker == ch.Like })
		like := c.Workers[j]
		now[i] = Curve{own.Worker, own.Lo, like.Ms[own.Lo-like.Lo : own.Hi()-like.Lo+1]}
		return
	}
	ms := slices.Clone(now[i].Ms)
	for k := range ms {
		ms[k] *= ch.Factor
	}
	now[i].Ms = ms
}

// converged is the first iteration from which on all, up to the first change,
// are within 3 % of the optimum.
func (c Curves) converged(r CurvesResult) int {
	end := min(len(r.Ms), c.firstChange())
	k := end
	for k > 0 && r.Ms[k-1] <= 1.03*r.OptimalMs[k-1] {
		k--
	}
	if k == end {
		return -1
	}
	return k
}

// firstChange is when a curve first changes after the start.
func (c Curves) firstChange() int {
	first := math.MaxInt
	for _, ch := range c.Changes {
		if ch.Iteration > 0 {
			first = min(first, ch.Iteration)
		}
	}
	return first
}

// sizer is a policy: it sees sizes and measured times, never a curve, but for
// the optimum, which only the policy of that name reads.
type sizer interface {
	observe(iteration int, sizes []int, ms []float64) error
	next(iteration int, optimum []int) []int
}

func newSizer(c Curves) (sizer, error) {
	workers := make([]core.Worker, len(c.Workers))
	for i, w := range c.Workers {
		workers[i] = core.Worker{Name: w.Worker, Min: w.Lo, Max: w.Hi()}
	}
	o := core.Options{GlobalBatch: c.GlobalBatch, Seed: c.Seed}
	switch c.Policy {
	case Equal:
		return newBalanced(workers, o, false)
	case Proportional:
		o.Predictor, o.Threshold = core.Last, -1
		return newBalanced(workers, o, true)
	case Cotenant:
		o.Allocator = core.GPU
		return newBalanced(workers, o, true)
	case Best:
		return oracle{}, nil
	}
	return nil, fmt.Errorf("policy %q is none of %s, %s, %s, %s", c.Policy, Equal, Proportional, Cotenant, Best)
}

// balanced runs the shipped Balancer; deaf, it stays with equal shares.
type balanced struct {
	b      *core.Balancer
	names  []string
	listen bool
}

func newBalanced(workers []core.Worker, o core.Options, listen bool) (sizer, error) {
	b, err := core.New(workers, o)
	if err != nil {
		return nil, err
	}
	s := &balanced{b: b, listen: listen}
	for _, w := range workers {
		s.names = append(s.names, w.Name)
	}
	return s, nil
}

func (s *balanced) observe(iteration int, sizes []int, ms []float64) error {
	if !s.listen {
		return nil
	}
	reports := make([]core.Report, len(sizes))
	for i, size := range sizes {
		reports[i] = core.Report{
			Worker: s.names[i], Generation: s.b.Generation(), Iteration: int64(iteration), BatchSize: size,
			Compute: time.Duration(ms[i] * float64(time.Millisecond)),
		}
	}
	return s.b.Observe(reports)
}

func (s *balanced) next(iteration int, _ []int) []int { return s.b.Next(int64(iteration)).BatchSizes }

type oracle struct{}

func (oracle) observe(int, []int, []float64) error { return nil }
func (oracle) next(_ int, optimum []int) []int     { return optimum }
