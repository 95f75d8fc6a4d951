package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/cotenant/cotenant/place/metis"
	"github.com/cotenant/cotenant/sim/compare"
)

// policySpec is one policy of --policy: NAME[@FILE][:key=value...], or
// exec:PROGRAM with its arguments.
type policySpec struct {
	text   string // as given; names the policy in results
	name   string
	file   string
	params map[string]string
	argv   []string // of an exec: policy

	trained *metis.File // what file holds; see loadPolicies
}

const execPrefix = "exec:"

// parsePolicies reads the values of --policy, each a comma list. A comma
// inside quotes or before another key=value does not separate policies:
//
//	greedy,greedy-search:restarts=2,swaps=100,exec:"./mine.py --weights 1,2"
func parsePolicies(values []string) ([]policySpec, error) {
	var specs []policySpec
	for _, value := range values {
		for _, part := range splitPolicies(value) {
			spec, err := parsePolicy(part)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(specs, func(s policySpec) bool { return s.text == spec.text }) {
				return nil, wrongUse("--policy %s: named twice", spec.text)
			}
			specs = append(specs, spec)
		}
	}
	return specs, nil
}

// splitPolicies cuts at the commas that separate policies.
func splitPolicies(s string) []string {
	var parts []string
	var quote rune
	start := 0
	for i, c := range s {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == ',' && !continuesParams(s[start:i], s[i+1:]):
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}
	return append(parts, s[start:])
}

// continuesParams reports whether what follows a comma is one more key=value
// of the policy before it.
func continuesParams(before, after string) bool {
	if strings.HasPrefix(before, execPrefix) || !strings.Contains(before, ":") {
		return false
	}
	item, _, _ := strings.Cut(after, ",")
	key, _, ok := strings.Cut(item, "=")
	return ok && key != "" && !strings.ContainsAny(key, ":@/\"'")
}

func parsePolicy(s string) (policySpec, error) {
	spec := policySpec{text: strings.TrimSpace(s)}
	if command, ok := strings.CutPrefix(spec.text, execPrefix); ok {
		argv, ok := splitWords(command)
		if !ok {
			return spec, wrongUse("--policy %s: a quote is not closed", s)
		}
		if len(argv) == 1 && strings.Contains(argv[0], " ") {
			// The whole command was quoted to protect its commas.
			argv, _ = splitWords(argv[0])
		}
		if len(argv) == 0 {
			return spec, wrongUse("--policy %s: name a program after exec:", s)
		}
		spec.name, spec.argv = "exec", argv
		return spec, nil
	}
	head, params, hasParams := strings.Cut(spec.text, ":")
	name, file, hasFile := strings.Cut(head, "@")
	spec.name, spec.file = name, file
	switch {
	case name == "":
		return spec, wrongUse("--policy %q: a policy has a name; known are %s", s, strings.Join(policyNames(), ", "))
	case !slices.Contains(policyNames(), name):
		return spec, unknownPolicy(name, policyNames(), "services", compare.Names(), "jobs", metisName)
	case hasFile && file == "":
		return spec, wrongUse("--policy %s: no file after @", s)
	case hasFile && name != metisName:
		return spec, wrongUse("--policy %s: %s reads no file; leave @%s out", s, name, file)
	}
	if !hasParams {
		return spec, nil
	}
	spec.params = map[string]string{}
	if params == "" {
		return spec, nil
	}
	for p := range strings.SplitSeq(strings.ReplaceAll(params, ",", ":"), ":") {
		key, value, ok := strings.Cut(p, "=")
		if p == "" {
			return spec, wrongUse("--policy %s: a parameter is empty; give key=value, or leave the : out", s)
		}
		if !ok || key == "" {
			return spec, wrongUse("--policy %s: %q is not key=value", s, p)
		}
		if _, twice := spec.params[key]; twice {
			return spec, wrongUse("--policy %s: %s is given twice", s, key)
		}
		spec.params[key] = value
	}
	return spec, nil
}

// unknownPolicy says of a name that is no policy for the one kind of things
// (services or jobs) whether it is one for the other, and which was trained for
// this one.
func unknownPolicy(name string, known []string, kind string, others []string, other, trained string) error {
	if slices.Contains(others, name) {
		return wrongUse("--policy %s: a policy for %s (plan %s, simulate %s), not for %s; known here are %s, and exec:PROGRAM; %s is the one that was trained",
			name, other, other, other, kind, strings.Join(known, ", "), trained)
	}
	return wrongUse("--policy %s: no such policy; known are %s, and exec:PROGRAM%s", name, strings.Join(known, ", "), didYouMean(name, known))
}

// underFlag is an error about --policy, told of another flag that names a policy.
func underFlag(flag string, err error) error {
	wrong := (*wrongUseError)(nil)
	if !errors.As(err, &wrong) {
		return err
	}
	return wrongUse("--%s%s", flag, strings.TrimPrefix(wrong.words, "--policy"))
}

// splitWords splits a command at spaces; quotes, single or double, hold words
// together.
func splitWords(s string) (words []string, ok bool) {
	var word strings.Builder
	var quote rune
	in := false
	for _, c := range s {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'':
			quote, in = c, true
		case c == ' ' || c == '\t':
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
		default:
			word.WriteRune(c)
			in = true
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words, quote == 0
}
