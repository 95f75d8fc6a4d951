package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/external"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/harmony"
	"github.com/cotenant/cotenant/place/jobs"
)

// Spread is the policy that all others are held against.
const Spread = "spread"

// Harmony is the policy that was trained.
const Harmony = "harmony"

// Spec is a policy by name, with what it was given: NAME[@FILE][:truth]
// [:key=value...], or a program (exec:).
type Spec struct {
	Text string // as given; names the policy in results
	Name string
	File string
	// Truth lets the policy believe the true table instead of a model.
	Truth bool
	// Values are the parameters given by hand. Those of tuning go beneath.
	Values map[string]float64
	Argv   []string // of an exec: policy

	trained *harmony.File // of a policy that was trained
}

// constructor makes one kind of policy: the table of them is constructors.
type constructor struct {
	// file says that the policy is read from one (@FILE).
	file bool
	// kind of model that it believes; "" is that of the run.
	kind string
	// params lists what can be tuned.
	params func(spec Spec, classes []string, changes bool) ([]jobs.Param, error)
	make   func(o making) (place.Policy, error)
}

// making is all that a policy is made of.
type making struct {
	spec    Spec
	values  map[string]float64 // given and tuned
	speeds  *jobs.Speeds
	migrate time.Duration
	scale   time.Duration
	explain bool
	ctx     context.Context // of a program
	limit   time.Duration   // of one decision of a program
}

// constructors are the policies for jobs by name. A new one is added here.
func constructors() map[string]constructor {
	all := map[string]constructor{
		"exec":  {params: noParams, make: newProgram},
		Harmony: {file: true, params: harmonyParams, make: newHarmony},
	}
	for _, name := range jobs.Names() {
		c := constructor{params: ruleParams, make: newRule}
		if name == "linear" {
			c.kind = interference.KindLinear
		}
		all[name] = c
	}
	return all
}

// Names lists the policies that need no file and no program.
func Names() []string { return append(jobs.Names(), Harmony) }

func ruleParams(spec Spec, classes []string, changes bool) ([]jobs.Param, error) {
	return jobs.Params(spec.Name, classes, changes)
}

func newRule(o making) (place.Policy, error) {
	return jobs.New(o.spec.Name, jobs.Settings{Speeds: o.speeds, Values: o.values, Migrate: o.migrate, Scale: o.scale, Explain: o.explain})
}

func noParams(Spec, []string, bool) ([]jobs.Param, error) { return nil, nil }

func newProgram(o making) (place.Policy, error) {
	return external.New(o.ctx, o.spec.Argv, external.Options{Model: fitting{o.speeds}, Timeout: o.limit}), nil
}

// Load reads the file of a policy that is read from one, once for all that are
// made of the spec.
func (s *Spec) Load(r io.Reader) error {
	var err error
	if s.trained, err = harmony.Load(r); err != nil {
		return fmt.Errorf("%s: %w", s.Text, err)
	}
	return nil
}

// harmony is the trained policy of a spec: that of its file, or the one that
// ships for the scope of the world.
func (s Spec) harmony(scope history.Scope) (*harmony.File, error) {
	if s.trained == nil && s.File == "" {
		return harmony.Shipped(scope)
	}
	if s.trained == nil {
		return nil, fmt.Errorf("%s: %s was not read; call Load", s.Text, s.File)
	}
	return s.trained, nil
}

func harmonyParams(spec Spec, _ []string, changes bool) ([]jobs.Param, error) {
	f, err := spec.harmony("") // those that ship have the same parameters
	if err != nil {
		return nil, err
	}
	return f.Params(changes), nil
}

func newHarmony(o making) (place.Policy, error) {
	f, err := o.spec.harmony(o.speeds.Scope())
	if err != nil {
		return nil, err
	}
	return f.Policy(jobs.Settings{Speeds: o.speeds, Values: o.values, Migrate: o.migrate, Scale: o.scale, Explain: o.explain})
}

// pessimism is a parameter of all policies that believe a model; learn is one
// of those that were trained.
const (
	pessimism = "pessimism"
	learn     = "learn"
)

