package main

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestScenariosOfTheRepositoryAreWellFormed(t *testing.T) {
	all, err := load("..")
	if err != nil {
		t.Fatal(err)
	}
	smoke := 0
	for _, s := range all {
		smoke += s.Smoke
	}
	if smoke == 0 {
		t.Error("no scenario has smoke: the quick run would run nothing")
	}
}

const small = `
- name: small
  seeds: 2
  smoke: 1
  plan:
    truth: {generated: {workloads: 4, seed: 1}}
    total: 8
    nodes: 3
    slots: 4
    policy: bound
    versus: [spread]
  checks:
  - metric: share
    at_least: LEAST
    measured: {mean: 1, spread: 0, date: "2026-11-29"}
    reason: a small program is solved to the end
`

func runSmall(t *testing.T, yaml string, args ...string) (code int, out, log string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "small.yaml"), []byte(yaml), 0o644); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code = run(context.Background(), append([]string{"-scenarios", dir}, args...), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestBoundsAreHeldAgainstWhatIsReached(t *testing.T) {
	if code, out, log := runSmall(t, strings.ReplaceAll(small, "LEAST", "0.9"), "-smoke"); code != 0 || !strings.Contains(out, "ok") {
		t.Errorf("a bound that holds: exit %d\n%s%s", code, out, log)
	}
	if code, out, log := runSmall(t, strings.ReplaceAll(small, "LEAST", "1.5")); code != 1 || !strings.Contains(out, "MISSED") {
		t.Errorf("a bound that cannot hold: exit %d\n%s%s", code, out, log)
	}
	absent := strings.ReplaceAll(strings.ReplaceAll(small, "LEAST", "0.9"), "{generated: {workloads: 4, seed: 1}}", "{file: no/such.csv}")
	if code, out, log := runSmall(t, absent); code != 0 || !strings.Contains(out, "skipped: ") || !strings.Contains(log, "1 skipped") {
		t.Errorf("data that is absent: exit %d\n%s%s", code, out, log)
	}
}

func TestScenariosThatMakeNoSenseAreRefused(t *testing.T) {
	good := strings.ReplaceAll(small, "LEAST", "0.9")
	for _, c := range []struct{ from, to, says string }{
		{"metric: share", "metric: shares", "shares"},
		{"at_least: 0.9", "at_least: 0.9\n    at_most: 1", "either at_least or at_most"},
		{"    reason: a small program is solved to the end\n", "", "no reason"},
		{"policy: bound", "polcy: bound", "polcy"},
		{"smoke: 1", "smoke: 3", "smoke 3"},
	} {
		code, _, log := runSmall(t, strings.ReplaceAll(good, c.from, c.to))
		if code != 2 || !strings.Contains(log, c.says) {
			t.Errorf("%s: exit %d, log %q; want 2 and %q", c.to, code, log, c.says)
		}
	}
}

const smallStream = `
- name: stream
  seeds: 2
  stream:
    truth: {generated: {workloads: 6, seed: 1}}
    nodes: 12
    slots: 4
    zones: 3
    constraints:
      max_per_node: {w00: 2}
    load: 0.9
    horizon: 6h
    warmup: 2h
    moments: 3
    policy: greedy
    versus: [spread]
  checks:
  - metric: share
    at_least: 0.8
    measured: {mean: 0.96, spread: 0.05, date: "2026-11-30"}
    reason: greedy looks at performance
  - metric: violations
    at_most: 0
    over: max
    measured: {mean: 0, spread: 0, date: "2026-11-30"}
    reason: rules hold
`

func TestStreamsAreHeldAgainstEachOther(t *testing.T) {
	code, out, log := runSmall(t, smallStream)
	if code != 0 || strings.Count(out, " ok ") != 2 || !strings.Contains(out, "served") {
		t.Errorf("exit %d\n%s%s", code, out, log)
	}
	again, outAgain, _ := runSmall(t, smallStream, "-o", "json")
	once, outOnce, _ := runSmall(t, smallStream, "-o", "json")
	seconds := regexp.MustCompile(`(?s)"seconds": \[.*?\]`)
	if a, b := seconds.ReplaceAllString(outAgain, ""), seconds.ReplaceAllString(outOnce, ""); again != 0 || once != 0 || a != b {
		t.Errorf("two runs differ:\n%s\n%s", a, b)
	}
	for _, c := range []struct{ from, to, says string }{
		{"load: 0.9", "load: 1.5", "load 1.5"},
		{"warmup: 2h", "warmup: an hour", "warmup"},
		{"moments: 3", "moments: 0", "moments 0"},
		{"metric: share\n", "metric: share_above:tetris\n", "share_above:tetris"},
	} {
		if code, _, log := runSmall(t, strings.Replace(smallStream, c.from, c.to, 1)); code != 2 || !strings.Contains(log, c.says) {
			t.Errorf("%s: exit %d, log %q; want 2 and %q", c.to, code, log, c.says)
		}
	}
}

func TestMeanAndSpread(t *testing.T) {
	if m, sd := meanAndSpread([]float64{1, 2, 3, 4}); m != 2.5 || math.Abs(sd-1.2909944487358056) > 1e-12 {
		t.Errorf("mean %g spread %g, want 2.5 and 1.29", m, sd)
	}
	if m, sd := meanAndSpread([]float64{7}); m != 7 || sd != 0 {
		t.Errorf("of one value: mean %g spread %g, want 7 and 0", m, sd)
	}
}
