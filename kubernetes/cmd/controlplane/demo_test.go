package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
)

// shipped is the truth that a copy of the repository has, whatever lies beside it.
const shipped = "../../../data/samples.jsonl"

// call runs the program; out and log are what it wrote.
func call(t *testing.T, args ...string) (out, log string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	err = root.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestDemoOnWhatShips(t *testing.T) {
	planetest.Needs(t, "kube-scheduler", "cotenant-scheduler")
	out, log, err := call(t, "demo", "--truth", shipped, "--rounds", "1")
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	for _, want := range []string{"36 pods", "12 nodes of 4 slots", "node-0011", "36 of 36"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}

func TestPodsFitTheNodes(t *testing.T) {
	for _, c := range []struct {
		nodes, pods, usual, want int
	}{
		{12, 0, 60, 36},       // demo
		{729, 0, 3000, 2187},  // bench
		{1000, 0, 3000, 3000}, // all that is usual
		{1, 0, 60, 3},
		{12, 48, 60, 48},
	} {
		f := trialFlags{truth: shipped, nodes: c.nodes, tasks: c.pods, usual: c.usual, rounds: 1}
		if _, b, err := f.batch(); err != nil || b.Tasks() != c.want {
			t.Errorf("--nodes %d --pods %d: %d pods (%v), want %d", c.nodes, c.pods, b.Tasks(), err, c.want)
		}
	}
	f := trialFlags{truth: shipped, nodes: 12, tasks: 49, usual: 60, rounds: 1}
	if _, _, err := f.batch(); err == nil || !strings.Contains(err.Error(), "give 1 to 48") {
		t.Errorf("--pods 49 on 48 slots: %v", err)
	}
}
