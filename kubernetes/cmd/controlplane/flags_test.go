package main

import (
	"path/filepath"
	"strings"
	"testing"
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
