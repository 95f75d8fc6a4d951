package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Pods and groups are named as kubectl names them, too.
func TestExplainTakesKindAndName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pods.json")
	owned := func(pod, kind, name string) string {
		return `{"kind":"Pod","metadata":{"name":"` + pod + `","namespace":"d","ownerReferences":[{"kind":"` + kind + `","name":"` + name + `","controller":true}]},
		"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]},"status":{"phase":"Running"}}`
	}
	text := `{"kind":"List","items":[{"kind":"Pod","metadata":{"name":"p","namespace":"d","labels":{"cotenant.dev/workload":"a","cotenant.dev/gang":"g"}},
		"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]},"status":{"phase":"Running"}},` +
		strings.Join([]string{owned("r", "ReplicaSet", "redis-7d9f"), owned("s", "StatefulSet", "db"), owned("t", "PyTorchJob", "bert"), owned("u", "Job", "nightly-29")}, ",") + `]}`
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
		{"group", "d/g"},
		{"group", "podgroup/g", "-n", "d"},
		{"group", "deployment/redis", "-n", "d"},
		{"group", "Deployment/redis", "-n", "d"},
		{"group", "deployments.apps/redis", "-n", "d"},
		{"group", "rs/redis-7d9f", "-n", "d"},
		{"group", "d/redis"},
		{"group", "d/sts/db"},
		{"group", "pytorchjob/bert", "-n", "d"},
		{"group", "cronjob/nightly", "-n", "d"},
		{"pod/p", "-n", "d"},
		{"pods", "p", "-n", "d"},
		{"po", "p", "-n", "d"},
		{"sts/db", "-n", "d"},
		{"deploy", "redis", "-n", "d"},
		{"pytorchjobs.kubeflow.org/bert", "-n", "d"},
	} {
		out, errs, code := cotenant(t, append([]string{"explain", args[0], "--cluster", file}, args[1:]...)...)
		if code != exitDone || !strings.Contains(out, "placed") {
			t.Errorf("%q: %d\n%s%s", args, code, out, errs)
		}
	}
	for want, args := range map[string][]string{
		"one of that name is in d (-n)":                           {"deployment/redis"},
		"there is no group statefulset/redis in namespace d":      {"statefulset/redis", "-n", "d"},
		"disagree; keep one":                                      {"group", "e/g", "-n", "d"},
		`knows no "pid", only: group, pod; did you mean pod?`:     {"pid", "p"},
		"--node n1: is said of pods alone":                        {"sts/db", "--node", "n1", "--samples", "testdata/samples.jsonl"},
		"--cluster and --kubeconfig are both given; keep one":     {"pod/p", "--kubeconfig", "elsewhere"},
		`--context prod: --cluster ` + file + ` is no kubeconfig`: {"pod/p", "--context", "prod"},
	} {
		if _, errs, code := cotenant(t, append([]string{"explain", "--cluster", file}, args...)...); code == exitDone || !strings.Contains(errs, want) {
			t.Errorf("%q: %d\n%s", args, code, errs)
		}
	}
	if _, errs, code := cotenant(t, "explain", "pod", "pod/other", "-n", "d", "--cluster", file); code == exitDone || !strings.Contains(errs, "there is no pod d/other") {
		t.Errorf("%d\n%s", code, errs)
	}
}
