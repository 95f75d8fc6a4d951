package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// TestTrainGoesOn wants a run that is stopped after every step to write the
// bytes of one that is not, with another number of workers.
func TestTrainGoesOn(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	data, err := filepath.Abs(filepath.Join(home, "testdata", "throughputs.json"))
	if err != nil {
		t.Fatal(err)
	}
	args := func(more ...string) []string {
		args := little(append(more, "--updates", "2", "--imitate", "1", "--out", "p")...)
		args[3] = data
		return args
	}
	trained(t, args("--workers", "2")...)
	want, err := os.ReadFile("p")
	if err != nil {
		t.Fatal(err)
	}
	if _, errs, code := cotenant(t, args()...); code != exitFailed || !strings.Contains(errs, "holds a run already") {
		t.Errorf("a second run in the same folder: exit %d, %q", code, errs)
	}
	if err := os.RemoveAll("p.log"); err != nil {
		t.Fatal(err)
	}
	row, errs := trained(t, args("--time", "1ns", "--workers", "1")...)
	stops := 0
	for ; row["updates"] != 2.0; stops++ {
		if stops > 10 {
			t.Fatal("does not end")
		}
		if !strings.Contains(errs, "go on with: cotenant train jobs ") || !strings.Contains(errs, "--resume=p.log") {
			t.Fatalf("stderr %q does not say how to go on", errs)
		}
		row, errs = trained(t, args("--time", "1ns", "--workers", "1", "--resume", "p.log")...)
	}
	if stops < 3 {
		t.Errorf("stopped %d times; want after an imitation, a look and an update", stops)
	}
	// Stopped in front of its last look, it has that to do.
	trained(t, args("--resume", "p.log")...)
	got, err := os.ReadFile("p")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("a run that went on wrote other bytes; %v", err)
	}
	if _, errs, code := cotenant(t, args("--resume", "p.log", "--seed", "2")...); code != exitFailed || !strings.Contains(errs, "other options") {
		t.Errorf("going on with another seed: exit %d, %q", code, errs)
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

func TestTrainCtrlC(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "p")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var stdout, errs bytes.Buffer
	begin := time.Now()
	code := run(ctx, little("--updates", "100000", "--out", out), strings.NewReader(""), &stdout, &errs)
	if took := time.Since(begin); took > 20*time.Second { // 2 on a machine that does nothing else
		t.Errorf("took %s", took)
	}
	text := errs.String()
	if code != exitFailed || !strings.Contains(text, "cotenant: interrupted; after ") || !strings.Contains(text, "--resume="+out+".log") || stdout.Len() > 0 {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout.String(), text)
	}
	if _, err := os.Stat(filepath.Join(out+".log", checkpointFile)); err != nil {
		t.Errorf("no checkpoint: %v", err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a policy was written")
	}
}

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
