package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cotenant/cotenant/external"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/place/bound"
	"github.com/cotenant/cotenant/place/metis"
)

// policyOptions is what every policy is given.
type policyOptions struct {
	model     interference.Model
	timeLimit time.Duration
	explain   bool
	pessimism float64     // of policies that search, unless told otherwise
	trained   *metis.File // of the policy metis; nil is the one that ships
}

// builtin is a policy that ships.
type builtin struct {
	// params are its own; a policy that believes predictions takes pessimism too.
	params   []baseline.Param
	believes bool
	// moves: it may be told to move what runs.
	moves bool
	make  func(o policyOptions, pessimism float64, params map[string]string) (place.Policy, error)
}

// medeaTuned is the threshold of medea that the policy finds itself.
const medeaTuned = "tuned"

// builtins are the policies by name.
func builtins() map[string]builtin {
	all := map[string]builtin{
		"bound": {believes: true, make: func(o policyOptions, pessimism float64, _ map[string]string) (place.Policy, error) {
			return bound.New(o.model, bound.Options{Pessimism: pessimism, Explain: o.explain}), nil
		}},
		"measured": {make: func(o policyOptions, _ float64, _ map[string]string) (place.Policy, error) {
			return bound.NewMeasured(o.model, bound.Options{Explain: o.explain}), nil
		}},
		"medea": {
			params: []baseline.Param{{Key: "threshold", Standard: medeaTuned, Meaning: "the performance that neighbours must leave, above 0; " + medeaTuned + " tries several and takes the plan that is best by the model"}},
			make: func(o policyOptions, _ float64, params map[string]string) (place.Policy, error) {
				threshold := 0.0
				if text, given := params["threshold"]; given && text != medeaTuned {
					v, err := strconv.ParseFloat(text, 64)
					if err != nil || !(v > 0) || math.IsInf(v, 0) {
						return nil, fmt.Errorf("parameter threshold=%s is neither %s nor a number above 0", text, medeaTuned)
					}
					threshold = v
				}
				return bound.NewMedea(o.model, threshold, bound.Options{Explain: o.explain}), nil
			},
		},
		metisName: {params: metisParams(), believes: true, moves: true, make: makeMetis},
	}
	for _, name := range baseline.Names() {
		all[name] = builtin{
			params: baseline.Params(name), believes: slices.Contains([]string{"greedy", "greedy-search"}, name),
			moves: slices.Contains([]string{"greedy", "greedy-search"}, name),
			make: func(o policyOptions, pessimism float64, params map[string]string) (place.Policy, error) {
				return baseline.New(name, baseline.Options{Model: o.model, Pessimism: pessimism, Params: params, Explain: o.explain})
			},
		}
	}
	return all
}

// metisParams are those of the policy metis, and which one that ships.
func metisParams() []baseline.Param {
	params := []baseline.Param{{
		Key: trainedParam, Standard: metis.Embedded,
		Meaning: metis.Embedded + ", on the measurements that ship and on made-up ones, or " + metis.Table + ", on that of Metis's authors; not with @FILE",
	}}
	for _, p := range (&metis.File{}).Params() {
		params = append(params, baseline.Param(p))
	}
	return params
}

func makeMetis(o policyOptions, pessimism float64, params map[string]string) (place.Policy, error) {
	file := o.trained
	if trained, given := params[trainedParam]; file == nil {
		var err error
		if file, err = metis.Shipped(trained); err != nil {
			return nil, err
		}
	} else if given {
		return nil, fmt.Errorf("parameter trained=%s chooses among the policies that ship; a file is given", trained)
	}
	delete(params, trainedParam)
	return file.Policy(metis.Settings{Model: o.model, Pessimism: pessimism, Params: params, Explain: o.explain})
}

// all are the parameters that the policy takes.
func (b builtin) all() []baseline.Param {
	all := slices.Clone(b.params)
	if b.believes {
		all = append(all, baseline.Param{Key: pessimismParam, Standard: "0", Meaning: "standard deviations by which predictions are lowered; 1 where the policy searches and the model is unsure"})
	}
	if b.moves {
		all = append(all, baseline.MovingParams()...)
	}
	return all
}

