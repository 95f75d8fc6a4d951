package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFitKeepsItsInput wants no flag to write over the measurements, nor two to
// write one file.
func TestFitKeepsItsInput(t *testing.T) {
	dir := t.TempDir()
	samples, out := filepath.Join(dir, "s.jsonl"), filepath.Join(dir, "m")
	text, err := os.ReadFile("testdata/samples.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(samples, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"would be lost": {"--out", filepath.Join(dir, ".", "s.jsonl")},
		"name two":      {"--out", out, "--onnx", out},
		"same file":     {"--out", out + ".json", "--onnx", out},
	} {
		_, stderr, code := cotenant(t, append([]string{"fit", "--samples", samples, "--model", "linear"}, args...)...)
		if code != exitWrongUse || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d, stderr %q; want %q", args, code, stderr, want)
		}
	}
	if left, err := os.ReadFile(samples); err != nil || !bytes.Equal(left, text) {
		t.Errorf("the samples changed: %v", err)
	}
}

// TestCtrlC wants every verb that works for long to end at once, with exit
// code 1, one line that says so, and no file behind it.
func TestCtrlC(t *testing.T) {
	dir := t.TempDir()
	for name, args := range map[string][]string{
		"fit":  append(strings.Fields("fit --samples testdata/samples.jsonl --model neural --seeds 10000 --out"), filepath.Join(dir, "m.model")),
		"plan": append(strings.Fields("plan services --samples testdata/samples.jsonl --batch testdata/batch.csv --nodes 100000 --seeds 10000 --out"), filepath.Join(dir, "run")),
		"demo": append(strings.Fields("demo --seeds 100 --report"), filepath.Join(dir, "r.html")),
		"exec": append(strings.Fields("plan services --samples testdata/samples.jsonl --batch testdata/batch.csv --nodes 3 --time-limit 1h --policy"), "exec:sleep 1000"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			var out, errs bytes.Buffer
			begin := time.Now()
			code := run(ctx, args, strings.NewReader(""), &out, &errs)
			if took := time.Since(begin); took > 6*time.Second { // 1.3 on a machine that does nothing else
				t.Errorf("took %s", took)
			}
			if code != exitFailed || strings.Count(errs.String(), "interrupted") != 1 || !strings.HasPrefix(errs.String(), "cotenant: interrupted; ") {
				t.Errorf("exit code %d, stderr %q", code, errs.String())
			}
		})
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}
