package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/train/harmony"
)

// variant is the training with one thing changed.
type variant struct {
	name, what string
	// kind of model that is trained on; "" means neural.
	kind string
	// untrained variants make no updates.
	untrained bool
	change    func(*harmony.Config)
}

// full is the variant that the others are held against.
const full = "full"

// rules stands among the results for the policies by rule that all are held
// against: one run, of no training.
const rules = "rules"

var variants = []variant{
	{name: full, what: "all parts"},
	{name: "forget", what: "without replay of good episodes", change: func(c *harmony.Config) { c.Forget = true }},
	{name: "unaware", what: "without job-aware exploration", change: func(c *harmony.Config) { c.Unaware = true }},
	{name: "unlearned", what: "trained without a learned model: a fair share where nothing was measured", kind: interference.KindTable},
	{name: "progress", what: "rewarded by progress, as in the paper", change: func(c *harmony.Config) { c.Reward = harmony.Progress }},
	{name: "imitation", what: "no updates: the warm start alone", untrained: true},
}

// chosen are the variants of -only, in the order of variants, rules first.
func chosen(only string) ([]variant, error) {
	all := append([]variant{{name: rules, untrained: true}}, variants...)
	switch only {
	case "":
		return all, nil
	case "none":
		return nil, nil
	}
	var out []variant
	names := strings.Split(only, ",")
	for _, v := range all {
		if at := slices.Index(names, v.name); at >= 0 {
			out = append(out, v)
			names = slices.Delete(names, at, at+1)
		}
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("-only %s: no such variant: %s", only, strings.Join(names, ", "))
	}
	return out, nil
}

// seedsOf reads seeds and ranges: 0-4,7.
func seedsOf(text string) ([]uint64, error) {
	var out []uint64
	for _, part := range strings.Split(text, ",") {
		low, high, ok := strings.Cut(part, "-")
		if !ok {
			high = low
		}
		a, err1 := strconv.ParseUint(low, 10, 16)
		b, err2 := strconv.ParseUint(high, 10, 16)
		if err1 != nil || err2 != nil || b < a {
			return nil, fmt.Errorf("-seeds %s: give seeds and ranges such as 0-4,7", text)
		}
		for s := a; s <= b; s++ {
			out = append(out, s)
		}
	}
	return out, nil
}
