// Package planetest starts control planes for tests, which are skipped where
// their programs are not built.
//
//	plane := planetest.Start(t, controlplane.Config{}, "kube-scheduler")
package planetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cotenant/cotenant/kubernetes/controlplane"
)

// TwoColours are samples of two workloads: one of each on a node run as alone,
// two of the same at half.
const TwoColours = `{"colocation":{"red":1},"workload":"red","metric":"rate","value":1,"alone":1}
{"colocation":{"blue":1},"workload":"blue","metric":"rate","value":1,"alone":1}
{"colocation":{"red":1,"blue":1},"workload":"red","metric":"rate","value":1,"alone":1}
{"colocation":{"red":1,"blue":1},"workload":"blue","metric":"rate","value":1,"alone":1}
{"colocation":{"red":2},"workload":"red","metric":"rate","value":0.5,"alone":1}
{"colocation":{"blue":2},"workload":"blue","metric":"rate","value":0.5,"alone":1}
`

// Needs skips a test where what every plane needs, or one of these programs
// beside it, is not built.
func Needs(t *testing.T, programs ...string) {
	t.Helper()
	bin, err := controlplane.Binaries()
	if err != nil {
		t.Skip(err)
	}
	for _, program := range programs {
		if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
			t.Skipf("%v; run: make kubernetes-build", err)
		}
	}
}

// Start starts a plane that logs to the test and ends with it. A plane that does
// not end well fails the test.
func Start(t *testing.T, c controlplane.Config, programs ...string) *controlplane.Plane {
	t.Helper()
	Needs(t, programs...)
	c.Log = t.Output()
	plane, err := controlplane.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	return plane
}
