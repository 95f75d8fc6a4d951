package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/sim/compare"
)

func TestNearest(t *testing.T) {
	known := []string{"spread", "greedy", "greedy-search", "metis", "bound"}
	for word, want := range map[string]string{
		"gredy": "greedy", "greedy-serach": "greedy-search", "METIS": "metis", "meits": "metis", "bond": "bound",
		"x": "", "": "", "zebra": "", "gre": "greedy", "no": "", "sprout-x": "",
	} {
		if got := nearest(word, known); got != want {
			t.Errorf("%q: %q; want %q", word, got, want)
		}
	}
}

// A slip more or less is all that one letter makes, and the order is no matter.
func TestSlips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching("[ab]{0,6}")
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		n := slips(a, b)
		if n != slips(b, a) || (n == 0) != (a == b) || n > max(len(a), len(b)) || n < max(len(a)-len(b), len(b)-len(a)) {
			t.Fatalf("%q to %q: %d, back %d", a, b, n, slips(b, a))
		}
		if m := slips(a+"c", b); m < n-1 || m > n+1 {
			t.Fatalf("%q to %q: %d, with a letter more %d", a, b, n, m)
		}
	})
}

func TestMistypedWordsAreGuessed(t *testing.T) {
	for args, want := range map[string]string{
		"plan services --batch testdata/batch.csv --nodes 3 --policy gredy":                                             "did you mean greedy?",
		"plan services --samples testdata/samples.jsonl --batch testdata/batch.csv --nodes 3 --policy metis:pessimsm=1": "did you mean pessimism?",
		"plan services --batch testdata/batch.csv --nodes 3 --policy harmony":                                           "a policy for jobs (plan jobs, simulate jobs), not for services",
		"plan services --batch testdata/batch.csv --nodes 3 --objective meen":                                           "did you mean mean?",
		"plan services --batch testdata/batch.csv --nodes 3 --order roundrobn":                                          "did you mean roundrobin?",
		"plan services --btch x":                              "did you mean --batch?",
		"plan jobs --contention --policy metis":               "a policy for services (plan services, simulate services), not for jobs",
		"simulate jobs --contention --policy gredy-wat":       "did you mean greedy-wait?",
		"simulate jbos":                                       "did you mean jobs?",
		"trian jobs":                                          "did you mean train?",
		"fit --model nueral --samples testdata/samples.jsonl": "did you mean neural?",
	} {
		if _, errs, code := cotenant(t, strings.Fields(args)...); code != exitWrongUse || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %q; want %q", args, code, errs, want)
		}
	}
}

// What the error of an unknown parameter lists, with its default, is accepted,
// for every policy; and what is accepted is listed.
func TestParametersThatAreListedAreAccepted(t *testing.T) {
	for name, b := range builtins() {
		_, errs, _ := cotenant(t, tiny("--policy", name+":colour=1")...)
		if !strings.Contains(errs, `unknown parameter "colour"`) {
			t.Errorf("%s: %q", name, errs)
		}
		for _, p := range b.all() {
			if !strings.Contains(errs, " "+p.Key+"="+p.Standard+" (") {
				t.Errorf("%s: %q lacks %s", name, errs, p.Key)
			}
			spec := name + ":" + p.Key + "=" + p.Standard
			if out, errs, code := cotenant(t, tiny("--policy", spec, "-o", "json")...); code != 0 || !strings.Contains(out, spec) {
				t.Errorf("%s: exit %d, %q", spec, code, errs)
			}
		}
		for _, key := range []string{trainedParam, pessimismParam} {
			listed := slices.ContainsFunc(strings.Fields(errs), func(w string) bool { return strings.HasPrefix(w, key+"=") })
			value := map[string]string{trainedParam: "table", pessimismParam: "1"}[key]
			_, _, code := cotenant(t, tiny("--policy", fmt.Sprintf("%s:%s=%s", name, key, value))...)
			if listed != (code == 0) {
				t.Errorf("%s: %s is listed: %v, exit %d", name, key, listed, code)
			}
		}
	}
	for _, name := range compare.Names() {
		_, errs, code := cotenant(t, small("--policy", name+":colour=1")...)
		if code == 0 || !strings.Contains(errs, `unknown parameter "colour"`) || !strings.Contains(errs, "pessimism=0") || strings.Contains(errs, "learn=0") != (name == compare.Harmony) {
			t.Errorf("%s: exit %d, %q", name, code, errs)
		}
	}
}
