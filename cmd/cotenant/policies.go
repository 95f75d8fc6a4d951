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
	trained   *metis.File // of the policy metis; nil is the one that ships
}

// builtin makes a policy. Errors say which parameter is wrong and list those
// that are valid.
type builtin func(o policyOptions, pessimism float64, params map[string]string) (place.Policy, error)

// builtins are the policies by name.
func builtins() map[string]builtin {
	all := map[string]builtin{
		"bound": func(o policyOptions, pessimism float64, params map[string]string) (place.Policy, error) {
			return bound.New(o.model, bound.Options{Pessimism: pessimism, Explain: o.explain}), noParams(params)
		},
		"measured": func(o policyOptions, pessimism float64, params map[string]string) (place.Policy, error) {
			return bound.NewMeasured(o.model, bound.Options{Explain: o.explain}), noParams(params)
		},
		"medea": func(o policyOptions, _ float64, params map[string]string) (place.Policy, error) {
			threshold := bound.MedeaThreshold
			for _, key := range slices.Sorted(maps.Keys(params)) {
				v, err := strconv.ParseFloat(params[key], 64)
				if key != "threshold" || err != nil || !(v > 0) || math.IsInf(v, 0) {
					return nil, fmt.Errorf("parameter %s=%s; it has only threshold, the performance that neighbours must leave, above 0", key, params[key])
				}
				threshold = v
			}
			return bound.NewMedea(o.model, threshold, bound.Options{Explain: o.explain}), nil
		},
	}
	all[metisName] = func(o policyOptions, pessimism float64, params map[string]string) (place.Policy, error) {
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
	for _, name := range baseline.Names() {
		all[name] = func(o policyOptions, pessimism float64, params map[string]string) (place.Policy, error) {
			return baseline.New(name, baseline.Options{Model: o.model, Pessimism: pessimism, Params: params, Explain: o.explain})
		}
	}
	return all
}

// metisName is the policy whose networks come from a file, and trainedParam
// which of those that ship.
const (
	metisName    = "metis"
	trainedParam = "trained"
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
	names = slices.DeleteFunc(names, func(n string) bool { return known[n] == nil })
	for _, n := range slices.Sorted(maps.Keys(known)) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

func noParams(params map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(params)) {
		return fmt.Errorf("unknown parameter %q; it has only pessimism", key)
	}
	return nil
}

// openPolicy makes the policy of a spec. closePolicy ends what it started.
func openPolicy(ctx context.Context, spec policySpec, o policyOptions) (p place.Policy, closePolicy func(), err error) {
	if spec.name == "exec" {
		e := external.New(ctx, spec.argv, external.Options{Model: o.model, Timeout: o.timeLimit})
		return e, func() { _ = e.Close() }, nil
	}
	o.trained = spec.trained
	params := maps.Clone(spec.params)
	pessimism := 0.0
	if text, ok := params["pessimism"]; ok {
		delete(params, "pessimism")
		if pessimism, err = strconv.ParseFloat(text, 64); err != nil || !(pessimism >= 0) || math.IsInf(pessimism, 0) {
			return nil, nil, wrongUse("--policy %s: pessimism %q is not a number of standard deviations, 0 or more", spec.text, text)
		}
	}
	p, err = builtins()[spec.name](o, pessimism, params)
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
}

func computeBound(req place.Request, m interference.Model) (limitOf, error) {
	r, err := bound.Compute(req, m, bound.Options{})
	if err != nil {
		return limitOf{value: math.NaN()}, err
	}
	return limitOf{r.Bound, r.Proven}, nil
}

func isInfeasible(err error) bool { return errors.Is(err, bound.ErrInfeasible) }
