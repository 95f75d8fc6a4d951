package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// Limits that hold where Options names no other.
const (
	DefaultTimeout = time.Minute
	DefaultMaxLine = 64 << 20
)

// Options of a Policy. The zero value has no model and the default limits.
type Options struct {
	// Model answers the program's questions; nil where it may ask none.
	Model interference.Model
	// Timeout bounds one decision, questions included.
	Timeout time.Duration
	// MaxLine bounds a line of the program, in bytes.
	MaxLine int
	// Dir is the program's working directory; "" is the caller's.
	Dir string
}

// Policy is a place.Policy that a program decides. It is not safe for
// concurrent use. After an error of the program it stays in error: what the
// program knew is lost.
type Policy struct {
	ctx    context.Context
	argv   []string
	o      Options
	p      *process
	id     uint64
	broken error
}

// New describes a policy; nothing starts before the first Place. The program
// is killed when ctx is done. argv is the program and its arguments.
func New(ctx context.Context, argv []string, o Options) *Policy {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxLine <= 0 {
		o.MaxLine = DefaultMaxLine
	}
	return &Policy{ctx: ctx, argv: argv, o: o}
}

// Place implements place.Policy. The decision may still be invalid for the
// request: place.Evaluate tells.
func (p *Policy) Place(req place.Request) (place.Decision, error) {
	if p.broken != nil {
		return place.Decision{}, fmt.Errorf("policy %s: broken by an earlier error: %w", p.name(), p.broken)
	}
	d, err := p.exchange(req)
	if err == nil {
		return d, nil
	}
	var refused *refusal
	if errors.As(err, &refused) {
		return place.Decision{}, fmt.Errorf("policy %s: %w", p.name(), err)
	}
	if p.p != nil {
		p.p.kill()
		err = fmt.Errorf("%w%s", err, p.p.lastWords())
	}
	p.broken = err
	return place.Decision{}, fmt.Errorf("policy %s: %w", p.name(), err)
}

// Close ends the program: its input is closed, and it is killed, with the
// processes of its group, unless it ends by itself at once.
func (p *Policy) Close() error {
	if p.p == nil {
		return nil
	}
	p.p.end()
	p.p = nil
	p.broken = errors.New("closed")
	return nil
}

func (p *Policy) name() string { return strings.Join(p.argv, " ") }

// refusal is a decision not to decide, which the program said in words; it
// can go on with the next request.
type refusal struct{ words string }

func (r *refusal) Error() string { return "it refused: " + r.words }

func (p *Policy) exchange(req place.Request) (place.Decision, error) {
	var none place.Decision
	if p.p == nil {
		if len(p.argv) == 0 {
			return none, errors.New("no program named")
		}
		started, err := start(p.argv, p.o)
		if err != nil {
			return none, err
		}
		p.p = started
	}
	p.id++
	out := request{
		Version: Version, ID: p.id, Pending: req.Pending, Objective: req.Objective.Or(),
		NowS: req.Now.Seconds(), TimeoutS: p.o.Timeout.Seconds(), Model: describe(p.o.Model),
		Cluster: cluster.Spec{
			Nodes: req.View.Nodes(), Running: req.View.Running(),
			Workloads: req.View.Workloads(), Constraints: req.View.Constraints(),
		},
	}
	if req.Rand != nil {
		out.Seed = req.Rand.Uint64() >> 11
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.o.Timeout)
	defer cancel()
	if err := p.send(ctx, out); err != nil {
		return none, err
	}
	for {
		line, err := p.p.line(ctx)
		if err != nil {
			return none, p.why(err)
		}
		a, err := parse(line)
		if err != nil {
			return none, err
		}
		if a.Predict == nil {
			return a.decision(p.id)
		}
		r, err := a.Predict.answer(p.id, p.o.Model)
		if err != nil {
			return none, err
		}
		if err := p.send(ctx, r); err != nil {
			return none, err
		}
	}
}

func (p *Policy) send(ctx context.Context, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("the request cannot be written as JSON: %w", err)
	}
	if err := p.p.write(ctx, append(line, '\n')); err != nil {
		return p.why(err)
	}
	return nil
}

// why puts the end of a context into words.
func (p *Policy) why(err error) error {
	switch {
	case p.ctx.Err() != nil:
		return fmt.Errorf("stopped: %w", p.ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("waited %s for a decision and killed the program; make it faster, or give it more time (--time-limit)", p.o.Timeout)
	}
	return err
}

// shown is a line as an error quotes it, cut where it is long.
func shown(line []byte) string {
	const most = 200
	if len(line) > most {
		return fmt.Sprintf("%q... (%d bytes)", line[:most], len(line))
	}
	return fmt.Sprintf("%q", line)
}
