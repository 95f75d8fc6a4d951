package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/place/metis"
)

// The policy that ships, and the same as a file, decide the same, and the
// manifest names the file.
func TestPlanServicesReadsAPolicy(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p.safetensors")
	f, err := metis.Shipped("")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := metis.Save(&b, f); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	policies := "metis:search=off,metis@" + path + ":search=off"
	text, errs, code := cotenant(t, tiny("--policy", policies, "--explain", "-o", "csv", "--out", out)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	_, rows, _ := strings.Cut(timeless(text, "csv"), "\n")
	one, two, _ := strings.Cut(strings.TrimSpace(rows), "\n")
	if two = strings.ReplaceAll(two, "@"+path, ""); one != two {
		t.Errorf("as a file, the policy that ships makes\n%s of\n%s", two, one)
	}
	manifest, err := os.ReadFile(filepath.Join(out, "manifest.json"))
	if err != nil || !strings.Contains(string(manifest), path) {
		t.Errorf("the manifest does not name the file: %s, %v", manifest, err)
	}
	if err := os.WriteFile(path, b.Bytes()[:b.Len()-9], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		policy, want string
		code         int
	}{
		{"metis@" + path, "truncated", exitFailed},
		{"metis@testdata/samples.jsonl", "not a Cotenant policy file for services", exitFailed},
		{"metis@none.safetensors", "no file", exitFailed},
		{"metis@", "no file after @", exitWrongUse},
		{"metis:divide=thirds", "none of hierarchy, flat, even", exitWrongUse},
		{"metis:searches=on", "search=on (on: exchanges", exitWrongUse},
		{"metis:search=maybe", "none of on, off", exitWrongUse},
		{"metis:search=off:evals=3", "evals without a search", exitWrongUse},
		{"metis:evals=-3", "whole number", exitWrongUse},
		{"metis:parts=1", "from 2 to", exitWrongUse},
		{"metis:refresh=NaN", "above 0", exitWrongUse},
		{"greedy@" + path, "greedy reads no file", exitWrongUse},
	} {
		out, errs, code := cotenant(t, tiny("--policy", c.policy)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q; want %d and %q", c.policy, code, out, errs, c.code, c.want)
		}
	}
}

// With a search, metis does not end below greedy; the ways that it is compared
// to place everything, too.
func TestPlanServicesByMetis(t *testing.T) {
	ways := []string{"metis", "metis:search=off", "metis:divide=flat", "metis:divide=even:parts=2", "metis:divide=even:search=on"}
	out, errs, code := cotenant(t, tiny("--policy", "greedy,"+strings.Join(ways, ","), "-o", "json")...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var plans []struct {
		Policy string  `json:"policy"`
		Share  float64 `json:"share"`
	}
	if err := json.Unmarshal([]byte(out), &plans); err != nil {
		t.Fatal(err)
	}
	if len(plans) != 1+len(ways) {
		t.Fatalf("%d plans of %d policies", len(plans), 1+len(ways))
	}
	for i, p := range plans[1:] {
		if p.Policy != ways[i] || !(p.Share > 0) {
			t.Errorf("plan %d is %+v, want one of %s", i+1, p, ways[i])
		}
	}
	if greedy, searched := plans[0].Share, plans[1].Share; searched < greedy-1e-9 {
		t.Errorf("metis reaches %g, greedy %g", searched, greedy)
	}
}

// simulate services takes the same policies.
func TestSimulateServicesByMetis(t *testing.T) {
	out, errs, code := cotenant(t, "simulate", "services", "--samples", "testdata/samples.jsonl", "--nodes", "6", "--slots", "3", "--load", "0.6",
		"--horizon", "8h", "--moments", "2", "--policy", "metis,metis:search=off", "-o", "csv")
	if code != 0 || !strings.Contains(out, "\nmetis,1,") || !strings.Contains(out, "\nmetis:search=off,1,") {
		t.Fatalf("exit %d: %s\n%s", code, errs, out)
	}
}
