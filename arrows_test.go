package cotenant_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/cotenant/cotenant"

// layers lists every folder that holds a package, from the ground up: a
// folder imports only folders that stand before it. docs/design.md draws it.
var layers = []string{
	"cluster",
	"cluster/clustertest",
	"internal/whole",
	"internal/misfit",
	"internal/num",
	"internal/tensors",
	"internal/lp",
	"history",
	"history/sqlstore",
	"history/formats",
	"history/prometheus",
	"live",
	"data",
	"interference",
	"place",
	"place/placetest",
	"place/jobs",
	"place/encode",
	"place/baseline",
	"place/bound",
	"place/harmony",
	"place/metis",
	"explain",
	"external",
	"balance",
	"sim",
	"sim/balance",
	"sim/generated",
	"sim/learned",
	"sim/measured",
	"sim/contention",
	"sim/services",
	"sim/compare",
	"rl",
	"train/curves",
	"train/tune",
	"train/harmony",
	"train/worlds",
	"train/metis",
	"profile/drive",
	"profile",
	"profile/suite",
	"report",
	"serve/proto/cotenant/balance/v1",
	"serve",
	"scenarios/bench",
	"scenarios/ablation",
	"cmd/cotenant",
}

// core packages decide and act on nothing: a view in, a decision out. See
// purity_test.go for what that forbids in their source.
var core = []string{
	"cluster", "internal/num", "internal/tensors", "internal/lp", "interference", "place", "place/jobs", "place/encode", "place/baseline", "place/bound",
	"place/harmony", "place/metis", "balance", "sim", "sim/balance", "sim/generated", "sim/services", "sim/learned", "sim/measured", "sim/contention",
}

// coreModules are the only modules that core packages may reach, even through
// others: linear algebra, and the wire format in which ONNX is written. cluster
// reaches none.
var coreModules = []string{module, "gonum.org/v1/gonum", "google.golang.org/protobuf"}

// goPackage is the part of `go list -json` that the tests here read.
type goPackage struct {
	ImportPath   string
	Dir          string
	Standard     bool
	Module       *struct{ Path string }
	Imports      []string
	TestImports  []string
	Deps         []string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
}

// folder is the package's path in the repository; ok is false where it is
// another module's.
func folder(importPath string) (name string, ok bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func list(t *testing.T, args ...string) []goPackage {
	t.Helper()
	// -e: what does not build is the compiler's to report, not ours.
	cmd := exec.Command("go", append([]string{"list", "-e", "-json=ImportPath,Dir,Standard,Module,Imports,TestImports,Deps,GoFiles,TestGoFiles,XTestGoFiles"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", strings.Join(args, " "), err)
	}
	var packages []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("go list %s: %v", strings.Join(args, " "), err)
		}
		packages = append(packages, p)
	}
}

// own lists this module's packages but the root, which holds only these tests.
func own(t *testing.T) []goPackage {
	t.Helper()
	var packages []goPackage
	for _, p := range list(t, "./...") {
		if name, _ := folder(p.ImportPath); name != "." {
			packages = append(packages, p)
		}
	}
	return packages
}

func TestArrowsGoOneWay(t *testing.T) {
	for _, p := range own(t) {
		from, _ := folder(p.ImportPath)
		at := slices.Index(layers, from)
		if at < 0 {
			t.Errorf("folder %s has no place in layers (arrows_test.go); put it after all that it imports and before all that import it", from)
			continue
		}
		// Tests inside the package follow the arrows too; those in PACKAGE_test
		// may look from above.
		for _, i := range slices.Concat(p.Imports, p.TestImports) {
			to, ok := folder(i)
			if !ok || to == from {
				continue
			}
			if above := slices.Index(layers, to); above >= at {
				t.Errorf("%s imports %s, which stands above it in layers (arrows_test.go)", from, to)
			}
		}
	}
}

func TestCoreReachesFewModules(t *testing.T) {
	all := map[string]goPackage{}
	for _, p := range list(t, "-deps", "./...") {
		all[p.ImportPath] = p
	}
	for _, name := range core {
		p, exists := all[module+"/"+name]
		if !exists {
			continue
		}
		for _, d := range p.Deps {
			dep := all[d]
			switch {
			case dep.Standard:
			case name == "cluster":
				t.Errorf("cluster reaches %s; it uses the standard library only", d)
			case dep.Module == nil || !slices.Contains(coreModules, dep.Module.Path):
				t.Errorf("%s reaches %s; core packages reach only %s", name, d, strings.Join(coreModules, ", "))
			}
		}
	}
}
