package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/place/harmony"
	"github.com/cotenant/cotenant/place/jobs"
)

// small is `simulate jobs` on four made-up workloads.
func small(more ...string) []string {
	return append([]string{
		"simulate", "jobs", "--throughputs", "testdata/throughputs.json", "--nodes", "v100:4,k80:2", "--jobs", "60", "--durations", "5m:2h", "--backfill",
	}, more...)
}

func TestSimulateJobsGolden(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
	}{
		// The rules alone: what ships of harmony is trained anew now and then.
		{"simulate.table", small("--seeds", "3", "--load", "1", "--policy", strings.Join(jobs.Names(), ","))},
		{"simulate.csv", small("--policy", "greedy,greedy-wait:threshold.v100=0.4:threshold.k80=0.1", "-o", "csv", "--seeds", "2")},
		{"simulate.json", small("--policy", "greedy:truth", "-o", "json")},
		{"simulate-tuned.table", small("--policy", "greedy-wait,greedy-wait:truth", "--tune", "6", "--tune-seeds", "100:2")},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, errs, code := cotenant(t, c.args...)
			if code != 0 {
				t.Fatalf("exit %d: %s", code, errs)
			}
			golden(t, c.name, out)
		})
	}
}

// Without --policy all that is built in runs, the trained one too; its file
// gives the same, and is named in the manifest.
func TestSimulateTrainedPolicy(t *testing.T) {
	out, errs, code := cotenant(t, small("--jobs", "20", "-o", "csv")...)
	if code != 0 || !strings.Contains(out, "\nharmony,1,20,") {
		t.Fatalf("exit %d, stdout %q, stderr %q", code, out, errs)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "p.safetensors")
	f, err := harmony.Shipped(history.ScopeDevice)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := harmony.Save(&b, f); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	policy := "harmony@" + path
	same, errs, code := cotenant(t, small("--jobs", "20", "-o", "csv", "--policy", policy, "--out", filepath.Join(dir, "out"))...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	_, want, _ := strings.Cut(out, "\nharmony,")
	if _, got, _ := strings.Cut(same, "\n"+policy+","); got != want {
		t.Errorf("the shipped policy as a file gives %q, want %q", got, want)
	}
	manifest, err := os.ReadFile(filepath.Join(dir, "out", "manifest.json"))
	if err != nil || !strings.Contains(string(manifest), path) {
		t.Errorf("the manifest does not name the file: %s, %v", manifest, err)
	}
	if err := os.WriteFile(path, b.Bytes()[:b.Len()-9], 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		policy, want string
		code         int
	}{
		{policy, "truncated", exitFailed},
		{"harmony@testdata/throughputs.json", "not a Cotenant policy file for jobs", exitFailed},
		{"harmony@none.safetensors", "no file", exitFailed},
		{"harmony:threshold=1", "valid, with defaults: max-wait", exitWrongUse},
		{"harmony:welcome=1", "unknown parameter", exitWrongUse},
		{"greedy@" + path, "greedy reads no file", exitWrongUse},
	} {
		out, errs, code := cotenant(t, small("--policy", c.policy)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q; want %d and %q", c.policy, code, out, errs, c.code, c.want)
		}
	}
}

// What the options change can be seen in every policy's runs.
func TestSimulateJobsTakesAllOptions(t *testing.T) {
	rows := func(args ...string) []jobRow {
		t.Helper()
		out, errs, code := cotenant(t, args...)
		if code != 0 {
			t.Fatalf("exit %d: %s", code, errs)
		}
		var rows []jobRow
		if err := json.Unmarshal([]byte(out), &rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	for _, r := range rows(small("--policy", "binpack,tetris,fastest,linear,greedy,greedy-wait,matching,greedy:truth", "-o", "json", "--migrate", "30s",
		"--mtbf", "20h", "--repair", "10m", "--job-failures", "0.2", "--priorities", "--interval", "1m", "--stale", "30s", "--sizes", "1:3,2:1",
		"--observed", "0.5", "--model-kind", "linear", "--model-seed", "9", "--online")...) {
		if r.Unfinished > 0 || r.Restarts == 0 || r.MeanJCT < r.LowerBound || r.Policy == "greedy" && r.Moves == 0 {
			t.Errorf("%+v", r)
		}
	}
	for _, r := range rows("simulate", "jobs", "--contention", "--nodes", "3", "--rack-size", "2", "--jobs", "30", "--seeds", "2",
		"--policy", "greedy,greedy-wait,greedy:truth", "--profile", "60", "--model-kind", "linear", "-o", "json", "--backfill") {
		if r.Unfinished > 0 || r.MeanJCT < r.LowerBound || r.Policy == "greedy:truth" && r.MeanJCT >= r.SpreadMeanJCT {
			t.Errorf("%+v", r)
		}
	}
}

// The JSON objects are what scripts read: their fields and their order stay.
func TestSimulateJobsJSONFields(t *testing.T) {
	out, errs, code := cotenant(t, small("--policy", "greedy", "-o", "json", "--seeds", "2", "--seed", "7")...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var objects []map[string]any
	if err := json.Unmarshal([]byte(out), &objects); err != nil {
		t.Fatal(err)
	}
	if len(objects) != 4 {
		t.Fatalf("%d objects; want spread and greedy, each with two seeds", len(objects))
	}
	at := -1
	for _, f := range []string{
		"policy", "seed", "jobs", "mean_jct_s", "median_jct_s", "p95_jct_s", "max_wait_s", "makespan_s", "lower_bound_s", "spread_mean_jct_s",
	} {
		if _, ok := objects[3][f]; !ok {
			t.Errorf("no field %s", f)
		}
		next := strings.Index(out, `"`+f+`":`)
		if next < at {
			t.Errorf("field %s is out of order", f)
		}
		at = next
	}
	if objects[3]["spread_mean_jct_s"] != objects[1]["mean_jct_s"] || objects[3]["seed"] != float64(8) {
		t.Errorf("greedy with seed 8 is not held against spread with seed 8: %v, %v", objects[3], objects[1])
	}
}

// Runs on all cores give the same bytes as on one.
func TestSimulateJobsDoesNotDependOnCores(t *testing.T) {
	args := small("--policy", "greedy-wait", "-o", "json", "--seeds", "4", "--observed", "0.5", "--model-kind", "linear", "--tune", "5", "--tune-seeds", "50:2")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one, _, _ := cotenant(t, args...)
	runtime.GOMAXPROCS(4)
	many, _, _ := cotenant(t, args...)
	if one != many || len(one) < 100 {
		t.Errorf("one core:\n%s\nfour:\n%s", one, many)
	}
}

// What is wrong with a trace is left out by the rule of all readers, counted
// and named; the replay ends all the same.
func TestABadTraceIsReplayedWithoutWhatIsBad(t *testing.T) {
	args := []string{"simulate", "jobs", "--throughputs", "testdata/throughputs.json", "--nodes", "v100:2x2,k80:2", "--trace", "testdata/bad.trace", "--policy", "greedy"}
	out, errs, code := cotenant(t, args...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, s := range []string{
		"Trace: 7 jobs; skipped: 8; of sizes that were not measured, scaled: 2.",
		"Jobs larger than the cluster, refused by every policy: 1 over all seeds.",
	} {
		if !strings.Contains(out, s) {
			t.Errorf("the table lacks %q:\n%s", s, out)
		}
	}
	for _, s := range []string{
		`line 3: total_steps: "-5" is negative`, `line 4: total_steps: is no number`, `line 5: total_steps: "1e400"`,
		`line 8: arrival_time: "-3"`, `line 9: arrival_time: "1e300"`, `line 10: workload: "nobody/8" has no rate on k80, v100`,
		`line 12: scale_factor: "0"`, `line 14: 2 fields`, "jobs that arrive before one above them: 2; put in order",
	} {
		if !strings.Contains(errs, s) {
			t.Errorf("stderr lacks %q:\n%s", s, errs)
		}
	}
	_, errs, code = cotenant(t, append(args, "--strict")...)
	if code != 1 || !strings.Contains(errs, `bad.trace: line 3: total_steps: "-5" is negative`) {
		t.Errorf("strict: exit %d, %s", code, errs)
	}
}

func TestTracesThatAreNone(t *testing.T) {
	line := func(job, steps, arrival, workers string) string {
		return strings.Join([]string{job, "run", "-n", "1", steps, arrival, workers}, "\t") + "\n"
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "no jobs: nothing in it"},
		{"nothing but bad", "a\tb\n", "nothing in it but bad records (1)"},
		{"unknown workloads only", line("Nobody (batch size 8)", "10", "0", "1"), "no jobs that can run: nothing in it but bad records (1)"},
		{"another format", `{"a": 1}` + "\n", "1 fields between tabs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, errs, code := cotenant(t, "simulate", "jobs", "--throughputs", "testdata/throughputs.json", "--nodes", "v100:1", "--trace", file(t, "x.trace", c.text))
			if code != 1 || !strings.Contains(errs, c.want) {
				t.Errorf("exit %d: %s; want %q", code, errs, c.want)
			}
		})
	}
	// All jobs larger than the cluster: nothing to compare, but no failure.
	out, errs, code := cotenant(t, "simulate", "jobs", "--throughputs", "testdata/throughputs.json", "--nodes", "v100:1", "--policy", "greedy",
		"--trace", file(t, "big.trace", line("A3C", "1000", "0", "4")))
	if code != 0 || !strings.Contains(out, "refused by every policy: 1") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

func TestSimulateJobsWrongUse(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"simulate", "jobs"}, "give --throughputs FILE or --contention"},
		{[]string{"simulate", "jobs", "--throughputs", "testdata/throughputs.json"}, "give --nodes CLASS:N"},
		{[]string{"simulate", "jobs", "--throughputs", "x", "--contention"}, "keep one"},
		{[]string{"simulate", "jobs", "stray"}, `unexpected argument "stray"`},
		{small("--policy", "best"), "--policy best: no such policy; known are spread, binpack"},
		{small("--policy", "greedy:patience=1"), `unknown parameter "patience"`},
		{small("--policy", "greedy-wait:threshold=7"), "threshold=7 is not a number from"},
		{small("--policy", "greedy:x"), `"x" is neither truth nor key=value`},
		{small("--policy", "greedy@file"), "greedy reads no file"},
		{small("--policy", "greedy,greedy"), "named twice"},
		{small("--policy", "greedy:pessimism=-1"), "pessimism -1"},
		{small("--observed", "1.5"), "--observed 1.5: give a share"},
		{small("--load", "0"), "--load 0"},
		{small("--jobs", "0"), "--jobs 0"},
		{small("--seeds", "0"), "--seeds 0"},
		{small("--durations", "2h:1h"), "--durations 2h:1h"},
		{small("--sizes", "0:1"), `"0:1" is not WORKERS:SHARE`},
		{small("--migrate", "-1s"), "--migrate -1s: negative"},
		{small("--scale", "-1s"), "--scale -1s: negative"},
		{small("--elastic", "0.5:2"), "give --scale COST too"},
		{small("--scale", "30s", "--elastic", "2:3"), "--elastic 2:3: give MIN:MAX"},
		{small("--job-failures", "1"), "--job-failures 1"},
		{small("--model-kind", "table"), "--model-kind table: none of"},
		{small("--tune", "3", "--tune-seeds", "1:2"), "seed 1 is one of the comparison's"},
		{small("--tune", "3", "--tune-seeds", "x"), "--tune-seeds x"},
		{[]string{"simulate", "jobs", "--contention", "--nodes", "v100:6"}, "are of one kind"},
		{[]string{"simulate", "jobs", "--contention", "--strength", "0"}, "--strength 0"},
		{[]string{"simulate", "jobs", "--contention", "--policy", "matching:truth"}, "no table holds the truth"},
	} {
		_, errs, code := cotenant(t, c.args...)
		if code != exitWrongUse || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit %d, %s; want %q", c.args, code, errs, c.want)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{small("--share", "3"), "single tasks and pairs, so 1 or 2"},
		{[]string{"simulate", "jobs", "--throughputs", "testdata/throughputs.json", "--nodes", "t4:2"}, `class "t4" has no rates`},
		{[]string{"simulate", "jobs", "--contention", "testdata/rules.yaml"}, "--contention testdata/rules.yaml"},
		{small("--report", "no/such/folder/x.html"), "create the folder"},
	} {
		_, errs, code := cotenant(t, c.args...)
		if code == 0 || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit %d, %s; want %q", c.args, code, errs, c.want)
		}
	}
}

