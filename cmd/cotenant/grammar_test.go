package main

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
)

func TestParseNodes(t *testing.T) {
	nodes, err := parseNodes("v100:2x4,k80:1,3x0", 5)
	if err != nil {
		t.Fatal(err)
	}
	type short struct {
		name, class    string
		devices, slots int
	}
	var got []short
	for _, n := range nodes {
		got = append(got, short{n.Name, n.Class, len(n.Devices), n.Slots})
	}
	want := []short{
		{"v100-0", "v100", 4, 5},
		{"v100-1", "v100", 4, 5},
		{"k80-0", "k80", 1, 5},
		{"node-0", "", 0, 5},
		{"node-1", "", 0, 5},
		{"node-2", "", 0, 5},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
	for _, bad := range []string{"", "x", "-1", "0", "3x", "a:", "a:b:3", "3,", "1,2", "99999999999999999999", "1x65", "200000"} {
		if _, err := parseNodes(bad, 1); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestZonesAreDealtInTurn(t *testing.T) {
	nodes := cluster.Nodes("", 4, 0, 1)
	labelZones(nodes, 3)
	for i, want := range []string{"zone-0", "zone-1", "zone-2", "zone-0"} {
		if got := nodes[i].Labels[cluster.ZoneKey]; got != want {
			t.Errorf("node %d is in %q; want %q", i, got, want)
		}
	}
}

func TestParsePolicies(t *testing.T) {
	for _, c := range []struct {
		in   []string
		want []policySpec
	}{
		{[]string{"spread,greedy"}, []policySpec{{text: "spread", name: "spread"}, {text: "greedy", name: "greedy"}}},
		{[]string{"spread", "greedy"}, []policySpec{{text: "spread", name: "spread"}, {text: "greedy", name: "greedy"}}},
		{[]string{"greedy:a=1,b=2,spread"}, []policySpec{
			{text: "greedy:a=1,b=2", name: "greedy", params: map[string]string{"a": "1", "b": "2"}},
			{text: "spread", name: "spread"},
		}},
		{[]string{"greedy:a=1:b=x=y"}, []policySpec{{text: "greedy:a=1:b=x=y", name: "greedy", params: map[string]string{"a": "1", "b": "x=y"}}}},
		{[]string{"exec:./mine --x=1,greedy"}, []policySpec{
			{text: "exec:./mine --x=1", name: "exec", argv: []string{"./mine", "--x=1"}},
			{text: "greedy", name: "greedy"},
		}},
		{[]string{`exec:"./mine --x 1,2",greedy`}, []policySpec{
			{text: `exec:"./mine --x 1,2"`, name: "exec", argv: []string{"./mine", "--x", "1,2"}},
			{text: "greedy", name: "greedy"},
		}},
		{[]string{`exec:python3 'my policy.py' --weights '1,2'`}, []policySpec{
			{text: `exec:python3 'my policy.py' --weights '1,2'`, name: "exec", argv: []string{"python3", "my policy.py", "--weights", "1,2"}},
		}},
	} {
		got, err := parsePolicies(c.in)
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
		} else if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %+v; want %+v", c.in, got, c.want)
		}
	}
	for _, bad := range []string{"", ",", "greedy,", "greedy:", "greedy::", "greedy:a=1:", "greedy::a=1", "greedy:a", "greedy:=1", "greedy:a=1,a=2", "exec:", `exec:"x`, "@f", "greedy@"} {
		_, err := parsePolicies([]string{bad})
		if bad == "greedy:" {
			if err != nil {
				t.Errorf("%q: %v", bad, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzParsePolicies(f *testing.F) {
	for _, s := range []string{"greedy:a=1,b=2,spread", `exec:"a b",x`, "@:,=", "'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		specs, err := parsePolicies([]string{s})
		if err == nil && len(specs) == 0 {
			t.Errorf("%q gave no policy and no error", s)
		}
	})
}

func FuzzDecodeStrict(f *testing.F) {
	for _, s := range []string{"max_per_node: {web: 2}", `{"spread": [{"workload": "a", "key": "z"}]}`, "a: &x 1\nb: *x", "---\n---\n", "\t{\n\t}", "? {a: b}\n: c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var c cluster.Constraints
		_ = decodeStrict("it", []byte(s), &c) // must not panic
	})
}

func TestDecodeStrictTakesWhatItShould(t *testing.T) {
	want := cluster.Constraints{
		AntiAffinity: []cluster.AntiAffinity{{A: "a", B: "b"}},
		MaxPerNode:   map[string]int{"a": 2},
		NodeSelector: map[string]map[string]string{"a": {"rack": "7", "gpu": "true"}},
		Tolerations:  map[string][]cluster.Toleration{"a": {{Key: "k", Exists: true}}},
	}
	for name, text := range map[string]string{
		"YAML":       "# rules\nanti_affinity:\n- {a: a, b: b}\nmax_per_node: {a: 2}\nnode_selector: {a: {rack: 7, gpu: true}}\ntolerations:\n  a:\n  - {key: k, exists: true}\n",
		"JSON":       `{"anti_affinity":[{"a":"a","b":"b"}],"max_per_node":{"a":2},"node_selector":{"a":{"rack":"7","gpu":"true"}},"tolerations":{"a":[{"key":"k","exists":true}]}}`,
		"JSON, tabs": "{\n\t\"anti_affinity\": [\n\t\t{\"a\": \"a\", \"b\": \"b\"}\n\t],\n\t\"max_per_node\": {\"a\": 2},\n\t\"node_selector\": {\"a\": {\"rack\": \"7\", \"gpu\": \"true\"}},\n\t\"tolerations\": {\"a\": [{\"key\": \"k\", \"exists\": true}]}\n}",
	} {
		var got cluster.Constraints
		if err := decodeStrict(name, []byte(text), &got); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v; want %+v", name, got, want)
		}
	}
	for text, want := range map[string]string{
		"":                        "empty",
		"[]":                      "top level is a list",
		"spread: []\nspread: []":  "given on line 1",
		"max_per_node: {a: 1.5}":  "whole number",
		"max_per_node: {a: 1e99}": "whole number",
		"max_per_node: [a]":       "a mapping",
		"spread: {a: b}":          "a list",
		"max_per_node: {a: 1}\n---\nspread: []\n":  "more than one",
		"tolerations: {a: [{exists: yes please}]}": "true or false",
	} {
		var c cluster.Constraints
		if err := decodeStrict("it", []byte(text), &c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v; want one with %q", text, err, want)
		}
	}
}

func TestWorkloadsFile(t *testing.T) {
	path := file(t, "w.yaml", "workloads:\n- name: web\n  requests: {cpu: 500m, memory: 1Gi}\n  limits: {cpu: 1, nvidia.com/gpu: 1}\n  edges: [{to: cache, weight: 2}]\n- name: cache\n")
	ws, err := readWorkloads(&inputs{}, path)
	if err != nil {
		t.Fatal(err)
	}
	want := []cluster.Workload{
		{
			Name: "web", Edges: []cluster.Edge{{To: "cache", Weight: 2}},
			Requests: cluster.Resources{"cpu": 500, "memory": 1 << 30, "nvidia.com/gpu": 1},
			Limits:   cluster.Resources{"cpu": 1000, "nvidia.com/gpu": 1},
		},
		{Name: "cache"},
	}
	if !reflect.DeepEqual(ws, want) {
		t.Errorf("got %+v; want %+v", ws, want)
	}
	for text, want := range map[string]string{
		"workloads: []":                                                "no workloads",
		"workloads: [{}]":                                              "no name",
		"workloads: [{name: a}, {name: a}]":                            "listed before",
		"workloads: [{name: a, requests: {cpu: -1}}]":                  "negative",
		"workloads: [{name: a, edges: [{to: b, weight: -1}]}]":         "weight -1",
		"workloads: [{name: a, requests: {cpu: 2}, limits: {cpu: 1}}]": "above its limit",
	} {
		if _, err := readWorkloads(&inputs{}, file(t, "w.yaml", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want one with %q", text, err, want)
		}
	}
}

// A running task of an unknown workload holds its room and nothing else.
func TestReserve(t *testing.T) {
	spec := cluster.Spec{
		Nodes: []cluster.Node{
			{Name: "a", Slots: 3, Capacity: cluster.Resources{"cpu": 1000}},
			{Name: "b", Slots: 1, Capacity: cluster.Resources{"cpu": 1000}},
		},
		Workloads: []cluster.Workload{{Name: "dns", Requests: cluster.Resources{"cpu": 100}}, {Name: "web"}},
		Running: []cluster.Running{
			{Task: cluster.Task{ID: "1", Workload: "dns"}, Node: "a"},
			{Task: cluster.Task{ID: "2", Workload: "dns", Requests: cluster.Resources{"cpu": 300}}, Node: "b"},
			{Task: cluster.Task{ID: "3", Workload: "web"}, Node: "a"},
		},
		Constraints: cluster.Constraints{NodeSelector: map[string]map[string]string{"dns": {"x": "y"}}},
	}
	gone := reserve(&spec, []string{"web"})
	if !reflect.DeepEqual(gone, []string{"dns"}) || len(spec.Running) != 1 || len(spec.Constraints.NodeSelector) != 0 || len(spec.Workloads) != 1 {
		t.Errorf("gone %v, left %+v", gone, spec)
	}
	a, b := spec.Nodes[0], spec.Nodes[1]
	if a.Slots != 2 || a.Capacity["cpu"] != 900 || b.Capacity["cpu"] != 700 || !b.Unschedulable {
		t.Errorf("nodes %+v", spec.Nodes)
	}
}

// A batch that checkRoom refuses fits in no way: a workload alone on the
// cluster, placed by hand, never holds more than it says.
func TestCheckRoomRefusesOnlyWhatCannotBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := cluster.Nodes("", rapid.IntRange(1, 3).Draw(t, "nodes"), 0, rapid.IntRange(1, 2).Draw(t, "slots"))
		labelZones(nodes, rapid.IntRange(1, 2).Draw(t, "zones"))
		var c cluster.Constraints
		if rapid.Bool().Draw(t, "max") {
			c.MaxPerNode = map[string]int{"a": rapid.IntRange(0, 2).Draw(t, "most")}
		}
		if rapid.Bool().Draw(t, "anti") {
			c.AntiAffinity = []cluster.AntiAffinity{{A: "a", B: "a", Key: rapid.SampledFrom([]string{"", cluster.ZoneKey}).Draw(t, "key")}}
		}
		if rapid.Bool().Draw(t, "spread") {
			c.Spread = []cluster.Spread{{Workload: "a", Key: cluster.ZoneKey, MaxSkew: rapid.IntRange(1, 2).Draw(t, "skew")}}
		}
		s, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes, Constraints: c})
		if err != nil {
			t.Fatal(err)
		}
		b := &batch{name: "batch", workloads: []string{"a"}, counts: []int{rapid.IntRange(1, 6).Draw(t, "tasks")}}
		refused := checkRoom(s, b, "", 0) != nil
		if possible := fitsInSomeOrder(s, b); refused && possible {
			t.Fatalf("refused %d tasks that fit: %v", b.tasks(), checkRoom(s, b, "", 0))
		} else if !refused && !possible && len(c.Spread)+len(c.AntiAffinity) < 2 {
			t.Fatalf("took %d tasks that do not fit", b.tasks())
		}
	})
}

