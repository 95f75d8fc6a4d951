package metis

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
)

// Settings of File.Policy.
type Settings struct {
	Model     interference.Model
	Pessimism float64
	// Params are what --policy metis:key=value says; those of File.Params.
	Params  map[string]string
	Explain bool
}

// Param is a setting of a policy by name.
type Param struct{ Key, Standard, Meaning string }

// Params lists what can be set, with the file's own as defaults.
func (f *File) Params() []Param {
	divide := string(f.Divide)
	if f.Divide == Hierarchy {
		divide = hierarchy
	}
	o := New(Nets{}, nil, f.options()).o
	params := []Param{
		{"search", "on", "on: exchanges between nodes follow where no more tasks are expected than pending; off: one pass alone, which is the default where divide is flat or even"},
		{"divide", divide, "hierarchy, flat (among all nodes at once) or even (dealt out to the parts in turn)"},
		{"parts", strconv.Itoa(o.Parts), "into how many parts each is split"},
		{"refresh", strconv.FormatFloat(o.Refresh, 'g', -1, 64), "tasks, as a share of the nodes, between two looks at the whole cluster"},
		{"samples", "1", "passes that a search follows, all but the first with turns that are drawn; the work is shared out among them"},
	}
	for _, p := range baseline.Params("greedy-search") {
		params = append(params, Param{p.Key, p.Standard, "of the search: " + p.Meaning})
	}
	return params
}

// maxSamples bounds what is asked for by mistake.
const maxSamples = 1000

// hierarchy names Hierarchy where a word is wanted.
const hierarchy = "hierarchy"

func (f *File) options() Options {
	return Options{Divide: f.Divide, Parts: f.Parts, Refresh: f.Refresh}
}

// Policy makes the policy of a file: one pass, and a search after it unless
// the parameters turn it off. It is an error where there is no model, and where
// a parameter is unknown or has a bad value.
func (f *File) Policy(s Settings) (place.Policy, error) {
	if s.Model == nil {
		return nil, fmt.Errorf("policy metis: needs a model of interference; give samples or a model")
	}
	for _, key := range slices.Sorted(maps.Keys(s.Params)) {
		if !slices.ContainsFunc(f.Params(), func(p Param) bool { return p.Key == key }) {
			return nil, fmt.Errorf("policy metis: unknown parameter %q; %s", key, f.valid())
		}
	}
	o, search, err := f.read(s.Params)
	if err != nil {
		return nil, fmt.Errorf("policy metis: %w", err)
	}
	if o.Divide == Hierarchy && f.Nets.Part == nil {
		return nil, fmt.Errorf("policy metis: the file has no network that chooses parts; it was trained with divide=%s", f.Divide)
	}
	o.Pessimism, o.Explain = s.Pessimism, s.Explain
	first := New(f.Nets, s.Model, o)
	ofSearch := map[string]string{}
	for _, key := range []string{"evals", "kicks", "colocations"} {
		if v, ok := s.Params[key]; ok {
			ofSearch[key] = v
		}
	}
	p, err := baseline.New("greedy-search", baseline.Options{Model: s.Model, Pessimism: s.Pessimism, Params: ofSearch, Explain: s.Explain})
	if err != nil {
		return nil, fmt.Errorf("policy metis: %w", err)
	}
	samples := 1
	if text, ok := s.Params["samples"]; ok {
		ofSearch["samples"] = text
		if samples, err = strconv.Atoi(text); err != nil || samples < 1 || samples > maxSamples {
			return nil, fmt.Errorf("policy metis: parameter samples=%q is not a whole number from 1 to %d", text, maxSamples)
		}
		if samples > 1 && (f.Nets.Turn == nil || o.Divide != Hierarchy) {
			return nil, fmt.Errorf("policy metis: parameter samples=%q: turns are drawn, and the file or divide=%s has none", text, o.Divide)
		}
	}
	if !search {
		if len(ofSearch) > 0 {
			return nil, fmt.Errorf("policy metis: parameter %s without a search; add search=on", slices.Sorted(maps.Keys(ofSearch))[0])
		}
		return first, nil
	}
	after := p.(baseline.GreedySearch)
	after.Start = first.Chooser
	return Searching{First: first, After: after, Samples: samples}, nil
}

func (f *File) valid() string {
	params := f.Params()
	parts := make([]string, len(params))
	for i, p := range params {
		parts[i] = p.Key
		if p.Standard != "" {
			parts[i] += "=" + p.Standard
		}
		parts[i] += " (" + p.Meaning + ")"
	}
	return "valid, with defaults: " + strings.Join(parts, ", ")
}

// read reads the parameters, but those of the search itself.
func (f *File) read(params map[string]string) (o Options, search bool, err error) {
	o = f.options()
	if text, ok := params["divide"]; ok {
		o.Divide = Divide(text)
		if text == hierarchy {
			o.Divide = Hierarchy
		}
		if text == "" || !slices.Contains([]Divide{Hierarchy, Flat, Even}, o.Divide) {
			return o, false, fmt.Errorf("parameter divide=%q is none of %s, %s, %s", text, hierarchy, Flat, Even)
		}
	}
	search = o.Divide == Hierarchy
	if text, ok := params["search"]; ok {
		if text != "on" && text != "off" {
			return o, false, fmt.Errorf("parameter search=%q is none of on, off", text)
		}
		search = text == "on"
	}
	if text, ok := params["parts"]; ok {
		if o.Parts, err = strconv.Atoi(text); err != nil || o.Parts < 2 || o.Parts > maxParts {
			return o, false, fmt.Errorf("parameter parts=%q is not a whole number from 2 to %d", text, maxParts)
		}
	}
	if text, ok := params["refresh"]; ok {
		if o.Refresh, err = strconv.ParseFloat(text, 64); err != nil || !(o.Refresh > 0) || math.IsInf(o.Refresh, 0) {
			return o, false, fmt.Errorf("parameter refresh=%q is not a number above 0", text)
		}
	}
	return o, search, nil
}

// Searching is a pass of a Policy that a search improves. The search looks at
// what is there and not at what may come: where more tasks are expected than
// pending, the pass, which does, has the last word.
type Searching struct {
	First *Policy
	After baseline.GreedySearch // its Start is First's Chooser
	// Samples is how many passes are searched from; they need a Request.Rand.
	Samples int
}

// Place implements place.Policy.
func (s Searching) Place(req place.Request) (place.Decision, error) {
	expected := 0.0
	for _, w := range slices.Sorted(maps.Keys(req.Expected)) {
		expected += req.Expected[w]
	}
	pending := 0
	for _, g := range req.Pending {
		pending += len(g.Tasks)
	}
	if expected > float64(pending) {
		return s.First.Place(req)
	}
	if s.Samples > 1 && req.Rand != nil {
		return s.best(req)
	}
	return s.After.Place(req)
}
