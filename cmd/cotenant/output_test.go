package main

import (
	"math"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestNumbersThatAreNoneAreNull(t *testing.T) {
	rows := []map[string]number{{"a": 1.5, "b": number(math.NaN()), "c": number(math.Inf(1))}}
	var out strings.Builder
	if err := writeJSON(&out, rows); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "[\n  {\"a\":1.5,\"b\":null,\"c\":null}\n]\n"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	out.Reset()
	if err := writeJSON(&out, []int{}); err != nil || out.String() != "[]\n" {
		t.Errorf("no rows: %q, %v", out.String(), err)
	}
}

// YAML keeps text that looks like something else text.
func TestYAMLKeepsKinds(t *testing.T) {
	type row struct {
		Z, A string
		N    number
	}
	in := row{"true", "exec:x # y", 0.5}
	var out strings.Builder
	if err := writeYAML(&out, []row{in}); err != nil {
		t.Fatal(err)
	}
	if strings.Index(out.String(), "Z:") > strings.Index(out.String(), "A:") {
		t.Errorf("%q: the order of the fields is lost", out.String())
	}
	var back []map[string]any
	if err := yaml.Unmarshal([]byte(out.String()), &back); err != nil {
		t.Fatal(err)
	}
	if back[0]["Z"] != "true" || back[0]["A"] != in.A || back[0]["N"] != 0.5 {
		t.Errorf("%q reads as %v", out.String(), back[0])
	}
}

func TestTablesAlign(t *testing.T) {
	var out strings.Builder
	if err := writeTable(&out, []string{"name", " value"}, [][]string{{"a", "1.25"}, {"longer", "10.00"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "NAME    VALUE\na        1.25\nlonger  10.00\n"; got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func TestTheSpreadOverSeeds(t *testing.T) {
	value := func(p plan) number { return p.ValueTrue }
	for _, c := range []struct {
		values []number
		want   string
	}{
		{[]number{2}, "2.00"},
		{[]number{1, 2, 3}, "2.00 +- 1.00"},
		{[]number{1, number(math.NaN())}, "1.00"},
		{[]number{1, number(math.NaN()), 3}, "2.00 +- 1.41"},
		{[]number{number(math.NaN()), number(math.NaN())}, "-"},
	} {
		var plans []plan
		for _, v := range c.values {
			plans = append(plans, plan{ValueTrue: v})
		}
		if got := spreadOf(plans, value, 2); got != c.want {
			t.Errorf("%v: %q; want %q", c.values, got, c.want)
		}
	}
}
