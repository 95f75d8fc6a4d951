package main

import (
	"strings"
	"testing"
)

// fit says where in its file the samples stand that it refuses, and quotes them
// as they are there.
func TestFitSaysWhereTheSamplesStand(t *testing.T) {
	const line = `{"colocation":{"a":2},"workload":"a","metric":"rate",`
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"contradiction": {
			line + `"value":8,"alone":10}` + "\n\n" + line + `"value":2,"alone":40}` + "\n",
			[]string{"s.jsonl: lines 3 and 1: contradictory", "measured as 2 (alone 40) and as 8 (alone 10)"},
		},
		"no performance": {
			strings.Replace(line, "2", "1", 1) + `"value":2}` + "\n" + line + `"value":1e20}` + "\n",
			[]string{"s.jsonl: line 2: rate of a in a*2", "1e+20 is 5e+19 times the rate alone, 2"},
		},
	} {
		out, errs, code := cotenant(t, "fit", "--samples", file(t, "s.jsonl", c.text), "--model", "linear", "--train", "1")
		if code != exitFailed || out != "" {
			t.Errorf("%s: exit %d, %s", name, code, out)
		}
		for _, want := range c.want {
			if !strings.Contains(errs, want) {
				t.Errorf("%s: %q lacks %q", name, errs, want)
			}
		}
	}
}

// What --out writes is a kind that --model names.
func TestFitWritesAKindThatWasNamed(t *testing.T) {
	for _, c := range []struct {
		models string
		code   int
		want   string
	}{
		{"linear,forest", exitWrongUse, "--model linear,forest: --out and --onnx write one model, and neural is not among these"},
		{"forest", exitDone, "m.model: forest,"},
	} {
		out := t.TempDir() + "/m.model"
		_, errs, code := cotenant(t, "fit", "--samples", "testdata/samples.jsonl", "--model", c.models, "--out", out)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit %d, %q; want %d and %q", c.models, code, errs, c.code, c.want)
		}
	}
}
