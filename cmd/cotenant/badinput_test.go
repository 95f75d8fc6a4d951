package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every bad input gives an error that says which, where and what to do, an
// exit code of 1 or 2, and nothing on stdout or in --out.
func TestBadInput(t *testing.T) {
	const header = "cache,train,web\n"
	sample := func(co, w, rest string) string {
		return `{"colocation":` + co + `,"workload":"` + w + `","metric":"rate",` + rest + "}\n"
	}
	for _, c := range []struct {
		name  string
		files map[string]string // written, and named in args as @name
		args  string            // after `plan services --samples testdata/samples.jsonl`
		code  int
		want  []string // in stderr
	}{
		{"no batch", nil, "--nodes 3", 2, []string{"what to place?", "--batch"}},
		{"no nodes", nil, "--batch testdata/batch.csv", 2, []string{"where to place?", "--nodes", "--cluster"}},
		{"nodes and cluster", nil, "--batch testdata/batch.csv --nodes 3 --cluster x", 2, []string{"both"}},
		{"unreadable nodes", nil, "--batch testdata/batch.csv --nodes three", 2, []string{`"three"`, "[class:]N[xDEVICES]"}},
		{"no nodes at all", nil, "--batch testdata/batch.csv --nodes 0", 2, []string{"0 nodes"}},
		{"class twice", nil, "--batch testdata/batch.csv --nodes a:1,a:2", 2, []string{`"a"`, "twice"}},
		{"unknown class", nil, "--batch testdata/batch.csv --nodes v100:3", 1, []string{`"v100"`, "samples testdata/samples.jsonl"}},
		{"negative slots", nil, "--batch testdata/batch.csv --nodes 3 --slots -1", 2, []string{"-1", "1 to 10000"}},
		{"more slots than any machine", nil, "--batch testdata/batch.csv --nodes 3 --slots 100000000000", 2, []string{"100000000000", "1 to 10000"}},
		{"more zones than nodes", nil, "--batch testdata/batch.csv --nodes 3 --zones 100000000", 2, []string{"100000000", "3 nodes"}},
		{"endless capacity", nil, "--batch testdata/batch.csv --nodes 3 --capacity cpu=1e400", 2, []string{`cpu: "1e400"`, "at most 1152921504606846 cores"}},
		{"capacity past a number", nil, "--batch testdata/batch.csv --nodes 3 --capacity memory=9223372036854775808", 2, []string{`"9223372036854775808"`, "at most 1152921504606846976"}},
		{
			"endless request",
			map[string]string{"w.yaml": "workloads: [{name: web, requests: {cpu: 1e400}}]\n"},
			"--batch testdata/batch.csv --nodes 3 --capacity cpu=4 --workloads @w.yaml", 1,
			[]string{"w.yaml", "cpu", "1e400", "at most"},
		},

		{"no such batch", nil, "--batch nowhere.csv --nodes 3", 1, []string{"--batch", `"nowhere.csv"`, "check the path"}},
		{"empty batch", map[string]string{"b.csv": ""}, "--batch @b.csv --nodes 3", 1, []string{"b.csv", "first line names the workloads"}},
		{"header only", map[string]string{"b.csv": header}, "--batch @b.csv --nodes 3", 1, []string{"b.csv"}},
		{"row out of range", nil, "--batch testdata/batch.csv:2 --nodes 3", 1, []string{"testdata/batch.csv", "no row 2", "counted from 0"}},
		{"unknown workload", map[string]string{"b.csv": "cache,redsi\n1,2\n"}, "--batch @b.csv --nodes 3", 1, []string{"b.csv:0", "redsi (column 2)", "samples.jsonl: cache, train, web"}},
		{"mistyped workload", map[string]string{"b.csv": "cahce,web\n1,2\n"}, "--batch @b.csv --nodes 3", 1, []string{"cahce (column 1, perhaps cache)"}},
		{"negative count", map[string]string{"b.csv": header + "1,-1,1\n"}, "--batch @b.csv --nodes 3", 1, []string{"b.csv", "train", `"-1"`, "line 2"}},
		{"fraction", map[string]string{"b.csv": header + "1,1.5,1\n"}, "--batch @b.csv --nodes 3", 1, []string{"train", `"1.5"`}},
		{"no number", map[string]string{"b.csv": header + "1,many,1\n"}, "--batch @b.csv --nodes 3", 1, []string{"train", `"many"`}},
		{"empty field", map[string]string{"b.csv": header + "1,,1\n"}, "--batch @b.csv --nodes 3", 1, []string{"train", "write 0 for none"}},
		{"NaN", map[string]string{"b.csv": header + "1,NaN,1\n"}, "--batch @b.csv --nodes 3", 1, []string{"train"}},
		{"huge", map[string]string{"b.csv": header + "1,99999999999999999999,1\n"}, "--batch @b.csv --nodes 3", 1, []string{"train", "99999999999999999999"}},
		{"too many", map[string]string{"b.csv": header + "1,2000000,1\n"}, "--batch @b.csv --nodes 3", 1, []string{"2000002 tasks", "at most 1000000"}},
		{"far too many", map[string]string{"b.csv": header + "1,20000000,1\n"}, "--batch @b.csv --nodes 3", 1, []string{"20000002 tasks", "at most 1000000"}},
		{"negative row", nil, "--batch testdata/batch.csv:-1 --nodes 3", 2, []string{`"-1" is no row`, "count from 0"}},
		{"no row", nil, "--batch testdata/batch.csv:first --nodes 3", 2, []string{`"first" is no row`, "count from 0"}},
		{"no tasks", map[string]string{"b.csv": header + "0,0,0\n"}, "--batch @b.csv --nodes 3", 1, []string{"without a task"}},
		{"column twice", map[string]string{"b.csv": "cache,web,cache\n1,1,1\n"}, "--batch @b.csv --nodes 3", 1, []string{"cache", "b.csv"}},
		{"too few fields", map[string]string{"b.csv": header + "1,1\n"}, "--batch @b.csv --nodes 3", 1, []string{"line 2"}},
		{"more tasks than slots", nil, "--batch testdata/batch.csv --nodes 3 --slots 2", 1, []string{"7 tasks", "3 nodes", "6 free slots", "1 too few", "add nodes, raise --slots"}},
		{"more tasks than measured slots", nil, "--batch testdata/batch.csv --nodes 2 --slots 3", 1, []string{"1 too few; add nodes or place fewer tasks (more than 3 on a node were never measured together)"}},

		{"no such samples", nil, "--samples nowhere.jsonl --batch testdata/batch.csv --nodes 3", 1, []string{"--samples", `"nowhere.jsonl"`}},
		{"empty samples", map[string]string{"s.jsonl": ""}, "--samples @s.jsonl --batch testdata/batch.csv --nodes 3", 1, []string{"s.jsonl", "nothing in it"}},
		{
			"contradictory samples",
			map[string]string{"s.jsonl": sample(`{"a":2}`, "a", `"value":0.9,"alone":1`) + sample(`{"a":2}`, "a", `"value":0.3,"alone":1`)},
			"--samples @s.jsonl --batch testdata/batch.csv --nodes 3", 1,
			[]string{"s.jsonl: lines 2 and 1: contradictory", "a*2", "as 0.3 and as 0.9"},
		},
		{
			"faster alone than alone",
			map[string]string{"s.jsonl": sample(`{"a":1}`, "a", `"value":10,"alone":5`)},
			"--samples @s.jsonl --batch testdata/batch.csv --nodes 3", 1,
			[]string{"s.jsonl: line 1: value: 10 of a single task", "given as 5", "correct one"},
		},
		{
			"beyond any performance",
			map[string]string{"s.jsonl": sample(`{"a":1}`, "a", `"value":2`) + sample(`{"a":2}`, "a", `"value":1e12`)},
			"--samples @s.jsonl --batch testdata/batch.csv --nodes 3", 1,
			[]string{"s.jsonl: line 2: rate of a in a*2", "1e+12 is 5e+11 times the rate alone, 2"},
		},
		{
			"still alone",
			map[string]string{"s.jsonl": sample(`{"a":1}`, "a", `"value":0`) + sample(`{"a":2}`, "a", `"value":1`)},
			"--samples @s.jsonl --batch testdata/batch.csv --nodes 3", 1,
			[]string{"s.jsonl: line 1: ", "the rate of a alone was measured as 0", "measure a alone again"},
		},
		{"nothing alone", map[string]string{"s.jsonl": sample(`{"a":2}`, "a", `"value":0.9`)}, "--samples @s.jsonl --batch testdata/batch.csv --nodes 3", 1, []string{"s.jsonl", "a*2", "alone"}},
		{"no such model", nil, "--model nowhere.model --batch testdata/batch.csv --nodes 3", 1, []string{"--model", `"nowhere.model"`}},
		{"not a model", map[string]string{"m": "hello"}, "--model @m --batch testdata/batch.csv --nodes 3", 1, []string{"--model"}},

		{"unknown policy", nil, "--batch testdata/batch.csv --nodes 3 --policy greedy,best", 2, []string{"best", "known are", "greedy-search", "exec:PROGRAM"}},
		{"policy twice", nil, "--batch testdata/batch.csv --nodes 3 --policy greedy,greedy", 2, []string{"named twice"}},
		{"policy file", nil, "--batch testdata/batch.csv --nodes 3 --policy greedy@x", 2, []string{"reads no file"}},
		{"unknown parameter", nil, "--batch testdata/batch.csv --nodes 3 --policy greedy:speed=3", 2, []string{"greedy:speed=3", `"speed"`}},
		{"bad pessimism", nil, "--batch testdata/batch.csv --nodes 3 --policy greedy:pessimism=-1", 2, []string{"pessimism", `"-1"`}},
		{"no program", nil, "--batch testdata/batch.csv --nodes 3 --policy exec:", 2, []string{"name a program"}},
		{"no such program", nil, "--batch testdata/batch.csv --nodes 3 --policy exec:./nowhere", 1, []string{"./nowhere", "cannot start"}},
		{"unknown objective", nil, "--batch testdata/batch.csv --nodes 3 --objective best", 2, []string{`"best"`, "mean, worst, p99, nodes"}},
		{"unknown order", nil, "--batch testdata/batch.csv --nodes 3 --order lifo", 2, []string{"lifo", "roundrobin"}},
		{"unknown output", nil, "--batch testdata/batch.csv --nodes 3 -o xml", 2, []string{"xml", "yaml"}},
		{"no seeds", nil, "--batch testdata/batch.csv --nodes 3 --seeds 0", 2, []string{"--seeds 0"}},
		{"no latency", map[string]string{"b.csv": "train\n2\n"}, "--batch @b.csv --nodes 3 --objective p99", 1, []string{"no workload", "latency", "--objective mean"}},

		{"no such constraints", nil, "--batch testdata/batch.csv --nodes 3 --constraints nowhere.yaml", 1, []string{"--constraints", "nowhere.yaml"}},
		{
			"unknown rule",
			map[string]string{"c.yaml": "max_per_node: {web: 2}\nanti_afinity: []\n"},
			"--batch testdata/batch.csv --nodes 3 --constraints @c.yaml", 1,
			[]string{"c.yaml", "line 2", `"anti_afinity"`, "anti_affinity, max_per_node"},
		},
		{
			"unknown field",
			map[string]string{"c.yaml": "spread:\n- workload: web\n  key: z\n  skew: 1\n"},
			"--batch testdata/batch.csv --nodes 3 --constraints @c.yaml", 1,
			[]string{"line 4", `"skew"`, "spread[0]", "max_skew"},
		},
		{
			"no skew at all",
			map[string]string{"c.yaml": "spread: [{workload: web, key: z, max_skew: 0}]\n"},
			"--batch testdata/batch.csv --nodes 3 --constraints @c.yaml", 1,
			[]string{"c.yaml", `spread of "web" over "z"`, "max_skew 0", "at least 1"},
		},
		{
			"unknown effect",
			map[string]string{"c.yaml": "tolerations: {web: [{key: k, effect: Foo}]}\n"},
			"--batch testdata/batch.csv --nodes 3 --constraints @c.yaml", 1,
			[]string{"c.yaml", "tolerations[web][0]", `"Foo"`, "NoSchedule, NoExecute, PreferNoSchedule"},
		},
		{
			"wrong kind",
			map[string]string{"c.yaml": "max_per_node: {web: two}\n"},
			"--batch testdata/batch.csv --nodes 3 --constraints @c.yaml", 1,
			[]string{"line 1", "max_per_node.web", `"two"`, "whole number"},
		},
		{"not YAML", map[string]string{"c.yaml": "max_per_node: {web: 2\n"}, "--batch testdata/batch.csv --nodes 3 --constraints @c.yaml", 1, []string{"c.yaml", "not YAML"}},
		{
			"rule about nobody",
			map[string]string{"c.yaml": "max_per_node: {wbe: 2}\n"},
			"--batch testdata/batch.csv --nodes 3 --constraints @c.yaml", 1,
			[]string{"c.yaml", `"wbe"`, "cache, train, web"},
		},
		{
			"negative rule",
			map[string]string{"c.yaml": "max_per_node: {web: -2}\n"},
			"--batch testdata/batch.csv --nodes 3 --constraints @c.yaml", 1,
			[]string{"c.yaml", "max_per_node[web]", "-2"},
		},
		{
			"infeasible max per node",
			map[string]string{"c.yaml": "max_per_node: {web: 1}\n"},
			"--batch testdata/batch.csv --nodes 2 --slots 4 --constraints @c.yaml", 1,
			[]string{"at most 2 of 3 tasks of web", "c.yaml", "max_per_node[web] = 1", "2 nodes", "raise it"},
		},
		{
			"infeasible selector",
			map[string]string{"c.yaml": "node_selector: {web: {disk: ssd}}\n"},
			"--batch testdata/batch.csv --nodes 3 --constraints @c.yaml", 1,
			[]string{"no node can take a task of web", "disk=ssd", "0 of 3 nodes", "c.yaml"},
		},
		{
			"infeasible anti-affinity",
			map[string]string{"c.yaml": "anti_affinity: [{a: web, b: web, key: topology.kubernetes.io/zone}]\n"},
			"--batch testdata/batch.csv --nodes 3 --zones 2 --constraints @c.yaml", 1,
			[]string{"at most 2 of 3 tasks of web", "anti_affinity[0]", "2 domains"},
		},
		{
			"infeasible spread",
			map[string]string{"c.yaml": "spread: [{workload: web, key: topology.kubernetes.io/zone}]\n"},
			"--batch testdata/batch.csv --nodes 3 --constraints @c.yaml", 1,
			[]string{"no node can take a task of web", "spread[0]", "--zones"},
		},
		{
			"request without capacity",
			map[string]string{"w.yaml": "workloads: [{name: web, requests: {cpu: 500m}}]\n"},
			"--batch testdata/batch.csv --nodes 3 --workloads @w.yaml", 2,
			[]string{"web requests cpu", "--capacity"},
		},
		{
			"request too large",
			map[string]string{"w.yaml": "workloads: [{name: web, requests: {cpu: 4}}]\n"},
			"--batch testdata/batch.csv --nodes 3 --capacity cpu=2 --workloads @w.yaml", 1,
			[]string{"web asks for 4 cores", "2 cores of cpu free"},
		},
		{
			"bad quantity",
			map[string]string{"w.yaml": "workloads: [{name: web, requests: {cpu: 1 core}}]\n"},
			"--batch testdata/batch.csv --nodes 3 --capacity cpu=2 --workloads @w.yaml", 1,
			[]string{"workloads[0] (web)", `"1 core"`, "500m"},
		},
		{"bad capacity", nil, "--batch testdata/batch.csv --nodes 3 --capacity cpu", 2, []string{"--capacity cpu", "resource=quantity"}},
		{"capacity of nobody", nil, "--batch testdata/batch.csv --nodes 3 --capacity v100:cpu=2", 2, []string{`"v100"`}},
		{"no such cluster", nil, "--batch testdata/batch.csv --cluster nowhere.json", 1, []string{"--cluster", "nowhere.json"}},
		{"not a cluster", map[string]string{"c.json": "{]"}, "--batch testdata/batch.csv --cluster @c.json", 1, []string{"--cluster", "c.json"}},
		{"nothing waits", map[string]string{"c.json": `{"nodes":[{"name":"n"}]}`}, "--cluster @c.json", 2, []string{"what to place?", "c.json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			args := []string{"plan", "services", "--out", filepath.Join(dir, "out")}
			if !strings.Contains(c.args, "--samples") && !strings.Contains(c.args, "--model") {
				args = append(args, "--samples", "testdata/samples.jsonl")
			}
			for name, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, a := range strings.Fields(c.args) {
				if name, ok := strings.CutPrefix(a, "@"); ok {
					a = filepath.Join(dir, name)
				}
				args = append(args, a)
			}
			out, errs, code := cotenant(t, args...)
			if code != c.code {
				t.Errorf("exit %d; want %d", code, c.code)
			}
			if out != "" {
				t.Errorf("stdout %q; want nothing", out)
			}
			for _, want := range c.want {
				if !strings.Contains(errs, want) {
					t.Errorf("stderr %q lacks %q", errs, want)
				}
			}
			if c.name != "no such program" {
				if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
					t.Error("--out was written")
				}
			}
		})
	}
}
