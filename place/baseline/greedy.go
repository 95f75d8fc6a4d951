package baseline

import (
	"fmt"
	"math"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

var greedyEntry = entry{
	name:      "greedy",
	needModel: true,
	make: func(o Options, _ settings) (place.Policy, error) {
		return Greedy{Model: o.Model, Pessimism: o.Pessimism, Explain: o.Explain}, nil
	},
}

// Greedy puts one task after another, in arrival order, on the node where the
// objective gains most. Where nodes tie and the worst performance counts, the
// one with the highest worst performance of its own wins; then the lowest
// index. Co-locations about which the model is silent come last.
type Greedy struct {
	Model     interference.Model
	Pessimism float64
	Explain   bool
}

// Place implements place.Policy.
func (g Greedy) Place(req place.Request) (place.Decision, error) {
	b := NewBoard(place.NewTrial(req, g.Model, g.Pessimism))
	s := NewSequence(req, b.trial.Placement, &greedyChooser{Board: b}, g.Explain)
	s.Place()
	return s.Decision(), nil
}

type greedyChooser struct {
	*Board
	after  []candidate
	config []place.Config

	chosen   candidate
	runnerUp candidate // the best of another state; node -1 where there is none
}

// candidate is a node and what the objective becomes there.
type candidate struct {
	node  int
	to    int32   // the state it would be in
	gain  float64 // of the objective; -Inf where the model is silent
	worst float64 // lowest performance on the node
}

func (c candidate) beats(d candidate) bool {
	switch {
	case c.gain != d.gain:
		return c.gain > d.gain
	case c.worst != d.worst:
		return c.worst > d.worst
	}
	return c.node < d.node
}

func (g *greedyChooser) Choose(kind int) int {
	g.after, g.config = g.after[:0], g.config[:0]
	for _, s := range g.live {
		// All nodes of a state take the task or none does.
		n := int(g.nodes[s][0])
		if g.trial.Check(kind, n) != cluster.Fits {
			continue
		}
		to := g.more(s, int32(kind))
		g.after = append(g.after, candidate{node: n, to: to})
		g.config = append(g.config, g.states[to].config)
	}
	if len(g.after) == 0 {
		return -1
	}
	g.trial.Values.Fill(g.config)
	lowest, second := g.lowestWorst()
	g.chosen, g.runnerUp = candidate{node: -1}, candidate{node: -1}
	for _, c := range g.after {
		g.weigh(&c, kind, lowest, second)
		switch {
		case g.chosen.node < 0 || c.beats(g.chosen):
			g.chosen, g.runnerUp = c, g.chosen
		case g.runnerUp.node < 0 || c.beats(g.runnerUp):
			g.runnerUp = c
		}
	}
	return g.chosen.node
}

// weigh fills in what the objective gains. lowest is the worst performance
// over all nodes; second is that over all but one of the nodes that have it.
func (g *greedyChooser) weigh(c *candidate, kind int, lowest, second float64) {
	c.gain = g.trial.Gain(kind, c.node)
	weight := g.trial.Values.Objective().Worst
	if weight == 0 || math.IsInf(c.gain, -1) {
		return
	}
	c.worst = g.trial.Values.Value(g.states[c.to].config).Worst
	others := lowest
	if g.trial.Values.Value(g.trial.Config(c.node)).Worst == lowest {
		others = second
	}
	c.gain += weight * min(others, c.worst)
}

func (g *greedyChooser) lowestWorst() (lowest, second float64) {
	lowest, second = math.Inf(1), math.Inf(1)
	if g.trial.Values.Objective().Worst == 0 {
		return lowest, second
	}
	for _, s := range g.live {
		w := g.trial.Values.Value(g.states[s].config).Worst
		if len(g.nodes[s]) > 1 {
			second = min(second, w)
		}
		if w < lowest {
			lowest, second = w, min(second, lowest)
		} else {
			second = min(second, w)
		}
	}
	return lowest, second
}

func (g *greedyChooser) Reason(_, node int) place.Reason {
	nodes := g.trial.Snapshot().Nodes()
	beside := g.trial.Colocation(node).Key()
	if beside == "" {
		beside = "nothing"
	}
	r := place.Reason{Scores: map[string]float64{"gain": place.Finite(g.chosen.gain)}}
	if math.IsInf(g.chosen.gain, -1) {
		r.Words = fmt.Sprintf("%s beside %s: the model is silent about it, as about every node that takes the task", nodes[node].Name, beside)
		return r
	}
	r.Words = fmt.Sprintf("%s beside %s adds most to %s: %+.4g", nodes[node].Name, beside, g.trial.Values.Objective(), g.chosen.gain)
	if g.runnerUp.node >= 0 && !math.IsInf(g.runnerUp.gain, -1) {
		r.Words += fmt.Sprintf(" (next best %s: %+.4g)", nodes[g.runnerUp.node].Name, g.runnerUp.gain)
		r.Scores["next_best"] = place.Finite(g.runnerUp.gain)
	}
	return r
}
