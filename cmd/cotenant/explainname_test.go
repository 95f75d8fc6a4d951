package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A pod is named as kubectl get -o name prints it, too.
func TestExplainTakesKindAndName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pods.json")
	text := `{"kind":"List","items":[{"kind":"Pod","metadata":{"name":"p","namespace":"d","labels":{"cotenant.dev/workload":"a","cotenant.dev/gang":"g"}},
		"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]},"status":{"phase":"Running"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"pod", "p", "-n", "d"},
		{"pod", "d/p"},
		{"pod", "pod/p", "-n", "d"},
		{"pod", "pod/d/p"},
		{"group", "g", "-n", "d"},
		{"group", "group/g", "-n", "d"},
	} {
		out, errs, code := cotenant(t, append([]string{"explain", args[0], "--cluster", file}, args[1:]...)...)
		if code != exitDone || !strings.Contains(out, "placed") {
			t.Errorf("%q: %d\n%s%s", args, code, out, errs)
		}
	}
	if _, errs, code := cotenant(t, "explain", "pod", "pod/other", "-n", "d", "--cluster", file); code == exitDone || !strings.Contains(errs, "there is no pod d/other") {
		t.Errorf("%d\n%s", code, errs)
	}
}
