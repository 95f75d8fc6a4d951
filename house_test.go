package cotenant_test

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// withoutExample names the packages that show no runnable Example, and why.
var withoutExample = map[string]string{
	"cmd/cotenant":       "its use is a command line: the README shows it and its tests run it",
	"scenarios/bench":    "a program: `make bench`",
	"scenarios/ablation": "a program: its tests run it",

	"serve/proto/cotenant/balance/v1": "generated: serve's example shows its use",

	"cluster/clustertest": "for tests, which show its use",
	"place/placetest":     "for tests, which show its use",
}

func TestPackagesTeachTheirUse(t *testing.T) {
	for _, p := range own(t) {
		name, _ := folder(p.ImportPath)
		where := "doc.go"
		if len(p.GoFiles) == 1 {
			where = p.GoFiles[0]
		}
		if !slices.Contains(p.GoFiles, where) {
			t.Errorf("%s has no doc.go; say there in a few lines how the package is used", name)
		} else if f := parse(t, filepath.Join(p.Dir, where), parser.PackageClauseOnly|parser.ParseComments); f.Doc == nil {
			t.Errorf("%s/%s has no package comment; say there in a few lines how the package is used", name, where)
		}
		has := false
		for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			for _, d := range parse(t, filepath.Join(p.Dir, file), parser.SkipObjectResolution).Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Example") {
					has = true
				}
			}
		}
		if reason := withoutExample[name]; has == (reason != "") {
			t.Errorf("%s: has a runnable Example: %v; excused in withoutExample: %q (house_test.go)", name, has, reason)
		}
	}
}

func parse(t *testing.T, path string, mode parser.Mode) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, mode)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The longest that a file may be, in lines: past it, it does more than one
// thing, and is split by behaviour.
const (
	maxSourceLines = 500
	maxTestLines   = 800
)

var (
	promise = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b|(?i)\bnot (yet )?implemented\b`)
	vague   = regexp.MustCompile(`(^|/)(utils?|helpers?|common|misc|manager)(/|\.go$|_test\.go$|\.py$)`)
)

func TestHouseRules(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || path == "bin" || path == "out") {
				return fs.SkipDir
			}
			return nil
		}
		if path == "house_test.go" || !slices.Contains([]string{".go", ".py", ".sh", ".md"}, filepath.Ext(path)) {
			return nil
		}
		if vague.MatchString(filepath.ToSlash(path)) {
			t.Errorf("%s: its name says nothing; name it after what it does", path)
		}
		checkFile(t, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkFile(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, generated := 0, false
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		lines++
		// https://go.dev/s/generatedcode: as long, and in such words, as its generator likes.
		generated = generated || strings.HasPrefix(scanner.Text(), "// Code generated ") && strings.HasSuffix(scanner.Text(), " DO NOT EDIT.")
		if m := promise.FindString(scanner.Text()); m != "" && !generated {
			t.Errorf("%s:%d: %q promises work; do it, or say what is not done where users read it", path, lines, m)
		}
	}
	if err := scanner.Err(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if filepath.Ext(path) == ".md" {
		return
	}
	limit := maxSourceLines
	if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.Base(path), "test_") {
		limit = maxTestLines
	}
	if lines > limit && !generated {
		t.Errorf("%s has %d lines, more than %d; split it by behaviour", path, lines, limit)
	}
}
