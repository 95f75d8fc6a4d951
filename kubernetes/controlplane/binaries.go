package controlplane

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// programs are what every plane needs, of those that `make kubernetes-build` makes.
var programs = []string{"etcd", "kube-apiserver", "kwok"}

// Binaries is the folder of the programs: $COTENANT_KUBERNETES_BIN, or else
// kubernetes/bin of the repository that the working directory is in. Its error
// says which program is missing and how to make it.
func Binaries() (string, error) {
	if dir := os.Getenv("COTENANT_KUBERNETES_BIN"); dir != "" {
		return dir, complete(dir)
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := here; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "kubernetes", "go.mod")); err == nil {
			dir := filepath.Join(at, "kubernetes", "bin")
			return dir, complete(dir)
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no folder kubernetes/bin above %s; run in the repository, or name the folder in COTENANT_KUBERNETES_BIN", here)
		}
	}
}

func complete(dir string) error {
	for _, name := range programs {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("%s is not built in %s; run: make kubernetes-build", name, dir)
		}
	}
	return nil
}

// Version is the version of the module that a program was built from, as its
// own build information has it, "unknown" where it has none.
func Version(program string) string {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return "unknown"
	}
	// The module that holds the main package: the main module, or the
	// dependency with the longest path that is a prefix of the package's.
	module, version := info.Main.Path, info.Main.Version
	if !strings.HasPrefix(info.Path, module) || module == "" {
		module, version = "", "unknown"
	}
	for _, d := range info.Deps {
		if len(d.Path) > len(module) && (info.Path == d.Path || strings.HasPrefix(info.Path, d.Path+"/")) {
			module, version = d.Path, d.Version
		}
	}
	return version
}
