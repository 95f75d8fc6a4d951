package harmony

import (
	"fmt"
	"time"

	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/encode"
	"github.com/cotenant/cotenant/place/jobs"
)

// Picker takes one of the candidates of a decision; row 0 is waiting where
// that is allowed. Both arguments are only valid during the call.
type Picker interface {
	Pick(candidates num.Matrix, context []float32) int
}

// Options of New.
type Options struct {
	// Picker decides in place of the network's highest score: for training.
	Picker Picker
	// MaxWait is how long a gang may be made to wait although it fits; 0 is for
	// ever.
	MaxWait time.Duration
	// Migrate is what a move costs: the time for which its job stands still; 0
	// proposes no moves.
	Migrate time.Duration
	// Scale is what it costs that a running job is given another number of workers,
	// in the same way; 0 scales none. What is worth it is counted over
	// Moves.Horizon.
	Scale time.Duration
	// Moves say which moves are worth it; the zero value is DefaultMoves.
	Moves Moves
	// Threshold is what the network's features were made with; the zero value is
	// encode.DefaultThreshold of the scope.
	Threshold encode.Threshold
	// Explain asks for full reasons in words.
	Explain bool
}

// Policy is place.Policy by a trained network. It is not safe for concurrent
// use.
type Policy struct {
	net     *num.Scorer
	options Options
	board   *jobs.Board
	encoder *encode.Jobs
	pass    num.Pass

	ways    []encode.Option
	sites   []int32 // backs the sites of ways
	plans   planner
	mover   mover
	gangs   jobs.Mover
	scaler  jobs.Scaler
	refused []refusal // by kind
	asked   num.Matrix
	scores  []float32 // of asked; nil where a Picker decided
}

type refusal struct {
	why   jobs.Refusal
	words string
	mark  int
	late  bool
	set   bool
}

// New makes a policy of a network of shape Shape and of what it believes about
// speeds.
func New(net *num.Scorer, speeds *jobs.Speeds, o Options) *Policy {
	if o.Moves == (Moves{}) {
		o.Moves = DefaultMoves
	}
	if o.Threshold == (encode.Threshold{}) {
		o.Threshold = encode.DefaultThreshold(speeds.Scope())
	}
	b := jobs.NewBoard(speeds)
	b.Explain = o.Explain
	return &Policy{net: net, options: o, board: b, encoder: encode.NewJobs(b, o.Threshold), mover: mover{many: manySites}}
}

// Shape is that of the networks which New takes: prior is the scale at which
// an untrained one follows greedy-wait, with encode's threshold.
func Shape(prior float32) num.ScorerShape {
	return num.ScorerShape{
		Features: encode.Features, Context: encode.Contexts, Hidden: []int{48, 48},
		Prior: 1 + encode.Prior, PriorScale: prior,
	}
}

// Place implements place.Policy.
func (p *Policy) Place(req place.Request) (place.Decision, error) {
	b := p.board
	b.Reset(req)
	p.afresh()
	for i := range b.Pending() {
		if req.Stopped() {
			break
		}
		g := b.Gang(i)
		if !req.Pending[i].Gang && len(b.Tasks(g)) > 1 {
			return place.Decision{}, fmt.Errorf("group %q of %d tasks is no gang: harmony places jobs, whole", req.Pending[i].Name, len(b.Tasks(g)))
		}
		p.offer(i, g)
	}
	if p.options.Migrate > 0 {
		p.improve(req)
	}
	if p.options.Scale > 0 {
		p.scale()
	}
	return b.Decision(), nil
}

// Observe implements place.Observer: what was met while running overrides what
// the model predicts.
func (p *Policy) Observe(o place.Outcome) { p.board.Speeds().Observe(o) }

// offer places one gang or lets it wait. A kind that was refused is not asked
// again before the board has changed.
func (p *Policy) offer(i, g int) {
	b := p.board
	kind := b.Kind(g)
	for len(p.refused) <= kind {
		p.refused = append(p.refused, refusal{})
	}
	r, late := &p.refused[kind], p.late(g)
	if r.set && r.mark == b.Mark() && r.late == late {
		b.Say(i, r.why, r.words)
		return
	}
	why, words := p.list(g), ""
	if why == jobs.Fits {
		if k := p.pick(g); len(p.ways[k].Sites) > 0 {
			if b.Explain {
				p.explainPlaced(g, k)
			}
			p.put(g, k)
			return
		}
		why = jobs.Waits
		if b.Explain {
			words = p.waitsWords(g)
		}
	} else if b.Explain {
		words = p.plans.words
		if len(b.Tasks(g)) == 1 {
			words = b.Words(g, why)
		}
	}
	b.Say(i, why, words)
	*r = refusal{why, words, b.Mark(), late, true}
}

// afresh forgets what was read of the board, which may be another one now.
func (p *Policy) afresh() {
	p.encoder.Begin()
	p.plans.board = nil
	clear(p.refused)
}

// put places a gang as one of ways says, which may be to wait.
func (p *Policy) put(g, way int) {
	for n, site := range p.ways[way].Sites {
		p.board.Put(int(p.board.Tasks(g)[n]), int(site))
	}
}

// late reports whether a gang waited as long as it may be made to.
func (p *Policy) late(g int) bool { return p.options.MaxWait > 0 && p.board.Age(g) > p.options.MaxWait }

// list fills ways with what can be done with a gang: waiting first, where that
// is allowed. It may not wait where nothing runs, since nothing would come of
// it, nor where it waited too long.
func (p *Policy) list(g int) jobs.Refusal {
	b := p.board
	p.ways, p.sites = p.ways[:0], p.sites[:0]
	if !p.late(g) && (len(b.Running()) > 0 || b.Mark() > 0) {
		p.ways = append(p.ways, encode.Option{})
	}
	waits := len(p.ways)
	tasks := b.Tasks(g)
	if len(tasks) != 1 {
		if p.plans.board == nil {
			p.plans.begin(b)
		}
		p.ways = p.plans.list(g, p.ways)
		if len(p.ways) == waits {
			return p.plans.why
		}
		return jobs.Fits
	}
	found, why := b.Candidates(int(tasks[0]))
	for _, c := range found {
		p.sites = append(p.sites, c.Site)
	}
	for i, c := range found {
		p.ways = append(p.ways, encode.Option{Sites: p.sites[i : i+1], Alike: c.Alike})
	}
	return why
}

func (p *Policy) pick(g int) int {
	candidates, context := p.encoder.Encode(g, p.ways)
	p.asked, p.scores = candidates, nil
	if p.options.Picker != nil {
		return p.options.Picker.Pick(candidates, context)
	}
	p.scores = p.pass.Score(p.net, candidates, context)
	return num.Highest(p.scores)
}