// check refuses parameters that the policy does not take, and lists those that
// it does.
func (b builtin) check(params map[string]string) error {
	var keys, words []string
	for _, p := range b.all() {
		keys = append(keys, p.Key)
		words = append(words, fmt.Sprintf("%s=%s (%s)", p.Key, p.Standard, p.Meaning))
	}
	for _, key := range slices.Sorted(maps.Keys(params)) {
		switch {
		case slices.Contains(keys, key):
		case len(keys) == 0:
			return fmt.Errorf("unknown parameter %q; it has none", key)
		default:
			return fmt.Errorf("unknown parameter %q%s; valid, with defaults: %s", key, didYouMean(key, keys), strings.Join(words, ", "))
		}
	}
	return nil
}

// metisName is the policy whose networks come from a file, trainedParam which of
// those that ship, and pessimismParam a parameter of all that believe a model.
const (
	metisName      = "metis"
	trainedParam   = "trained"
	pessimismParam = "pessimism"
)

// loadPolicies reads the files that specs name.
func loadPolicies(in *inputs, specs []policySpec) error {
	for i, s := range specs {
		if s.file == "" {
			continue
		}
		data, err := in.read("policy", s.file)
		if err != nil {
			return err
		}
		if specs[i].trained, err = metis.Load(bytes.NewReader(data)); err != nil {
			return fmt.Errorf("--policy %s: %w", s.text, err)
		}
	}
	return nil
}

// policyNames lists the built-in policies in the order of tables: those that
// look at requests only, those that look at measurements, those that search.
func policyNames() []string {
	names := []string{"spread", "binpack", "random", "tetris", "paragon", "medea", "measured", "greedy", "greedy-search", metisName, "bound"}
	known := builtins()
	names = slices.DeleteFunc(names, func(n string) bool { return known[n].make == nil })
	for _, n := range slices.Sorted(maps.Keys(known)) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// shownPolicies are those of a plan where none is named: all, and the trained one
// also without a search.
func shownPolicies() []string {
	names := policyNames()
	if at := slices.Index(names, metisName); at >= 0 {
		names = slices.Insert(names, at, onePass)
	}
	return names
}

// onePass is the trained policy alone.
const onePass = metisName + ":search=off"

// openPolicy makes the policy of a spec. closePolicy ends what it started.
func openPolicy(ctx context.Context, spec policySpec, o policyOptions) (p place.Policy, closePolicy func(), err error) {
	if spec.name == "exec" {
		e := external.New(ctx, spec.argv, external.Options{Model: o.model, Timeout: o.timeLimit})
		return e, func() { _ = e.Close() }, nil
	}
	o.trained = spec.trained
	b, params := builtins()[spec.name], maps.Clone(spec.params)
	if err := b.check(params); err != nil {
		return nil, nil, wrongUse("--policy %s: %v", spec.text, err)
	}
	pessimism := 0.0
	if spec.searches() {
		pessimism = o.pessimism
	}
	if text, ok := params[pessimismParam]; ok {
		delete(params, pessimismParam)
		if pessimism, err = strconv.ParseFloat(text, 64); err != nil || !(pessimism >= 0) || math.IsInf(pessimism, 0) {
			return nil, nil, wrongUse("--policy %s: pessimism %q is not a number of standard deviations, 0 or more", spec.text, text)
		}
	}
	moving := baseline.TakeMoving(params)
	if p, err = b.make(o, pessimism, params); err == nil {
		p, err = baseline.NewMoving(p, baseline.Options{Model: o.model, Pessimism: pessimism, Params: moving})
	}
	if err != nil {
		return nil, nil, wrongUse("--policy %s: %v", spec.text, err)
	}
	return p, func() {}, nil
}

// limitOf is the bound on what any placement of the request can reach, as the
// objective is printed; NaN where there is none.
type limitOf struct {
	value  float64
	proven bool
	// silent of so many co-locations that nodes could hold are left out: the
	// model knows nothing of them.
	silent, options int
}

func computeBound(req place.Request, m interference.Model) (limitOf, error) {
	r, err := bound.Compute(req, m, bound.Options{})
	if err != nil {
		return limitOf{value: math.NaN()}, err
	}
	return limitOf{r.Bound, r.Proven, r.Silent, r.Options}, nil
}

func isInfeasible(err error) bool { return errors.Is(err, bound.ErrInfeasible) }