func TestSimulateJobsWritesARunAndAPage(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.html")
	_, errs, code := cotenant(t, small("--policy", "greedy,greedy-wait:threshold=0.4", "--seeds", "2", "--out", dir, "--report", page)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	lines := func(name string) int { return strings.Count(read(name), "\n") }
	if n := lines("runs.csv"); n != 1+3*2 {
		t.Errorf("runs.csv has %d lines", n)
	}
	if n := lines("jobs.csv"); n != 1+3*2*60 {
		t.Errorf("jobs.csv has %d lines", n)
	}
	if text := read("decisions.csv"); !strings.Contains(text, "job-0/worker-0@v100-0:0") || strings.Count(text, "\npolicy,") != 0 {
		t.Errorf("decisions.csv begins with %.300s", text)
	}
	if m := read("manifest.json"); !strings.Contains(m, `"policy": "[\"greedy,greedy-wait:threshold=0.4\"]"`) && !strings.Contains(m, "greedy-wait:threshold=0.4") || !strings.Contains(m, "sha256") {
		t.Errorf("manifest.json: %s", m)
	}
	for _, s := range []string{"greedy-wait:threshold=0.4", "Who ran beside whom", "JCT, ", "<polyline", "cotenant simulate jobs --backfill"} {
		if !strings.Contains(read("page.html"), s) {
			t.Errorf("the page lacks %q", s)
		}
	}
}

func TestSimulateJobsIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := filepath.Join(t.TempDir(), "run")
	out, errs, code := cotenantWith(t, ctx, "", small("--seeds", "50", "--out", dir)...)
	if code != exitFailed || out != "" || !strings.Contains(errs, "interrupted; nothing was written") {
		t.Errorf("exit %d, %q, %s", code, out, errs)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("something was written")
	}
}

