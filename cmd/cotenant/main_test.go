package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// cotenant runs the program in this process.
func cotenant(t testing.TB, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return cotenantWith(t, t.Context(), "", args...)
}

func cotenantWith(t testing.TB, ctx context.Context, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(ctx, args, strings.NewReader(stdin), &out, &errs)
	return out.String(), errs.String(), code
}

// file writes a file for one test.
func file(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// golden holds text against testdata/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (rewrite with -update, then read the diff):\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

var (
	jsonSeconds  = regexp.MustCompile(`("seconds":|seconds: )[0-9.e-]+`)
	tableSeconds = regexp.MustCompile(`(?m) +[0-9.]+( \+- [0-9.]+)?$`)
	csvSeconds   = regexp.MustCompile(`(?m),[0-9.e-]+$`)
)

// timeless takes the measured seconds out of results.
func timeless(text, form string) string {
	switch form {
	case "table":
		text = strings.ReplaceAll(text, "         SECONDS", "  SECONDS")
		return tableSeconds.ReplaceAllString(text, "  T")
	case "csv":
		return csvSeconds.ReplaceAllString(text, ",T")
	}
	return jsonSeconds.ReplaceAllString(text, "${1}0")
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		out  string // in stdout
		err  string // in stderr
	}{
		{"--version", 0, "cotenant ", ""},
		{"", 0, "Available Commands", ""},
		{"--help", 0, "Available Commands", ""},
		{"plan services --help", 0, "--objective", ""},
		{"plan", 2, "", "needs one of: jobs, services"},
		{"paln", 2, "", `knows no "paln"`},
		{"plan service", 2, "", "did you mean services?"},
		{"--colour", 2, "", "unknown flag: --colour"},
		{"plan services --colour", 2, "", "See `cotenant plan services --help`"},
		{"plan services extra", 2, "", "extra"},
		{"plan services --seeds many", 2, "", "cotenant: --seeds many: give a whole number\n"},
		{"plan services --seed -1", 2, "", "cotenant: --seed -1: give a whole number, 0 to 18446744073709551615\n"},
		{"simulate services --load much", 2, "", "cotenant: --load much: give a number\n"},
	} {
		t.Run(c.args, func(t *testing.T) {
			out, errs, code := cotenant(t, strings.Fields(c.args)...)
			if code != c.code {
				t.Errorf("exit %d; want %d (%s)", code, c.code, errs)
			}
			if !strings.Contains(out, c.out) || !strings.Contains(errs, c.err) {
				t.Errorf("stdout %q, stderr %q; want %q and %q", out, errs, c.out, c.err)
			}
			if code != 0 && (out != "" || !strings.HasPrefix(errs, "cotenant: ")) {
				t.Errorf("stdout %q, stderr %q; want an error on stderr only", out, errs)
			}
		})
	}
}

// Called as kubectl's plugin, the program has the same verbs, and says how it
// was called.
func TestKubectlPlugin(t *testing.T) {
	for name, want := range map[string]string{
		"/usr/local/bin/kubectl-cotenant": "kubectl cotenant", "kubectl-cotenant.exe": "kubectl cotenant",
		"/usr/local/bin/cotenant": "cotenant", "kubectl-cotenant-old": "cotenant",
	} {
		var out, errs bytes.Buffer
		if code := runAs(t.Context(), name, []string{"explain", "pod", "--help"}, strings.NewReader(""), &out, &errs); code != exitDone {
			t.Errorf("%s: exit %d: %s", name, code, errs.String())
		}
		if usage := "\n  " + want + " explain pod NAME [flags]\n"; !strings.Contains(out.String(), usage) {
			t.Errorf("%s: the usage is not of %q:\n%s", name, want, out.String())
		}
		if code := runAs(t.Context(), name, []string{"explain"}, strings.NewReader(""), &out, &errs); code != exitWrongUse || !strings.Contains(errs.String(), "See `"+want+" explain --help`") {
			t.Errorf("%s: exit %d: %s", name, code, errs.String())
		}
	}
}
