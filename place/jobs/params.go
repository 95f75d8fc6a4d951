package jobs

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cotenant/cotenant/place"
)

// Param is a number of a policy that can be tuned.
type Param struct {
	// Key names it, as in --policy NAME:key=value.
	Key     string
	Meaning string
	// Low and High bound what is worth a search; other values are refused.
	Low, High, Default float64
	// Log says that a search should go by the logarithm.
	Log bool
	// Whole numbers only.
	Whole bool
	// PerClass parameters may be given for each class: "key.class" beats "key".
	PerClass bool
}

// Settings of New.
type Settings struct {
	// Speeds are what the policy believes. Policies of one Speeds share its
	// memory and must not run at the same time.
	Speeds *Speeds
	// Values of parameters by key; the rest have their defaults.
	Values map[string]float64
	// Migrate is what moving a task costs: the time for which its job stands
	// still. 0 proposes no moves. Only greedy, greedy-wait and matching move, and
	// not in a cluster with constraints or taints.
	Migrate time.Duration
	// Scale is what it costs that a running job is given another number of workers,
	// in the same way; 0 proposes none. Only those that move scale.
	Scale time.Duration
	// Explain asks for full reasons in words.
	Explain bool
}

// ErrUnknown is wrapped by New's error for a name that is none of Names.
var ErrUnknown = errors.New("unknown policy")

// ErrParameter is wrapped by the error for a parameter that a policy lacks.
var ErrParameter = errors.New("unknown parameter")

// entry is a policy that New can make.
type entry struct {
	name   string
	params []Param
	moves  bool
	make   func(numbers, Settings) (placer, error)
}

// placer places the pending gangs of a board.
type placer interface{ place(b *Board) }

var entries = []entry{
	spreadEntry, binpackEntry, consolidateEntry, tetrisEntry, fastestEntry, linearEntry, greedyEntry, greedyWaitEntry, matchingEntry,
}

// Names lists the policies of this package.
func Names() []string {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.name
	}
	return names
}

// Params lists what can be tuned of a policy in a cluster of those classes: a
// parameter that may differ by class is listed for each where there are
// several. changes adds what only policies have that move tasks or scale jobs.
func Params(name string, classes []string, changes bool) ([]Param, error) {
	e, err := find(name)
	if err != nil {
		return nil, err
	}
	var out []Param
	for _, p := range e.all(changes) {
		if !p.PerClass || len(classes) < 2 {
			out = append(out, p)
			continue
		}
		for _, c := range classes {
			q := p
			q.Key += "." + c
			out = append(out, q)
		}
	}
	return out, nil
}

func find(name string) (entry, error) {
	i := slices.IndexFunc(entries, func(e entry) bool { return e.name == name })
	if i < 0 {
		return entry{}, fmt.Errorf("%w %q: none of %s", ErrUnknown, name, strings.Join(Names(), ", "))
	}
	return entries[i], nil
}

func (e entry) all(changes bool) []Param {
	if changes && e.moves {
		return append(slices.Clone(e.params), horizonParam)
	}
	return e.params
}

// New makes a policy by name. It is an error where the name is unknown
// (ErrUnknown), where Speeds are missing or of the wrong kind, and where a
// parameter is unknown or out of its range; the error lists what is valid.
func New(name string, s Settings) (place.Policy, error) {
	e, err := find(name)
	if err != nil {
		return nil, err
	}
	if s.Speeds == nil {
		return nil, fmt.Errorf("policy %s: needs Speeds; make them with NewSpeeds, of no model where interference does not count", name)
	}
	if s.Migrate < 0 {
		return nil, fmt.Errorf("policy %s: migrate %s is negative", name, s.Migrate)
	}
	if s.Scale < 0 {
		return nil, fmt.Errorf("policy %s: scale %s is negative", name, s.Scale)
	}
	params := e.all(s.Migrate > 0 || s.Scale > 0)
	if err := CheckValues(params, s.Values); err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	n := numbers{params, s.Values}
	p := &policy{name: name, board: NewBoard(s.Speeds)}
	p.board.Explain = s.Explain
	if p.placer, err = e.make(n, s); err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	if s.Migrate > 0 && e.moves {
		p.mover = &Mover{Cost: s.Migrate.Seconds(), Horizon: n.value("horizon")}
	}
	if starter, ok := p.placer.(Starter); ok && s.Scale > 0 && e.moves {
		p.scaler, p.starter = &Scaler{Cost: s.Scale.Seconds(), Horizon: n.value("horizon")}, starter
	}
	return p, nil
}