// Jobs that finished before Ctrl-C are shown and written, but not over what is
// whole.
func TestSimulateJobsKeepsWhatFinished(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	args := small("--seeds", "4", "--policy", "spread,greedy", "--out", dir)
	const most = 1 << 40
	whole := newCountdown(t, most)
	if _, errs, code := cotenantWith(t, whole, "", args...); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	before := mustRead(t, filepath.Join(dir, "runs.csv"))
	for _, want := range []string{"runs finished and are shown, not written", "runs finished and are in "} {
		out, errs, code := cotenantWith(t, newCountdown(t, (most-whole.left.Load())*7/10), "", args...)
		if code != exitFailed || !strings.Contains(errs, want) || !strings.Contains(out, "Interrupted: of ") {
			t.Errorf("exit %d, stderr %q; want %q:\n%s", code, errs, want, out)
		}
		now := mustRead(t, filepath.Join(dir, "runs.csv"))
		if part := strings.HasSuffix(want, "in "); part == bytes.Equal(now, before) {
			t.Errorf("%s: runs.csv:\n%s", want, now)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// A policy that breaks the rules fails its runs; the others are shown.
func TestAProgramThatBreaksTheRules(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no /bin/sh to run a policy with")
	}
	out, errs, code := cotenant(t, small("--policy", `exec:"/bin/sh -c 'exit 3'",greedy`, "--jobs", "5")...)
	if code != exitFailed || !strings.Contains(errs, "1 of 3 runs failed") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if !strings.Contains(out, "greedy") {
		t.Errorf("the others are not shown:\n%s", out)
	}
}

// The example policy in Python is greedy-wait at another threshold, jobs of
// single workers on pairs being so plain.
func TestTheExampleOfAPolicyForJobs(t *testing.T) {
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	if _, err := exec.LookPath(python); err != nil {
		t.Skip("no python3 to run the example with")
	}
	out, errs, code := cotenant(t, "simulate", "jobs", "--throughputs", "testdata/throughputs.json", "--nodes", "v100:4", "--jobs", "60", "--load", "1.1",
		"--backfill", "--policy", "greedy-wait:threshold=0.4,exec:"+python+" ../../examples/policy_jobs.py", "-o", "json")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var rows []jobRow
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	if rows[1].MeanJCT != rows[2].MeanJCT {
		t.Errorf("greedy-wait's mean JCT is %v s, the example's %v s", rows[1].MeanJCT, rows[2].MeanJCT)
	}
}
