package bound

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/internal/lp"
	"github.com/cotenant/cotenant/place"
)

// Options of a bound and of the policies that plan by it. The zero value is
// what one wants.
type Options struct {
	// Limit is the most options (additions to a node) to list; where there are
	// more, pricing is a beam search and the bound is not proven. 0 means
	// 400,000.
	Limit int
	// Pessimism k plans on Value - k*Std where the model predicts. A bound on
	// what the model says has 0.
	Pessimism float64
	// Measured leaves out every co-location with a predicted performance.
	Measured bool
	// Explain asks the policies for a reason in words for every binding.
	Explain bool
}

// Result is a bound.
type Result struct {
	// Bound is what no placement of all pending tasks can be better than, of
	// those in co-locations of which the model knows the performance, as
	// Objective is printed: for mean and worst no value is above it, for p99 and
	// nodes none is below.
	Bound float64
	// Proven is true where weak duality proves it: pricing saw every option.
	Proven bool
	// Options and Classes tell the size: options listed, classes of alike nodes.
	// About Silent of the options the model says nothing; what a placement with
	// one of them would reach, nobody knows.
	Options, Classes, Silent int
	// Pivots is the work of the linear program.
	Pivots int
}

// ErrInfeasible is wrapped by errors that say that the pending tasks cannot
// all be placed, in any way.
var ErrInfeasible = errors.New("no placement of all pending tasks exists")

// Compute bounds what any placement of all pending tasks can reach under the
// model. Co-locations about which the model is silent count as forbidden.
// Where the objective counts traffic, the traffic of a task in a rack of two
// nodes or more with tasks on other nodes counts as if all of it stayed in the
// rack: a bound, but not a tight one.
func Compute(req place.Request, m interference.Model, o Options) (Result, error) {
	p := prepare(req, m, o)
	s, err := solve(p, req)
	if err != nil {
		return Result{}, err
	}
	r := Result{Proven: s.proven, Classes: len(p.classes), Pivots: s.pivots}
	for _, sh := range p.shapes {
		r.Options += len(sh.parent)
		for _, v := range sh.value {
			if math.IsInf(v, -1) {
				r.Silent++
			}
		}
	}
	r.Bound = s.bound
	if p.trial.Values.Objective().Minimises() {
		r.Bound = -s.bound
	}
	return r, nil
}

func prepare(req place.Request, m interference.Model, o Options) *problem {
	if o.Limit == 0 {
		o.Limit = 400_000
	}
	if o.Measured {
		m = measuredOnly{m}
	}
	p := newProblem(place.NewTrial(req, m, o.Pessimism), o.Measured, o.Limit)
	p.list()
	return p
}

// solution is a solved relaxation.
type solution struct {
	q       *pricing
	lp      lp.Result
	bound   float64 // of the objective, higher is better
	proven  bool
	pivots  int
	atLeast float64
	levels  []float64   // the worst performances that occur, ascending
	prices  [][]float64 // by class and kind, at the optimum
	top     []float64   // by class: the best option at the prices
	start   []float64   // the spread rows before rounding
	divided int         // ways to divide two nodes tried in this improvement
	exact   bool        // and whether they are met exactly
	columns []column    // those that lp speaks of
}

// solve solves the relaxation. With weight on Worst the bound is the sum of
// two: the linear program without regard to it, and the highest performance
// that all tasks can have at once; tight where the objective is Worst alone.
func solve(p *problem, req place.Request) (*solution, error) {
	q := p.pricing()
	s := &solution{q: q}
	s.lp = q.solve(lp.Options{Stop: req.Stop})
	s.pivots = s.lp.Pivots
	if s.lp.Status == lp.Infeasible {
		return nil, p.infeasible()
	}
	s.bound, s.proven = q.certificate(s.lp.Dual)
	q.known = true
	o := p.trial.Values.Objective()
	if o.Worst > 0 {
		s.raiseWorst(req)
		s.bound += o.Worst * s.atLeast
	}
	if o.Mean == 0 && o.Worst == 0 && o.P99 == 0 && o.Traffic == 0 {
		// Nodes are whole.
		s.bound = -o.Nodes * math.Ceil(-s.bound/o.Nodes-1e-6)
	} else {
		// Rounding errors of the certificate's own sum.
		s.bound += 1e-12 * (1 + math.Abs(s.bound))
	}
	return s, nil
}

// raiseWorst finds, by bisection over the values that occur, the highest
// lowest performance at which the relaxation is feasible, and leaves the
// pricing there with the solution of highest Sum.
func (s *solution) raiseWorst(req place.Request) {
	var levels []float64
	for _, sh := range s.q.shapes {
		for i, w := range sh.worst {
			if !math.IsInf(w, 0) && !math.IsInf(sh.value[i], -1) {
				levels = append(levels, w)
			}
		}
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	if len(levels) == 0 {
		return
	}
	s.levels = levels
	low, high := 0, len(levels) // levels[low] is feasible: it allows all
	for high-low > 1 {
		mid := (low + high) / 2
		s.q.atLeast = levels[mid]
		r := s.q.solve(lp.Options{Stop: req.Stop})
		s.pivots += r.Pivots
		if r.Status == lp.Optimal {
			low = mid
			s.lp = r
		} else {
			high = mid
			s.proven = s.proven && r.Status == lp.Infeasible
		}
	}
	s.atLeast = levels[low]
	s.q.atLeast = levels[low]
}

// infeasible says which pending tasks cannot all be placed.
func (p *problem) infeasible() error {
	t := p.trial
	for k, n := range p.demand {
		if n == 0 {
			continue
		}
		name := t.Workloads()[t.Workload(k)]
		if p.silent(k) {
			what := "the model is silent about"
			if p.measured {
				what = "there is no measurement of"
			}
			return fmt.Errorf("%w: %s every co-location with a task of %s that its nodes could hold; measure some, or plan on a model that predicts them", ErrInfeasible, what, name)
		}
		room := 0
		for i := range p.classes {
			s := p.classes[i].shape
			most := 0
			for o := range s.parent {
				if int(s.kind[o]) == k && !math.IsInf(s.value[o], -1) {
					most = max(most, int(s.run[o]))
				}
			}
			room += most * len(p.classes[i].nodes)
		}
		if room < n {
			return fmt.Errorf("%w: at most %d of %d pending tasks of %s fit by the constraints; lower the number or relax the rules for %s",
				ErrInfeasible, room, n, name, name)
		}
	}
	for _, s := range p.shapes {
		for _, v := range s.value {
			if math.IsInf(v, -1) {
				return fmt.Errorf("%w: each workload fits by itself, but not all together in the co-locations that are measured or predicted; measure more, add nodes, or relax a constraint", ErrInfeasible)
			}
		}
	}
	return fmt.Errorf("%w: each workload fits by itself, but not all together; relax a constraint, add nodes, or place fewer tasks", ErrInfeasible)
}

// silent tells that options with a task of kind k exist and the model knows the
// value of none.
func (p *problem) silent(k int) bool {
	some := false
	for _, s := range p.shapes {
		for o := range s.parent {
			if int(s.kind[o]) != k {
				continue
			}
			some = true
			if !math.IsInf(s.value[o], -1) {
				return false
			}
		}
	}
	return some
}