// fitsInSomeOrder tries all ways to put the tasks one after another.
func fitsInSomeOrder(s *cluster.Snapshot, b *batch) bool {
	tasks := b.groups("workload", 0)[0].Tasks
	p := cluster.NewPlacement(s, tasks)
	var try func(left int) bool
	try = func(left int) bool {
		if left == 0 {
			return true
		}
		for n := range s.Nodes() {
			if p.Check(0, n) == cluster.Fits {
				p.Put(0, n)
				if try(left - 1) {
					return true
				}
				p.Take(0, n)
			}
		}
		return false
	}
	return try(len(tasks))
}

func TestProgress(t *testing.T) {
	now := time.Unix(0, 0)
	var out strings.Builder
	p := newProgress(&out, "plan", 4)
	p.now = func() time.Time { return now }
	p.start, p.last = now, now
	p.at(1, "greedy")
	now = now.Add(20 * time.Second)
	p.at(2, "bound")
	p.end()
	if got, want := out.String(), "plan: 2 of 4, 20s left, now bound\n"; got != want {
		t.Errorf("elsewhere: %q; want %q", got, want)
	}
	out.Reset()
	p.terminal = true
	p.at(3, "bound")
	p.say("note")
	p.end()
	if got, want := out.String(), "\r\x1b[Kplan [==================      ] 3/4, 7s left  bound\r\x1b[Knote\n"; got != want {
		t.Errorf("terminal: %q; want %q", got, want)
	}
}
