package suite

import (
	"slices"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/profile"
)

// Whoever installs packages.txt can run every workload.
func TestPackagesHoldWhatWorkloadsNeed(t *testing.T) {
	path, err := Unpack(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := profile.LoadSuite(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := files.ReadFile("packages.txt")
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(text))
	for _, w := range s.Workloads {
		if len(w.Needs) == 0 || w.About == "" {
			t.Errorf("%s says not what it needs or is about", w.Name)
		}
		for _, n := range w.Needs {
			if !slices.Contains(packages, n.Package) {
				t.Errorf("%s needs %q, which packages.txt lacks", w.Name, n.Package)
			}
		}
	}
}
