package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
)

// refused tells whether the program says so, and left nothing behind. No program
// of a plane may have been started before: that takes seconds, and its log would
// hide what is wrong.
func refused(t *testing.T, want string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	_, log, err := call(t, args...)
	if err == nil || !strings.Contains(err.Error(), want) || log != "" {
		t.Errorf("%q: error %v, want %q; log:\n%s", args, err, want, log)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("%q left %q (%v)", args, left, err)
	}
}

func TestBadFlags(t *testing.T) {
	for args, want := range map[string]string{
		"up --cpu lots":          `--cpu "lots": give a quantity above 0, such as 8 or 500m`,
		"up --cpu -1":            `--cpu "-1"`,
		"up --memory 32GB":       `--memory "32GB"`,
		"up --memory=":           `--memory ""`,
		"up --pods 1.5":          `--pods "1.5"`,
		"up --nodes abc":         "--nodes abc: give a whole number",
		"up --nodes -1":          "--nodes -1: give 0 to 5000",
		"up --gangs=yes":         "--gangs yes: give true or false",
		"bench --patience 30":    "--patience 30: give a time with its unit, such as 30s",
		"bench jobs --load much": "--load much: give a number",
	} {
		refused(t, want, strings.Fields(args)...)
	}
}

func TestSchedulersAreCheckedBeforeAPlaneIsStarted(t *testing.T) {
	planetest.Needs(t, "kube-scheduler", "cotenant-scheduler")
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "scheduler.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plugin := func(args string) string {
		return file("profiles: [{plugins: {multiPoint: {enabled: [{name: Cotenant}]}}, pluginConfig: [{name: Cotenant, args: {" + args + "}}]}]")
	}
	refused(t, "--scheduler: no program", "up", "--scheduler", "nope")
	refused(t, "--scheduler-config: error converting YAML", "up", "--scheduler-config", file("profiles: {\na"))
	refused(t, "--scheduler-config: strict decoding error", "up", "--scheduler-config", file("profile: []"))
	refused(t, "--ours: no program", "up", "--ours=nope")
	refused(t, "without a --scheduler-config that enables its plugin it is the stock scheduler", "up", "--scheduler", "cotenant-scheduler")
	refused(t, "schedulerName default-scheduler is the other scheduler's, too", "up", "--ours-config", plugin(`model: {path: "${MODEL}"}`))
	refused(t, "--ours: no program", "demo", "--truth", shipped, "--ours", "./nope")
	refused(t, "--ours: no program", "bench", "jobs", "--ours", "nope")
	refused(t, `mode: Unsupported value: "always"`, "demo", "--truth", shipped, "--ours-config", plugin(`mode: always, model: {path: "${MODEL}"}`))
	refused(t, `unknown policy "metiss"`, "bench", "--truth", shipped, "--ours-config", plugin(`policy: {name: metiss}, model: {path: "${MODEL}"}`))
}
