package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// tiny is `plan services` on three made workloads, measured up to three tasks
// a node.
func tiny(more ...string) []string {
	return append([]string{"plan", "services", "--samples", "testdata/samples.jsonl", "--batch", "testdata/batch.csv", "--nodes", "3"}, more...)
}

func TestPlanServicesGolden(t *testing.T) {
	for _, c := range []struct {
		name, form string
		args       []string
	}{
		{"plan.table", "table", []string{"--policy", "spread,greedy,measured,bound"}},
		{"plan-seeds.table", "table", []string{"--policy", "random,greedy", "--seeds", "3"}},
		{"plan-explain.table", "table", []string{"--policy", "greedy,bound", "--explain", "--constraints", "testdata/rules.yaml", "--zones", "3"}},
		{"plan.json", "json", []string{"--policy", "greedy,bound", "-o", "json"}},
		{"plan-explain.json", "json", []string{"--policy", "greedy", "-o", "json", "--explain"}},
		{"plan.yaml", "yaml", []string{"--policy", "greedy", "-o", "yaml"}},
		{"plan.csv", "csv", []string{"--policy", "greedy,bound", "-o", "csv", "--seeds", "2"}},
		{"plan-p99.csv", "csv", []string{"--policy", "greedy,bound", "-o", "csv", "--objective", "p99"}},
		{"plan-worst-workload.csv", "csv", []string{"--policy", "greedy", "-o", "csv", "--objective", "worst", "--order", "workload"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, errs, code := cotenant(t, tiny(c.args...)...)
			if code != 0 {
				t.Fatalf("exit %d: %s", code, errs)
			}
			golden(t, c.name, timeless(out, c.form))
		})
	}
}

// The JSON objects are what scripts read: their fields and their order stay.
func TestPlanServicesJSONFields(t *testing.T) {
	out, errs, code := cotenant(t, tiny("-o", "json", "--seeds", "2", "--seed", "7")...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var objects []map[string]any
	if err := json.Unmarshal([]byte(out), &objects); err != nil {
		t.Fatal(err)
	}
	if want := 2 * len(shownPolicies()); len(objects) != want {
		t.Errorf("%d objects; want one for each policy and seed, %d", len(objects), want)
	}
	fields := []string{"policy", "seed", "nodes", "tasks", "objective", "value_predicted", "value_true", "bound", "bound_on", "proven", "share", "seconds", "placement"}
	for i, o := range objects {
		for _, f := range fields {
			if _, ok := o[f]; !ok {
				t.Errorf("object %d lacks %q", i, f)
			}
		}
		if len(o) != len(fields) {
			t.Errorf("object %d has %d fields; want %d", i, len(o), len(fields))
		}
		if seed := 7 + i%2; int(o["seed"].(float64)) != seed {
			t.Errorf("object %d has seed %v; want %d", i, o["seed"], seed)
		}
		if share := o["share"].(float64); !(share > 0 && share <= 1) {
			t.Errorf("object %d (%v): share %g; want one in (0, 1]", i, o["policy"], share)
		}
	}
}

// What nobody measured has no value, and the object says null.
func TestUnmeasuredIsNull(t *testing.T) {
	samples := file(t, "few.jsonl", `{"colocation":{"a":1},"workload":"a","metric":"rate","value":1,"alone":1}
{"colocation":{"b":1},"workload":"b","metric":"rate","value":1,"alone":1}
`)
	batch := file(t, "batch.csv", "a,b\n1,1\n")
	out, errs, code := cotenant(t, "plan", "services", "--samples", samples, "--batch", batch, "--nodes", "1", "--slots", "2", "--policy", "binpack", "-o", "json")
	if code != 0 {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{`"value_true":null`, `"bound":null`, `"proven":false`, `"share":null`, `"placement":[{"node":"node-0","colocation":{"a":1,"b":1}}]`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s lacks %s", out, want)
		}
	}
	for _, want := range []string{"nobody measured a+b", "no bound"} {
		if !strings.Contains(errs, want) {
			t.Errorf("stderr %q lacks %q", errs, want)
		}
	}
}

func TestHeldTasksAreNamedAndExitOne(t *testing.T) {
	// Each fits by itself; together they do not.
	rules := file(t, "rules.yaml", "anti_affinity:\n- {a: cache, b: train}\n- {a: cache, b: web}\n- {a: train, b: web}\n")
	out, errs, code := cotenant(t, "plan", "services", "--samples", "testdata/samples.jsonl", "--batch", "testdata/batch.csv", "--nodes", "2", "--slots", "4",
		"--constraints", rules, "--policy", "greedy", "-o", "json")
	if code != exitFailed {
		t.Errorf("exit %d; want %d", code, exitFailed)
	}
	if !strings.Contains(out, `"held":[{"task":`) {
		t.Errorf("stdout %q names no held task", out)
	}
	for _, want := range []string{"of 7 tasks not placed", "must not be with", "leave tasks unplaced"} {
		if !strings.Contains(errs, want) {
			t.Errorf("stderr %q lacks %q", errs, want)
		}
	}
}

// A seed whose plan nobody can value does not take the others' values away.
func TestSilentSeeds(t *testing.T) {
	out, errs, code := cotenant(t, tiny("--samples", withoutSamples(t, `"train": 2}`), "--policy", "random", "--seeds", "6")...)
	if code != 0 || !regexp.MustCompile(`(?m)^random +0\.\d+ \+- `).MatchString(out) {
		t.Errorf("exit %d:\n%s", code, out)
	}
	for _, want := range []string{
		"random, seed 3: no value: nobody measured cache+train*2; fit a model (cotenant fit) and give it as --model, without --samples\n",
		"random: the mean value is over 4 of 6 seeds: the others have none\n",
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("stderr %q lacks %q", errs, want)
		}
	}
}

func TestOutDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "out")
	_, errs, code := cotenant(t, tiny("--policy", "greedy", "--seeds", "2", "--out", dir)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Seeds) != 2 || m.Flags["policy"] == "" || len(m.Inputs) != 2 || len(m.Inputs[0].SHA256) != 64 || m.Version == "" {
		t.Errorf("manifest %+v lacks something", m)
	}
	for name, lines := range map[string]int{"plans.csv": 3, "decisions.csv": 15} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if n := strings.Count(string(text), "\n"); err != nil || n != lines {
			t.Errorf("%s: %d lines, %v; want %d", name, n, err, lines)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 3 {
		t.Errorf("%d files in %s; want 3", len(entries), dir)
	}
}

func TestCtrlCWritesNothing(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is absent: ", err)
	}
	mark := filepath.Join(t.TempDir(), "began")
	script := file(t, "slow.py", "import sys, time\nsys.stdin.readline()\nopen(sys.argv[1], 'w').close()\ntime.sleep(300)\n")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(mark); err == nil {
				cancel()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	dir := filepath.Join(t.TempDir(), "out")
	begin := time.Now()
	out, errs, code := cotenantWith(t, ctx, "", tiny("--policy", "greedy,exec:"+python+" "+script+" "+mark, "--out", dir)...)
	if code != exitFailed || out != "" || !strings.Contains(errs, "interrupted") {
		t.Errorf("exit %d, stdout %q, stderr %q; want 1, nothing, and that it was interrupted", code, out, errs)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the output directory is there")
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("it took %s to stop", took)
	}
}

func TestExecPolicyNextToOthers(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is absent: ", err)
	}
	out, errs, code := cotenant(t, tiny("--policy", "greedy,exec:"+python+" ../../examples/policy.py", "-o", "csv", "--seeds", "2")...)
	if code != 0 || strings.Count(out, "exec:") != 2 {
		t.Errorf("exit %d, stdout %q, stderr %q", code, out, errs)
	}
	// A program that fails spoils no other policy's plan.
	out, errs, code = cotenant(t, tiny("--policy", "exec:"+python+" -c 'import sys; sys.exit(\"no luck\")',greedy", "-o", "csv")...)
	if code != exitFailed || strings.Count(out, "\n") != 2 || !strings.Contains(errs, "no luck") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, out, errs)
	}
}

func TestStdinIsAFile(t *testing.T) {
	out, errs, code := cotenantWith(t, t.Context(), "web,train\n1,1\n", "plan", "services", "--samples", "testdata/samples.jsonl", "--batch", "-", "--nodes", "2", "--policy", "greedy", "-o", "csv")
	if code != 0 || !strings.Contains(out, "greedy,1,2,2,0,mean,1,1,") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, out, errs)
	}
}

func TestTheOrderOfTasks(t *testing.T) {
	b := &batch{workloads: []string{"a", "b", "c"}, counts: []int{2, 0, 3}}
	ids := func(order string, seed uint64) string {
		var all []string
		for _, task := range b.groups(order, seed)[0].Tasks {
			all = append(all, string(task.ID))
		}
		return strings.Join(all, " ")
	}
	if got, want := ids("workload", 1), "a/0 a/1 c/0 c/1 c/2"; got != want {
		t.Errorf("workload: %s; want %s", got, want)
	}
	if got, want := ids("roundrobin", 1), "a/0 c/0 a/1 c/1 c/2"; got != want {
		t.Errorf("roundrobin: %s; want %s", got, want)
	}
	if first, again := ids("random", 1), ids("random", 1); first != again {
		t.Error("random: the same seed gave two orders")
	}
	if ids("random", 1) == ids("random", 2) && ids("random", 2) == ids("random", 3) {
		t.Error("random: three seeds gave one order")
	}
}
