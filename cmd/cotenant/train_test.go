package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/place/harmony"
)

// little is `train jobs` on four made-up workloads.
func little(more ...string) []string {
	return append([]string{
		"train", "jobs", "--throughputs", "testdata/throughputs.json", "--nodes", "v100:4,k80:2", "--jobs", "40", "--episodes", "8",
	}, more...)
}

func trained(t *testing.T, args ...string) (row map[string]any, errs string) {
	t.Helper()
	out, errs, code := cotenant(t, append(args, "-o", "json")...)
	var rows []map[string]any
	if err := json.Unmarshal([]byte(out), &rows); code != 0 || err != nil || len(rows) != 1 {
		t.Fatalf("%v: exit %d, %v, stdout %q, stderr %q", args, code, err, out, errs)
	}
	return rows[0], errs
}

func TestTrainJobs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p.safetensors")
	row, errs := trained(t, little("--updates", "2", "--out", path, "--observed", "0.6", "--model-kind", "linear", "--beliefs", "2")...)
	if row["truth_calls"] != 0.0 || row["updates"] != 2.0 || row["jct_over_spread"] == nil || row["jct_over_greedy_wait"] == nil || row["untrained_over_spread"] == nil {
		t.Errorf("result %v", row)
	}
	if !strings.Contains(errs, "wrote "+path) {
		t.Errorf("stderr %q", errs)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f, err := harmony.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(f.Training.Data, "sha256:") || !strings.Contains(f.Training.Command, "--observed=0.6") || f.Training.Seeds[0] != 1 {
		t.Errorf("training is noted as %+v", f.Training)
	}
	lines, err := os.ReadFile(filepath.Join(path+".log", "scalars.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	// Two updates, and looks before, and after the last.
	if n := bytes.Count(lines, []byte("\n")); n != 4 || !bytes.Contains(lines, []byte(`"validation/jct_over_greedy_wait":`)) {
		t.Errorf("%d lines of scalars: %s", n, lines)
	}
	if events, err := filepath.Glob(filepath.Join(path+".log", "events.out.tfevents.*")); err != nil || len(events) != 1 {
		t.Errorf("event files %v, %v", events, err)
	}
	// What was trained can be used.
	_, errs, code := cotenant(t, "simulate", "jobs", "--throughputs", "testdata/throughputs.json", "--nodes", "v100:4,k80:2", "--jobs", "20", "--policy", "harmony@"+path)
	if code != 0 {
		t.Errorf("simulate: exit %d: %s", code, errs)
	}
}

// home is where the tests are, for those that work elsewhere.
var home = func() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return dir
}()

func TestTrainWrongUse(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "p")
	for want, args := range map[string][]string{
		"give --out FILE":              little(),
		"how fast do jobs run":         {"train", "jobs", "--nodes", "v100:4", "--out", out},
		"keep one":                     {"train", "jobs", "--samples", "x", "--contention", "--out", out},
		"where do jobs run":            {"train", "jobs", "--samples", "testdata/samples.jsonl", "--out", out},
		"--updates -1":                 little("--out", out, "--updates", "-1"),
		"--observed 1.5":               little("--out", out, "--observed", "1.5"),
		"--load 2:1":                   little("--out", out, "--load", "2:1"),
		"--time -1s":                   little("--out", out, "--time", "-1s"),
		"--beliefs 1000":               little("--out", out, "--beliefs", "1000"),
		"--model-kind table":           little("--out", out, "--model-kind", "table"),
		"a run goes on in its own":     little("--out", out, "--log", "a", "--resume", "b"),
		"--out: write":                 little("--out", filepath.Join(dir, "no", "p")),
		"unexpected argument \"v100\"": little("v100", "--out", out),
	} {
		if _, errs, code := cotenant(t, args...); code != exitWrongUse || !strings.Contains(errs, want) {
			t.Errorf("%v: exit %d, stderr %q; want %q", args, code, errs, want)
		}
	}
	_, errs, code := cotenant(t, little("--out", out, "--resume", dir)...)
	if code != exitFailed || !strings.Contains(errs, "no run to go on with") {
		t.Errorf("--resume of nothing: exit %d, %q", code, errs)
	}
}

// TestSimulateLearning wants learning to be asked for, and only of what can.
func TestSimulateLearning(t *testing.T) {
	for want, args := range map[string][]string{
		"add --online":     small("--policy", "harmony:learn=1"),
		"learn is 1 or 0":  small("--policy", "harmony:learn=2", "--online"),
		"only for harmony": small("--policy", "greedy:learn=1", "--online"),
	} {
		if _, errs, code := cotenant(t, args...); code != exitWrongUse || !strings.Contains(errs, want) {
			t.Errorf("%v: exit %d, stderr %q; want %q", args, code, errs, want)
		}
	}
	args := small("--policy", "harmony:learn=1,harmony:learn=0,harmony", "--online", "--load", "1.2", "--jobs", "400", "-o", "csv")
	out, errs, code := cotenant(t, args...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	row := func(policy string) string {
		_, rest, _ := strings.Cut(out, "\n"+policy+",")
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}
	if plain := row("harmony"); plain == "" || row("harmony:learn=0") != plain || row("harmony:learn=1") == plain || row("harmony:learn=1") == "" {
		t.Errorf("learning makes no difference, or where it is off one: %s", out)
	}
	if again, _, _ := cotenant(t, args...); again != out {
		t.Error("the same seed came to something else")
	}
}
