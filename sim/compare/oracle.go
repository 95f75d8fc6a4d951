package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/sim"
)

// oracle is greedy, with the truth itself in place of a belief: for worlds of
// which no table of co-locations can hold the truth. Like greedy it tries a
// gang task by task over the whole cluster and on each node alone, and takes
// what adds most to the sum of progress as the truth has it.
type oracle struct {
	truth sim.Truth
	board *jobs.Board
	// threshold is the least gain for which a gang is placed.
	threshold float64

	gang    int // that plan is for
	plan    map[int32]int
	why     jobs.Refusal
	added   []cluster.Running
	touched []cluster.TaskID
	workers map[string]float64
}

func newOracle(o making, truth sim.Truth) (place.Policy, error) {
	p := &oracle{truth: truth, board: jobs.NewBoard(o.speeds), threshold: math.Inf(-1), workers: map[string]float64{}}
	params, err := oracleParams(o.spec.Name)
	if err != nil {
		return nil, err
	}
	for _, param := range params {
		p.threshold = param.Default
	}
	for key, v := range o.values {
		if len(params) == 0 || key != params[0].Key || !(v >= params[0].Low && v <= params[0].High) {
			return nil, fmt.Errorf("policy %s: on the truth of this world there is no parameter %s=%g", o.spec.Text, key, v)
		}
		p.threshold = v
	}
	p.board.Explain = o.explain
	return p, nil
}

// oracleParams are what can be tuned of greedy and greedy-wait where they ask
// the truth itself: the threshold alone.
func oracleParams(name string) ([]jobs.Param, error) {
	all, err := jobs.Params(name, nil, false)
	return slices.DeleteFunc(all, func(p jobs.Param) bool { return p.Key != "threshold" }), err
}

// Place implements place.Policy.
func (p *oracle) Place(req place.Request) (place.Decision, error) {
	p.board.Reset(req)
	p.gang = -1
	p.board.Place(p)
	return p.board.Decision(), nil
}

// Choose implements jobs.Chooser: at the first task of a gang it plans all.
func (p *oracle) Choose(b *jobs.Board, t int) (site int, why jobs.Refusal) {
	if g := b.GangOf(t); g != p.gang || b.Tasks(g)[0] == int32(t) {
		p.gang = g
		p.why = p.planGang(b, g)
	}
	if p.why != jobs.Fits {
		return -1, p.why
	}
	return p.plan[int32(t)], jobs.Fits
}

// planGang finds sites for all tasks of a gang, and leaves the board as it is.
func (p *oracle) planGang(b *jobs.Board, g int) jobs.Refusal {
	before := p.total(b)
	most, why := math.Inf(-1), jobs.Full
	p.plan = nil
	nodes := b.Request().View.Nodes()
	for only := -1; only < len(nodes); only++ {
		mark := b.Mark()
		plan, no := p.greedy(b, g, only)
		if no == jobs.Fits {
			if gain := p.total(b) - before; p.plan == nil || gain > most {
				p.plan, most = plan, gain
			}
		} else if only < 0 {
			why = no
		}
		b.Undo(mark)
		if only < 0 && len(b.Tasks(g)) == 1 {
			break
		}
	}
	switch {
	case p.plan == nil:
		return why
	case most < p.threshold:
		return jobs.Waits
	}
	return jobs.Fits
}

// greedy puts the tasks of a gang one by one where the truth gains most, on
// one node alone where only is one.
func (p *oracle) greedy(b *jobs.Board, g, only int) (map[int32]int, jobs.Refusal) {
	plan := map[int32]int{}
	for _, t := range b.Tasks(g) {
		list, why := b.Candidates(int(t))
		list = slices.Clone(list)
		best, most := -1, math.Inf(-1)
		for _, c := range list {
			if node, _ := b.Site(int(c.Site)); only >= 0 && node != only {
				continue
			}
			mark := b.Mark()
			b.Put(int(t), int(c.Site))
			if v := p.total(b); v > most {
				best, most = int(c.Site), v
			}
			b.Undo(mark)
		}
		if best < 0 {
			return nil, max(why, jobs.Full)
		}
		b.Put(int(t), best)
		plan[t] = best
	}
	return plan, jobs.Fits
}

// total is the sum of progress over all gangs as the board has them: of each
// its slowest worker's.
func (p *oracle) total(b *jobs.Board) float64 {
	req := b.Request()
	p.added, p.touched = p.added[:0], p.touched[:0]
	for i := range b.Pending() {
		g := b.Gang(i)
		for k, t := range b.Tasks(g) {
			s := b.At(int(t))
			if s < 0 {
				continue
			}
			node, device := b.Site(s)
			r := cluster.Running{Task: req.Pending[i].Tasks[k], Node: req.View.Nodes()[node].Name, Group: req.Pending[i].Name}
			if device >= 0 {
				r.On = []int{device}
			}
			p.added = append(p.added, r)
		}
	}
	view := req.View
	if len(p.added) > 0 {
		next, err := view.Next(nil, slices.Clone(p.added))
		if err != nil {
			return math.Inf(-1) // the board put only what fits
		}
		view = next
	}
	running := view.Running()
	for i := range running {
		p.touched = append(p.touched, running[i].ID)
	}
	rates := p.truth.Rates(view, p.touched)
	clear(p.workers)
	sum := 0.0
	for i := range running {
		r := &running[i]
		if r.Role != cluster.Worker {
			continue
		}
		old, met := p.workers[r.Group]
		if now := rates[r.ID]; !met || now < old {
			sum += now - old
			p.workers[r.Group] = now
		}
	}
	return sum
}
