package cotenant_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	mdLink       = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	namedTest    = regexp.MustCompile("`([a-z][a-z0-9/]*)\\.((?:Test|Fuzz|Example)[A-Za-z0-9_]*)`")
	namedRow     = regexp.MustCompile("scenario `([^`]+)`")
	makeTarget   = regexp.MustCompile("(?m)(?:^|`)make ([a-z][a-z-]*)")
	scenarioName = regexp.MustCompile(`(?m)^- name: (.*)$`)
	definedRule  = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	verb         = regexp.MustCompile("(?m)(?:^|`|\\| )\\s*cotenant ([a-z]+)")
)

// TestDocumentsAreTrue holds what the documents name against what there is:
// files behind links, tests, scenarios, make targets, verbs.
func TestDocumentsAreTrue(t *testing.T) {
	rules := found(t, definedRule, "Makefile")
	rows := map[string]bool{}
	files, err := filepath.Glob("scenarios/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		for name := range found(t, scenarioName, f) {
			rows[name] = true
		}
	}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		for to := range found(t, mdLink, path) {
			if to == "" || strings.Contains(to, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), to)); err != nil {
				t.Errorf("%s links to %s, which does not exist", path, to)
			}
		}
		for name := range found(t, makeTarget, path) {
			if !rules[name] {
				t.Errorf("%s names `make %s`, which the Makefile lacks", path, name)
			}
		}
		for name := range found(t, namedRow, path) {
			if !rows[name] {
				t.Errorf("%s names scenario %q, which no file in scenarios/ has", path, name)
			}
		}
		for name := range found(t, verb, path) {
			if !commands(t)[name] {
				t.Errorf("%s names `cotenant %s`, which the command line lacks", path, name)
			}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range namedTest.FindAllStringSubmatch(string(text), -1) {
			if !testExists(t, m[1], m[2]) {
				t.Errorf("%s names %s.%s, which does not exist", path, m[1], m[2])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// found is the set of first groups of an expression in a file.
func found(t *testing.T, e *regexp.Regexp, path string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, m := range e.FindAllStringSubmatch(string(text), -1) {
		out[strings.TrimSpace(m[1])] = true
	}
	return out
}

// commands are the words with which cmd/cotenant's commands begin their use.
func commands(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("cmd/cotenant/*.go")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{"help": true}
	for _, f := range files {
		for _, e := range []*regexp.Regexp{regexp.MustCompile(`Use:\s+"([a-z]+)`), regexp.MustCompile(`group\("([a-z]+)"`)} {
			for name := range found(t, e, f) {
				all[name] = true
			}
		}
	}
	return all
}

func testExists(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(folder + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "func "+name+"(") {
			return true
		}
	}
	return false
}
