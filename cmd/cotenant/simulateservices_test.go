package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// flowing is `simulate services` on the three workloads of the test data.
func flowing(more ...string) []string {
	return append([]string{
		"simulate", "services", "--samples", "testdata/samples.jsonl", "--nodes", "6", "--slots", "2", "--horizon", "8h", "--sizes", "1:2,2:1",
	}, more...)
}

var placing = regexp.MustCompile(`"seconds":[^,}]*`)

func TestSimulateServices(t *testing.T) {
	args := flowing("--policy", "spread,greedy-search:kicks=5", "--seeds", "3", "--moments", "4", "--replan", "greedy-search:kicks=5", "-o", "json")
	out, errs, code := cotenant(t, args...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 9 || rows[0]["policy"] != "greedy" || rows[3]["policy"] != "spread" || rows[8]["policy"] != "greedy-search:kicks=5" || rows[8]["seed"] != 3. {
		t.Fatalf("%d rows: %s", len(rows), out)
	}
	for _, r := range rows {
		share, bound, value := r["share"].(float64), r["bound"].(float64), r["value"].(float64)
		if !(share > 0 && share <= 1+1e-9) || math.Abs(share-value/bound) > 1e-9 || r["proven"] != true || r["violations"] != 0. || r["bound_on"] != "truth" {
			t.Errorf("%v", r)
		}
		if again := r["share_replanned"].(float64); !(again > 0.5 && again <= 1+1e-9) {
			t.Errorf("re-planned: %g", again)
		}
	}
	// Where nothing waits, the bound is the same for all.
	if rows[0]["mean_waiting"] == 0. && rows[3]["mean_waiting"] == 0. && rows[0]["bound"] != rows[3]["bound"] {
		t.Errorf("bounds %v and %v", rows[0]["bound"], rows[3]["bound"])
	}
	again, _, _ := cotenant(t, args...)
	if a, b := placing.ReplaceAllString(out, ""), placing.ReplaceAllString(again, ""); a != b {
		t.Errorf("the same command twice:\n%s\n%s", a, b)
	}
}

func TestSimulateServicesFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	out, errs, code := cotenant(t, flowing("--load", "0.5", "--zones", "3", "--constraints", "testdata/rules.yaml", "--mtbf", "20h",
		"--migrate", "30s", "--mix", "zipf", "--drift", "2h", "--lifetimes", "log-uniform:20", "--moments", "5", "--out", dir)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{"POINTS TO GREEDY", "\nspread ", "\ngreedy ", "6 nodes, 12 slots, load 0.5; seed 1."} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for name, lines := range map[string]int{"runs.csv": 3, "moments.csv": 11, "decisions.csv": -1} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(f).ReadAll()
		f.Close()
		if err != nil || lines > 0 && len(rows) != lines || len(rows) < 3 {
			t.Errorf("%s: %d lines, %v", name, len(rows), err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, manifestFile)); err != nil {
		t.Error(err)
	}
}

// countdown is a context that is done when it was asked so often whether it is.
type countdown struct {
	context.Context
	left   atomic.Int64
	cancel func()
}

func newCountdown(t *testing.T, asks int64) *countdown {
	c := &countdown{}
	c.Context, c.cancel = context.WithCancel(t.Context())
	t.Cleanup(c.cancel)
	c.left.Store(asks)
	return c
}

func (c *countdown) Err() error {
	if c.left.Add(-1) == 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// Runs that finished before an interruption are shown and written, and are not
// run again; in the end all is as without it, but for the time that it took.
func TestSimulateServicesGoesOnAfterCtrlC(t *testing.T) {
	dir, edges := t.TempDir(), file(t, "w.yaml", "workloads:\n- name: web\n  edges: [{to: cache}]\n- name: cache\n")
	args := func(out string, more ...string) []string {
		return flowing(append([]string{
			"--policy", "spread,greedy-search:kicks=5", "--seeds", "3", "--moments", "4", "--replan", "greedy", "--workloads", edges,
			"--objective", "mean=1,traffic=0.2", "-o", "json", "--out", filepath.Join(dir, out),
		}, more...)...)
	}
	seconds := regexp.MustCompile(`[^,]*,,[^,]*\n`) // seconds, no error, traffic
	files := func(out string) string {
		var all bytes.Buffer
		for _, name := range []string{"moments.csv", "decisions.csv"} {
			all.Write(mustRead(t, filepath.Join(dir, out, name)))
		}
		all.Write(seconds.ReplaceAll(mustRead(t, filepath.Join(dir, out, "runs.csv")), nil))
		manifest := mustRead(t, filepath.Join(dir, out, manifestFile))
		all.Write(bytes.Replace(manifest, []byte(filepath.Join(dir, out)), nil, 1))
		return all.String()
	}
	const most = 1 << 40
	whole := newCountdown(t, most)
	want, errs, code := cotenantWith(t, whole, "", args("whole")...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	asks := most - whole.left.Load()

	finished := regexp.MustCompile(`interrupted; (\d) of 9 runs finished and are in .*; the same command goes on from there`)
	got, shown, taken := "", 0, ""
	for _, share := range []float64{0.7, 0.2, 2} {
		got, errs, code = cotenantWith(t, newCountdown(t, int64(share*float64(asks))), "", args("run")...)
		if taken != "" && !strings.Contains(errs, taken+" of 9 runs are taken from ") {
			t.Errorf("stderr %q, after %s runs", errs, taken)
		}
		if share > 1 {
			break
		}
		said := finished.FindStringSubmatch(errs)
		if code != exitFailed || said == nil {
			t.Fatalf("exit %d: %s", code, errs)
		}
		taken = said[1]
		var rows []servicesRow
		if err := json.Unmarshal([]byte(got), &rows); err != nil || fmt.Sprint(len(rows)) != taken || len(rows) < shown {
			t.Fatalf("%v, %d runs shown, %d before; stderr %q", err, len(rows), shown, errs)
		}
		shown = len(rows)
	}
	if a, b := placing.ReplaceAllString(want, ""), placing.ReplaceAllString(got, ""); code != 0 || a != b {
		t.Errorf("exit %d; without an interruption, and with two:\n%s\n%s", code, a, b)
	}
	if a, b := files("whole"), files("run"); a != b {
		t.Errorf("files without an interruption, and with two:\n%s\n%s", a, b)
	}

	// A run that is whole stays; one of other flags is not gone on with.
	before := files("run")
	table, errs, code := cotenantWith(t, newCountdown(t, asks/2), "", args("run", "-o", "table")...)
	if code != exitFailed || !strings.Contains(errs, "keeps the other run in it") || !strings.Contains(table, "Interrupted: of ") || files("run") != before {
		t.Errorf("exit %d, stderr %q:\n%s", code, errs, table)
	}
	if _, errs, code = cotenantWith(t, newCountdown(t, asks/2), "", args("other")...); code != exitFailed {
		t.Errorf("exit %d: %s", code, errs)
	}
	_, errs, code = cotenant(t, args("other", "--load", "0.7")...)
	if code != 0 || !strings.Contains(errs, "is not gone on with") {
		t.Errorf("other flags: exit %d: %s", code, errs)
	}
}

// What no node can come to run need not be measured.
func TestSimulateServicesLeavesOutWhatRulesForbid(t *testing.T) {
	part := withoutSamples(t, `{"train": 2}`)
	rules := file(t, "rules.yaml", "max_per_node: {train: 1}\n")
	args := flowing("--samples", part, "--policy", "spread")
	if out, errs, code := cotenant(t, args...); code != exitFailed || out != "" || !strings.Contains(errs, "the co-location train*2, which") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, out, errs)
	}
	if _, errs, code := cotenant(t, append(args, "--constraints", rules)...); code != 0 {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// What has no effect is named.
func TestSimulateServicesWarns(t *testing.T) {
	declared := file(t, "w.yaml", "workloads: [{name: wbe}, {name: cache}]\n")
	args := flowing("--policy", "greedy:moves=2", "--workloads", declared, "--horizon", "2h")
	moves := "--policy greedy:moves=2 moves nothing: allow moves, and say what one costs, with --migrate"
	_, errs, code := cotenant(t, args...)
	if code != 0 || !strings.Contains(errs, moves) || !strings.Contains(errs, "--workloads "+declared+": nobody measured wbe: what is said of it has no effect; did you mean web?\n") ||
		strings.Contains(errs, "measured cache") {
		t.Errorf("exit %d, stderr %q", code, errs)
	}
	if _, errs, code := cotenant(t, append(args, "--migrate", "0s")...); code != 0 || strings.Contains(errs, "moves nothing") {
		t.Errorf("exit %d, stderr %q", code, errs)
	}
}

// withoutSamples is a file of the test's samples without those of a co-location.
func withoutSamples(t *testing.T, colocation string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/samples.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(l string) bool { return strings.Contains(l, colocation) })
	return file(t, "part.jsonl", strings.Join(lines, ""))
}

// Where nothing runs, nothing is compared: no policy is NaN points better.
func TestSimulateServicesOfNothing(t *testing.T) {
	out, errs, code := cotenant(t, flowing("--load", "0.0001", "--policy", "spread,metis")...)
	if code != 0 || strings.Contains(out, "NaN") || strings.Count(out, " - ") < 12 {
		t.Errorf("exit %d, stderr %q:\n%s", code, errs, out)
	}
}

func TestSimulateServicesBadInput(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--load 1", 2, "--load 1: the average must lie below the most that is wanted, --most 1"},
		{"--load 0", 2, "--load 0"},
		{"--load NaN", 2, "--load NaN"},
		{"--most -1", 2, "--most -1"},
		{"--mix even", 2, "none of uniform, random, zipf"},
		{"--sizes 3", 2, `"3" is not N:SHARE`},
		{"--sizes 0:1", 2, `"0:1" is not N:SHARE`},
		{"--sizes 8:1 --load 0.9", 2, "out of reach"},
		{"--lifetimes weibull", 2, "log-uniform:RATIO"},
		{"--lifetimes log-uniform:0.5", 2, "at least 1"},
		{"--lifetime -1h", 2, "--lifetime -1h0m0s: negative"},
		{"--lifetime 0s", 2, "--lifetime 0s: give 1ms"},
		{"--warmup 9h", 2, "longer than the warm-up"},
		{"--drift 1ns", 2, "too short"},
		{"--repair 1000000h", 2, "--repair 1000000h0m0s: give at most 613200h0m0s"},
		{"--mtbf 1000000h", 2, "--mtbf 1000000h0m0s: give at most"},
		{"--migrate 1000000h", 2, "--migrate 1000000h0m0s: give at most"},
		{"--mtbf 1ns --repair 0s", 2, "would fail some 1.73e+14 times in 8h0m0s; at most 10000000"},
		{"--lifetime 1ms", 2, "tasks would come in a horizon of 8h0m0s, with services of a mean lifetime of 1ms; at most 10000000"},
		{"--horizon 613200h --lifetime 1s", 2, "shorten the horizon"},
		{"--scaling -1", 2, "--scaling -1"},
		{"--moments 0", 2, "--moments 0"},
		{"--seeds 0", 2, "--seeds 0"},
		{"--policy nobody", 2, "nobody"},
		{"--policy metis:serach=off", 2, `--policy metis:serach=off: unknown parameter "serach"; did you mean search?`},
		{"--policy spread --replan greedy-search:kikcs=5", 2, `--replan greedy-search:kikcs=5: unknown parameter "kikcs"`},
		{"--replan gredy", 2, "--replan gredy: give one policy of"},
		{"--replan gredy", 2, "did you mean greedy?"},
		{"--replan greedy-search:kicks", 2, `--replan greedy-search:kicks: "kicks" is not key=value`},
		{"--replan spread,greedy", 2, "give one policy"},
		{"--objective joy", 2, "joy"},
		{"--nodes x:y", 2, "x:y"},
		{"--slots 9 --policy spread", 1, "samples testdata/samples.jsonl: silent about the co-location cache*4, which a node of 9 slots can come to run; " +
			"fit a model (cotenant fit) and give it as --model, without --samples; or give --slots 3,"},
		{"extra", 2, "extra"},
	} {
		out, errs, code := cotenant(t, flowing(strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(errs, c.want) || code == 2 && (out != "" || strings.Contains(errs, ", seed ")) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q; want %d and %q", c.args, code, out, errs, c.code, c.want)
		}
	}
}
