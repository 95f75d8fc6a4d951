package cotenant_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// impure lists imports that bring a clock, files, processes or the network
// into a package. A trailing slash forbids the folder.
var impure = []string{
	"os", "os/", "net", "net/", "io/ioutil", "log", "log/", "syscall", "plugin", "crypto/rand", "math/rand",
	"database/sql", "context", "sync", "sync/", "unsafe", "runtime", "runtime/",
}

// excused names what a core package may import all the same, and why.
var excused = map[string]map[string]string{
	"interference": {"sync": "models are safe for concurrent use and share scratch buffers through a pool"},
	"internal/num": {"sync": "scratch buffers are pooled"},
}

// clocks are the functions of time that read or wait for the clock; the types
// and arithmetic of time are fine.
var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// seeded are the names of math/rand/v2 that draw from a source which the
// caller gives; all others draw from the process's own.
var seeded = []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "PCG", "ChaCha8", "Zipf"}

func TestCoreIsPure(t *testing.T) {
	for _, p := range own(t) {
		name, _ := folder(p.ImportPath)
		if !slices.Contains(core, name) {
			continue
		}
		for _, file := range p.GoFiles {
			for _, finding := range impurities(t, name, filepath.Join(p.Dir, file)) {
				t.Error(finding)
			}
		}
	}
}

// impurities lists what a source file of a core package must not do.
func impurities(t *testing.T, folder, path string) []string {
	t.Helper()
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	report := func(at token.Pos, what string) {
		p := files.Position(at)
		found = append(found, folder+"/"+filepath.Base(p.Filename)+":"+strconv.Itoa(p.Line)+": "+what)
	}
	imported := map[string]string{} // name in this file -> path
	for _, i := range f.Imports {
		to, _ := strconv.Unquote(i.Path.Value)
		as := to[strings.LastIndexByte(to, '/')+1:]
		if to == "math/rand/v2" {
			as = "rand"
		}
		if i.Name != nil {
			as = i.Name.Name
		}
		imported[as] = to
		if isImpure(to) && excused[folder][to] == "" {
			report(i.Pos(), "imports "+to+"; core packages take time, randomness and data as arguments")
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(n.Pos(), "starts a goroutine; take a function that runs work, as interference.Options.Parallel")
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if !ok {
				break
			}
			switch imported[x.Name] {
			case "time":
				if slices.Contains(clocks, n.Sel.Name) {
					report(n.Pos(), "reads the clock with time."+n.Sel.Name+"; take the time as an argument")
				}
			case "math/rand/v2":
				if !slices.Contains(seeded, n.Sel.Name) {
					report(n.Pos(), "draws from the process's randomness with rand."+n.Sel.Name+"; take a *rand.Rand")
				}
			}
		}
		return true
	})
	return found
}

func isImpure(path string) bool {
	return slices.ContainsFunc(impure, func(i string) bool {
		return path == i || strings.HasSuffix(i, "/") && strings.HasPrefix(path, i)
	})
}

func TestImpuritiesAreSeen(t *testing.T) {
	found := impurities(t, "testdata", filepath.Join("testdata", "impure.go"))
	want := []string{
		"testdata/impure.go:9: imports os", "testdata/impure.go:14: reads the clock", "testdata/impure.go:15: draws from",
		"testdata/impure.go:16: starts a goroutine",
	}
	if len(found) != len(want) {
		t.Fatalf("found %q, want %d findings", found, len(want))
	}
	for i, w := range want {
		if !strings.HasPrefix(found[i], w) {
			t.Errorf("finding %d is %q, want %q", i, found[i], w)
		}
	}
}
