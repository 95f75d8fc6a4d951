package baseline

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// Options of New.
type Options struct {
	// Model is what the policies that look at interference believe; the others
	// ignore it.
	Model interference.Model
	// Pessimism is that of place.NewValues.
	Pessimism float64
	// Params are a policy's own settings, as in --policy name:key=value.
	Params map[string]string
	// Explain asks for a reason in words for every binding (Decision.Why).
	Explain bool
}

// ErrUnknown is wrapped by New's error for a name that is none of Names.
var ErrUnknown = errors.New("unknown policy")

// Param is a setting of a policy by name: its default is Standard.
type Param struct{ Key, Standard, Meaning string }

// entry is a policy that New can make.
type entry struct {
	name      string
	needModel bool
	params    []Param
	make      func(Options, settings) (place.Policy, error)
}

var entries = []entry{
	spreadEntry, binpackEntry, randomEntry, tetrisEntry, paragonEntry, greedyEntry, searchEntry,
}

// Names lists the policies of this package.
func Names() []string {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.name
	}
	return names
}

// Params lists what can be set of a policy by Options.Params; nothing for a name
// that is none of Names.
func Params(name string) []Param {
	for _, e := range entries {
		if e.name == name {
			return slices.Clone(e.params)
		}
	}
	return nil
}

// New makes a policy by name. It is an error where the name is unknown
// (ErrUnknown), where a policy that needs a model is given none, and where a
// parameter is unknown, when the error lists what is valid, or has a bad value.
func New(name string, o Options) (place.Policy, error) {
	i := slices.IndexFunc(entries, func(e entry) bool { return e.name == name })
	if i < 0 {
		return nil, fmt.Errorf("%w %q: none of %s", ErrUnknown, name, strings.Join(Names(), ", "))
	}
	e := entries[i]
	if e.needModel && o.Model == nil {
		return nil, fmt.Errorf("policy %s: needs a model of interference; give samples or a model", name)
	}
	for _, key := range slices.Sorted(maps.Keys(o.Params)) {
		if !slices.ContainsFunc(e.params, func(p Param) bool { return p.Key == key }) {
			return nil, fmt.Errorf("policy %s: unknown parameter %q; %s", name, key, e.valid())
		}
	}
	s := settings{entry: e, given: o.Params}
	p, err := e.make(o, s)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	return p, nil
}

func (e entry) valid() string {
	if len(e.params) == 0 {
		return "it has none"
	}
	parts := make([]string, len(e.params))
	for i, p := range e.params {
		parts[i] = fmt.Sprintf("%s=%s (%s)", p.Key, p.Standard, p.Meaning)
	}
	return "valid, with defaults: " + strings.Join(parts, ", ")
}

// settings reads the parameters of one policy.
type settings struct {
	entry entry
	given map[string]string
}

func (s settings) text(key string) string {
	if v, ok := s.given[key]; ok {
		return v
	}
	for _, p := range s.entry.params {
		if p.Key == key {
			return p.Standard
		}
	}
	return ""
}

// number reads a finite number in [low, high].
func (s settings) number(key string, low, high float64) (float64, error) {
	v, err := strconv.ParseFloat(s.text(key), 64)
	if err != nil || !(v >= low && v <= high) {
		return 0, fmt.Errorf("parameter %s=%q is not a number from %g to %g", key, s.text(key), low, high)
	}
	return v, nil
}

// whole reads an integer of at least 0.
func (s settings) whole(key string) (int, error) {
	v, err := strconv.Atoi(s.text(key))
	if err != nil || v < 0 {
		return 0, fmt.Errorf("parameter %s=%q is not a whole number of at least 0", key, s.text(key))
	}
	return v, nil
}

// choice reads one of a few words.
func (s settings) choice(key string, words ...string) (string, error) {
	v := s.text(key)
	if !slices.Contains(words, v) {
		return "", fmt.Errorf("parameter %s=%q is none of %s", key, v, strings.Join(words, ", "))
	}
	return v, nil
}