// CheckValues is an error where a value is of no parameter or out of its range;
// it lists what is valid.
func CheckValues(params []Param, values map[string]float64) error {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := check(params, key, values[key]); err != nil {
			return err
		}
	}
	return nil
}

func check(params []Param, key string, v float64) error {
	base, _, byClass := strings.Cut(key, ".")
	for _, p := range params {
		if p.Key != base || byClass && !p.PerClass {
			continue
		}
		if !(v >= p.Low && v <= p.High) || p.Whole && v != math.Trunc(v) {
			return fmt.Errorf("parameter %s=%g is not %s", key, v, p.valid())
		}
		return nil
	}
	if len(params) == 0 {
		return fmt.Errorf("%w %q; it has none", ErrParameter, key)
	}
	parts := make([]string, len(params))
	for i, p := range params {
		parts[i] = fmt.Sprintf("%s=%g (%s; %s)", p.Key, p.Default, p.Meaning, p.valid())
	}
	return fmt.Errorf("%w %q; valid, with defaults: %s", ErrParameter, key, strings.Join(parts, ", "))
}

func (p Param) valid() string {
	kind := "a number"
	if p.Whole {
		kind = "a whole number"
	}
	return fmt.Sprintf("%s from %g to %g", kind, p.Low, p.High)
}

// numbers reads the parameters of one policy.
type numbers struct {
	params []Param
	given  map[string]float64
}

func (n numbers) value(key string) float64 {
	if v, ok := n.given[key]; ok {
		return v
	}
	for _, p := range n.params {
		if p.Key == key {
			return p.Default
		}
	}
	return 0
}

// byClass reads a parameter that may differ by class.
func (n numbers) byClass(key string) perClass {
	p := perClass{standard: n.value(key), by: map[string]float64{}}
	for k, v := range n.given {
		if base, class, ok := strings.Cut(k, "."); ok && base == key {
			p.by[class] = v
		}
	}
	return p
}

// perClass is a number for each class.
type perClass struct {
	standard float64
	by       map[string]float64
	numbered []float64 // by class number of speeds
}

func (p *perClass) of(b *Board, class int32) float64 {
	for int(class) >= len(p.numbered) {
		v, ok := p.by[b.speeds.classes[len(p.numbered)]]
		if !ok {
			v = p.standard
		}
		p.numbered = append(p.numbered, v)
	}
	return p.numbered[class]
}

// policy is what New makes.
type policy struct {
	name    string
	board   *Board
	placer  placer
	mover   *Mover
	scaler  *Scaler
	starter Starter
}

// Place implements place.Policy.
func (p *policy) Place(req place.Request) (place.Decision, error) {
	p.board.Reset(req)
	p.placer.place(p.board)
	if p.mover != nil {
		p.mover.Improve(p.board, func() { p.placer.place(p.board) })
	}
	if p.scaler != nil {
		p.scaler.Improve(p.board, p.starter)
	}
	return p.board.Decision(), nil
}

// Observe implements place.Observer.
func (p *policy) Observe(o place.Outcome) { p.board.speeds.Observe(o) }

// taskwise is a policy that chooses a site for one task after another.
type taskwise struct{ Chooser }

func (t taskwise) place(b *Board) { b.Place(t.Chooser) }