// ParseSpec reads NAME[@FILE][:truth][:key=value...]. The file is Load's to
// read; parameters are checked when the policy is made.
func ParseSpec(text string) (Spec, error) {
	s := Spec{Text: strings.TrimSpace(text), Values: map[string]float64{}}
	head, params, _ := strings.Cut(s.Text, ":")
	var hasFile bool
	s.Name, s.File, hasFile = strings.Cut(head, "@")
	c, ok := constructors()[s.Name]
	known := strings.Join(slices.Sorted(maps.Keys(constructors())), ", ")
	switch {
	case s.Name == "" || !ok || s.Name == "exec":
		return s, fmt.Errorf("%q: no such policy; known are %s (as exec:PROGRAM)", s.Text, known)
	case hasFile && !c.file:
		return s, fmt.Errorf("%s: %s reads no file; leave @%s out", s.Text, s.Name, s.File)
	case hasFile && s.File == "":
		return s, fmt.Errorf("%s: no file after @", s.Text)
	}
	for _, p := range strings.FieldsFunc(params, func(c rune) bool { return c == ':' || c == ',' }) {
		if p == "truth" {
			s.Truth = true
			continue
		}
		key, value, ok := strings.Cut(p, "=")
		v, err := strconv.ParseFloat(value, 64)
		_, twice := s.Values[key]
		switch {
		case !ok || key == "":
			return s, fmt.Errorf("%s: %q is neither truth nor key=value", s.Text, p)
		case err != nil:
			return s, fmt.Errorf("%s: %s=%s is not a number", s.Text, key, value)
		case twice:
			return s, fmt.Errorf("%s: %s is given twice", s.Text, key)
		case key == learn && (s.Name != Harmony || v != 0 && v != 1):
			return s, fmt.Errorf("%s: learn is 1 or 0, and only for %s", s.Text, Harmony)
		case key == pessimism && !(v >= 0 && v <= 10):
			return s, fmt.Errorf("%s: pessimism %g is not a number of standard deviations, 0 to 10", s.Text, v)
		}
		s.Values[key] = v
	}
	return s, nil
}

// Pessimism is how many standard deviations predictions are lowered for the
// policy.
func (s Spec) Pessimism() float64 { return s.Values[pessimism] }

// Learns says whether the network goes on learning during a run.
func (s Spec) Learns() bool { return s.Values[learn] == 1 }

// Params lists what can be tuned of a policy in a world, changes those with which
// it moves or scales running jobs too.
func (s Spec) Params(w *World, changes bool) ([]jobs.Param, error) {
	if s.Truth && w.Table == nil {
		return oracleParams(s.Name)
	}
	return constructors()[s.Name].params(s, w.Classes(), changes)
}

// PolicyOptions of Spec.New.
type PolicyOptions struct {
	// Values of parameters beneath those given by hand.
	Values map[string]float64
	// Migrate is what a move costs; 0 proposes none.
	Migrate time.Duration
	// Scale is what a resize costs, likewise.
	Scale   time.Duration
	Explain bool
	// Limit bounds one decision of a program; 0 is its default.
	Limit time.Duration
}

// New makes the policy. speeds are what it believes (World.Speeds), its own
// alone. A program is ended by ctx and by the function that is returned.
func (s Spec) New(ctx context.Context, w *World, speeds *jobs.Speeds, o PolicyOptions) (place.Policy, func(), error) {
	values := map[string]float64{}
	maps.Copy(values, o.Values)
	maps.Copy(values, s.Values)
	delete(values, pessimism)
	delete(values, learn)
	m := making{spec: s, values: values, speeds: speeds, migrate: o.Migrate, scale: o.Scale, explain: o.Explain, ctx: ctx, limit: o.Limit}
	c, ok := constructors()[s.Name]
	if !ok {
		return nil, nil, fmt.Errorf("%s: no such policy", s.Text)
	}
	build := c.make
	if s.Truth && w.Table == nil {
		build = func(o making) (place.Policy, error) { return newOracle(o, w.truth()) }
	}
	p, err := build(m)
	if errors.Is(err, jobs.ErrParameter) {
		return nil, nil, fmt.Errorf("%w; %s", err, s.common())
	}
	if err != nil {
		return nil, nil, err
	}
	if c, ok := p.(interface{ Close() error }); ok {
		return p, func() { _ = c.Close() }, nil
	}
	return p, func() {}, nil
}

// common says what every policy of the kind takes beside its own parameters.
func (s Spec) common() string {
	words := "and, of every policy, truth (it believes the truth) and pessimism=0 (standard deviations by which predictions are lowered; 0 to 10)"
	if s.Name == Harmony {
		words += ", and learn=0 (1: the network goes on learning, with --online)"
	}
	return words
}

// kind of the model that the policy believes, given that of the run.
func (s Spec) kind(run string) string {
	if k := constructors()[s.Name].kind; k != "" {
		return k
	}
	return run
}

// fitting is a model whose answer about what does not fit together is 0, for
// programs, which have no other way to know.
type fitting struct{ speeds *jobs.Speeds }

func (f fitting) model() interference.Model { return f.speeds.Model() }

// Kind implements interference.Model.
func (f fitting) Kind() string { return f.model().Kind() }

// Classes implements interference.Model.
func (f fitting) Classes() []string { return f.model().Classes() }

// Workloads implements interference.Model.
func (f fitting) Workloads(class string) []string { return f.model().Workloads(class) }

// Predict implements interference.Model.
func (f fitting) Predict(class string, metric history.Metric, cs []cluster.Colocation) [][]interference.Estimate {
	out := f.model().Predict(class, metric, cs)
	for i, c := range cs {
		config := f.speeds.Empty(class)
		for _, name := range c.Workloads() {
			for range c[name] {
				config = f.speeds.Next(config, f.speeds.Number(name))
			}
		}
		if f.speeds.Fits(config) {
			continue
		}
		for j := range out[i] {
			out[i][j] = interference.Estimate{Known: true, Measured: true}
		}
	}
	return out
}
