package metis

import (
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/place/encode"
)

// Nets are the sub-policies: one for each kind of level of the hierarchy, the
// same in every part of the cluster.
type Nets struct {
	// Node chooses a node among those of a smallest part.
	Node *num.Scorer
	// Part chooses a part among those of a larger one.
	Part *num.Scorer
	// Turn chooses the workload of the next task of a group, with Hierarchy.
	// Without it they come in the order of the request.
	Turn *num.Scorer
}

// Shapes are those of networks that read the features of now. Untrained, the
// first follows the greedy rule as firmly as prior says, the second its nodes'
// scores, and the third places the same share of every workload.
func Shapes(prior float32) (node, part, turn num.ScorerShape) {
	node = num.ScorerShape{
		Features: encode.ServiceFeatures, Context: encode.ServiceContexts,
		Hidden: []int{64, 64}, Prior: 1 + encode.ServiceLead, PriorScale: prior,
	}
	part = num.ScorerShape{
		Features: encode.PartFeatures, Context: encode.ServiceContexts,
		Hidden: []int{32}, Prior: 1 + encode.PartLead, PriorScale: 1,
	}
	turn = num.ScorerShape{
		Features: encode.TurnFeatures, Context: encode.ServiceContexts,
		Hidden: []int{32, 32}, Prior: 1 + encode.TurnLead, PriorScale: 20,
	}
	return node, part, turn
}

// Divide says how tasks come to nodes.
type Divide string

// The ways: the first is Metis, the others are what its authors compare it to.
const (
	// Hierarchy goes down from the cluster to a node, part by part, each choice
	// made by the sub-policy of its level.
	Hierarchy Divide = ""
	// Flat chooses among all nodes at once: reinforcement learning without a
	// hierarchy ("vanilla RL").
	Flat Divide = "flat"
	// Even deals the tasks out to the parts in turn, whatever they are, and
	// chooses a node there: divide and conquer without sub-schedulers.
	Even Divide = "even"
)

// Picker takes the decisions in training. Candidates are rows of features.
type Picker interface {
	// Node chooses among nodes, Part among parts, Turn among workloads; scores
	// are the network's.
	Node(candidates num.Matrix, context, scores []float32) int
	Part(candidates num.Matrix, context, scores []float32) int
	Turn(candidates num.Matrix, context, scores []float32) int
	// Placed tells what the objective gained, in units of what a task alone adds.
	Placed(gain float64)
}

// Options of a Policy. The zero value is what one wants.
type Options struct {
	Divide Divide
	// Parts is into how many parts each is split; 0 means 9.
	Parts int
	// Pessimism k plans on Value - k*Std where the model predicts.
	Pessimism float64
	// Refresh is how many tasks, as a share of the nodes, are placed between two
	// looks at the whole cluster; 0 means 0.05. With more than 7 workloads to come
	// it is so many more times that. A look costs a pass over the different
	// situations of nodes.
	Refresh float64
	Explain bool
	// Memory, where not nil, keeps what was learned of co-locations from policy to
	// policy over the same model with the same pessimism.
	Memory *place.Memory
	// Picker, where not nil, decides instead of the networks. With Flat it is
	// shown the Shortlist nodes of the highest scores (0 means 12).
	Picker    Picker
	Shortlist int
}

// Policy places tasks one after another by its networks, in one pass. It
// remembers co-locations from request to request: not safe for concurrent use.
type Policy struct {
	nets  Nets
	model interference.Model
	o     Options
}

// New makes a policy. Part may be missing where Divide does without it.
func New(nets Nets, m interference.Model, o Options) *Policy {
	if o.Parts < 2 {
		o.Parts = 9
	}
	if o.Refresh == 0 {
		o.Refresh = 0.05
	}
	if o.Shortlist == 0 {
		o.Shortlist = 12
	}
	if o.Memory == nil {
		o.Memory = &place.Memory{}
	}
	return &Policy{nets: nets, model: m, o: o}
}

// Place implements place.Policy.
func (p *Policy) Place(req place.Request) (place.Decision, error) {
	board := baseline.NewBoard(p.trial(req))
	s := baseline.NewSequence(req, board.Trial().Placement, p.Chooser(req, board), p.o.Explain)
	s.Place()
	return s.Decision(), nil
}

func (p *Policy) trial(req place.Request) *place.Trial {
	if p.o.Explain { // reasons state gains, which must not be off by a factor
		return place.NewTrial(req, p.model, p.o.Pessimism)
	}
	return p.o.Memory.Trial(req, p.model, p.o.Pessimism)
}

// Chooser is the policy as the start of a search, or of a Sequence.
func (p *Policy) Chooser(req place.Request, b *baseline.Board) baseline.Chooser {
	c := newChooser(p, req, b)
	// The paper's comparisons take tasks as they come; in training, though, nodes
	// are chosen by Flat for what will be Hierarchy.
	if p.nets.Turn != nil && !c.steep && (p.o.Divide == Hierarchy || p.o.Picker != nil) {
		return newTurns(c)
	}
	return c
}
