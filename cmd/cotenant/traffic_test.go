package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// clientAndServer are measured alone, and together a twentieth slower.
const clientAndServer = `{"source": "made", "colocation": {"client": 1}, "workload": "client", "metric": "rate", "value": 100, "alone": 100}
{"source": "made", "colocation": {"server": 1}, "workload": "server", "metric": "rate", "value": 100, "alone": 100}
{"source": "made", "colocation": {"client": 1, "server": 1}, "workload": "client", "metric": "rate", "value": 95, "alone": 100}
{"source": "made", "colocation": {"client": 1, "server": 1}, "workload": "server", "metric": "rate", "value": 95, "alone": 100}
`

const edgeToServer = "workloads:\n- name: client\n  edges: [{to: server}]\n- name: server\n"

// pair is `plan services` of a client and a server.
func pair(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{
		"plan", "services", "--samples", file(t, "s.jsonl", clientAndServer), "--batch", file(t, "b.csv", "client,server\n1,1\n"),
	}, more...)
}

type trafficPlan struct {
	Policy    string
	Objective string
	Value     float64 `json:"value_true"`
	Bound     float64
	Proven    bool
	Traffic   *float64
	Placement []nodePlan
}

func plansOf(t *testing.T, args ...string) []trafficPlan {
	t.Helper()
	out, errs, code := cotenant(t, append(args, "-o", "json")...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var plans []trafficPlan
	if err := json.Unmarshal([]byte(out), &plans); err != nil {
		t.Fatal(err)
	}
	return plans
}

// Apart both run as fast as alone; traffic is worth more than what they lose.
func TestPartnersComeTogether(t *testing.T) {
	args := pair(t, "--nodes", "2", "--slots", "2", "--workloads", file(t, "w.yaml", edgeToServer), "--policy", "greedy,greedy-search,bound,metis")
	for _, p := range plansOf(t, args...) {
		if len(p.Placement) != 2 || p.Value != 1 || p.Traffic != nil {
			t.Errorf("mean alone: %+v", p)
		}
	}
	for _, p := range plansOf(t, append(args, "--objective", "mean=1,traffic=0.2")...) {
		if len(p.Placement) != 1 || math.Abs(p.Value-1.05) > 1e-9 || math.Abs(p.Bound-1.05) > 1e-9 || !p.Proven || p.Traffic == nil || *p.Traffic != 1 {
			t.Errorf("with traffic: %+v", p)
		}
		if p.Objective != "mean,traffic=0.2" {
			t.Errorf("objective %q", p.Objective)
		}
	}
	for _, form := range []string{"table", "csv"} {
		out, errs, code := cotenant(t, append(args, "--objective", "traffic", "-o", form)...)
		if code != 0 || !strings.Contains(strings.ToLower(strings.SplitN(out, "greedy", 2)[0]), "traffic\n") {
			t.Errorf("%s: exit %d, %s\n%s", form, code, errs, out)
		}
	}
}

// Where a node takes one of them, they come into one rack.
func TestPartnersComeIntoOneRack(t *testing.T) {
	var nodes []string
	for _, n := range []string{"a east", "b west", "c south", "d east", "e west", "f"} {
		name, rack, _ := strings.Cut(n, " ")
		nodes = append(nodes, `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "`+name+`", "labels": {"cotenant.dev/rack": "`+rack+
			`"}}, "status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "1"}}}`)
	}
	snapshot := file(t, "c.json", `{"apiVersion":"v1","kind":"List","items":[`+strings.Join(nodes, ",\n")+`]}`)
	args := pair(t, "--cluster", snapshot, "--workloads", file(t, "w.yaml", edgeToServer), "--policy", "greedy-search,bound", "--objective", "mean=1,traffic=0.2")
	plans := plansOf(t, args...)
	for _, p := range plans {
		if p.Traffic == nil || *p.Traffic != 0.5 || math.Abs(p.Value-1.05) > 1e-9 {
			t.Errorf("%+v", p)
		}
		if p.Bound < 1.05-1e-9 || p.Value > p.Bound {
			t.Errorf("%+v", p)
		}
	}
}

func TestTrafficNeedsEdges(t *testing.T) {
	for _, c := range []struct {
		name, workloads, objective string
		code                       int
		wanted                     string
	}{
		{"no workloads", "", "mean=1,traffic=0.2", 1, "--workloads"},
		{"no edges", "workloads: [{name: client}]\n", "traffic", 1, "no workload of "},
		{"to nobody", "workloads: [{name: client, edges: [{to: nobody}]}]\n", "traffic", 1, "has an edge to another"},
		{"to itself, alone", "workloads: [{name: client, edges: [{to: client}]}]\n", "traffic", 1, "has an edge to another"},
		{"one to nobody", "workloads: [{name: client, edges: [{to: nobody}, {to: server}]}]\n", "traffic", 0, "count as apart: client to nobody"},
		{"negative", edgeToServer, "mean=1,traffic=-1", 2, `weight "-1" of traffic`},
		{"no number", edgeToServer, "traffic=NaN", 2, `weight "NaN" of traffic`},
		{"mistyped", edgeToServer, "mean=1,trafik=1", 2, "did you mean traffic"},
	} {
		args := pair(t, "--nodes", "2", "--slots", "2", "--policy", "greedy", "--objective", c.objective)
		if c.workloads != "" {
			args = append(args, "--workloads", file(t, "w.yaml", c.workloads))
		}
		if _, errs, code := cotenant(t, args...); code != c.code || !strings.Contains(errs, c.wanted) {
			t.Errorf("%s: exit %d, want %d with %q: %s", c.name, code, c.code, c.wanted, errs)
		}
	}
}

func TestSimulateServicesWithTraffic(t *testing.T) {
	edges := "--workloads=" + file(t, "w.yaml", "workloads:\n- name: web\n  edges: [{to: cache}]\n- name: cache\n")
	args := flowing("--policy", "greedy-search:kicks=5", "--objective", "traffic", "--moments", "4", "-o", "json", edges)
	out, errs, code := cotenant(t, args...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var rows []struct {
		Policy  string
		Traffic *float64
	}
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Traffic == nil || !(*r.Traffic > 0 && *r.Traffic <= 1) {
			t.Errorf("%s: traffic %v", r.Policy, r.Traffic)
		}
	}
	again, _, _ := cotenant(t, args...)
	if a, b := placing.ReplaceAllString(out, ""), placing.ReplaceAllString(again, ""); a != b {
		t.Errorf("the same command twice:\n%s\n%s", a, b)
	}
	if plain, _, _ := cotenant(t, flowing("--policy", "greedy-search:kicks=5", "--moments", "4", "-o", "json", edges)...); placing.ReplaceAllString(plain, "") == placing.ReplaceAllString(out, "") {
		t.Error("traffic makes no difference")
	}
	if _, errs, code := cotenant(t, flowing("--objective", "traffic")...); code == 0 || !strings.Contains(errs, "has an edge to another") {
		t.Errorf("without edges: exit %d, %s", code, errs)
	}
}
