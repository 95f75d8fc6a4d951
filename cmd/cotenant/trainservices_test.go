package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/place/metis"
)

// littleServices is `train services` on a few made-up workloads.
func littleServices(more ...string) []string {
	return append([]string{"train", "services", "--samples", "testdata/samples.jsonl", "--slots", "3"}, more...)
}

func readPolicy(t *testing.T, path string) *metis.File {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f, err := metis.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTrainServices(t *testing.T) {
	dir := t.TempDir()
	path, log := filepath.Join(dir, "p"), filepath.Join(dir, "log")
	row, errs := trained(t, littleServices("--updates", "2", "--out", path, "--log", log, "--source", "made up")...)
	if row["updates"] != 2.0 || row["world"] != "batches" || row["above_greedy"] == nil || row["untrained_above_greedy"] == nil {
		t.Errorf("result %v", row)
	}
	if !strings.Contains(errs, "wrote "+path) {
		t.Errorf("stderr %q", errs)
	}
	tr := readPolicy(t, path).Training
	if !strings.HasPrefix(tr.Data, "sha256:") || tr.Source != "made up" || tr.Batches.Has(tr.Validation.First) || tr.Validation.Last-tr.Validation.First != 63 {
		t.Errorf("training is noted as %+v", tr)
	}
	if !strings.Contains(tr.Command, "--out=p ") || strings.Contains(tr.Command, dir) || !strings.Contains(tr.Command, "--slots=3") {
		t.Errorf("command %q", tr.Command)
	}
	lines, err := os.ReadFile(filepath.Join(log, "scalars.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	// Two updates, and looks before and after.
	if n := bytes.Count(lines, []byte("\n")); n != 4 || !bytes.Contains(lines, []byte(`"validation/above_greedy_batches":`)) {
		t.Errorf("%d lines of scalars: %s", n, lines)
	}
	if events, err := filepath.Glob(filepath.Join(log, "events.out.tfevents.*")); err != nil || len(events) != 1 {
		t.Errorf("event files %v, %v", events, err)
	}
	// What was trained can be used.
	if _, errs, code := cotenant(t, "plan", "services", "--samples", "testdata/samples.jsonl", "--batch", "testdata/batch.csv", "--nodes", "4", "--policy", "metis@"+path); code != 0 {
		t.Errorf("plan: exit %d: %s", code, errs)
	}
	if _, errs, code := cotenant(t, littleServices("--out", path, "--log", log)...); code != exitFailed || !strings.Contains(errs, "holds a run already") {
		t.Errorf("a second run in the same folder: exit %d, %q", code, errs)
	}
}

// Without --slots they learn on nodes of as many as were measured together, as
// plans are made; a run of a version that knew 8 only goes on with 8.
func TestTrainServicesSlots(t *testing.T) {
	t.Chdir(t.TempDir())
	args := []string{"train", "services", "--samples", filepath.Join(home, "testdata", "samples.jsonl"), "--updates", "1"}
	trained(t, append(args, "--out", "p")...)
	trained(t, append(args, "--out", "q", "--slots", "3")...)
	if p, q := readPolicy(t, "p"), readPolicy(t, "q"); !reflect.DeepEqual(p.Nets, q.Nets) || strings.Contains(p.Training.Command, "slots") {
		t.Errorf("trained otherwise than with --slots 3 by %q", p.Training.Command)
	}
	state := filepath.Join("p.log", stateFile)
	old := regexp.MustCompile(`,?\s*"slots": ?3`).ReplaceAll(mustRead(t, state), nil)
	if err := os.WriteFile(state, old, 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs := trained(t, append(args, "--out", "p", "--resume", "p.log")...)
	if !strings.Contains(errs, "not every co-location of up to 8 tasks") {
		t.Errorf("stderr %q", errs)
	}
}

func TestTrainServicesWrongUse(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "p")
	for want, args := range map[string][]string{
		"give --out FILE":            littleServices(),
		"keep one":                   littleServices("--out", out, "--model", "x"),
		"--slots is of --samples":    {"train", "services", "--out", out, "--slots", "4"},
		"--slots 1":                  littleServices("--out", out, "--slots", "1"),
		"--updates 0":                littleServices("--out", out, "--updates", "0"),
		"--time -1s":                 littleServices("--out", out, "--time", "-1s"),
		"--workers -1":               littleServices("--out", out, "--workers", "-1"),
		"that is the file":           littleServices("--out", "testdata/samples.jsonl"),
		"--out: write":               littleServices("--out", filepath.Join(dir, "no", "p")),
		"a run goes on in its own":   littleServices("--out", out, "--log", "a", "--resume", "b"),
		"--source says whose --samp": {"train", "services", "--out", out, "--source", "me"},
		"--output xml":               littleServices("--out", out, "-o", "xml"),
	} {
		if _, errs, code := cotenant(t, args...); code != exitWrongUse || !strings.Contains(errs, want) {
			t.Errorf("%v: exit %d, stderr %q; want %q", args, code, errs, want)
		}
	}
	if _, errs, code := cotenant(t, "train", "services", "--out", out, "--model", "none"); code != exitFailed || !strings.Contains(errs, "there is no file") {
		t.Errorf("--model of nothing: exit %d, %q", code, errs)
	}
}

// TestTrainServicesForAny wants both worlds in the result where no file is
// given.
func TestTrainServicesForAny(t *testing.T) {
	if testing.Short() {
		t.Skip("a model is fitted to what ships: some seconds")
	}
	out, errs, code := cotenant(t, "train", "services", "--updates", "1", "--out", filepath.Join(t.TempDir(), "p"), "-o", "json")
	var rows []trainServicesRow
	if err := json.Unmarshal([]byte(out), &rows); code != 0 || err != nil || len(rows) != 2 || rows[0].World != "embedded" || rows[1].World != "generated" {
		t.Errorf("exit %d, %v, stdout %q, stderr %q", code, err, out, errs)
	}
}
