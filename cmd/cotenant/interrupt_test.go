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
