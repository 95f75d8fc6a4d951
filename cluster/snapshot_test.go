package cluster_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/cluster"
)

func TestNewSnapshotRefuses(t *testing.T) {
	node := func(n cluster.Node) cluster.Spec { return cluster.Spec{Nodes: []cluster.Node{n}} }
	rule := func(c cluster.Constraints) cluster.Spec { return cluster.Spec{Constraints: c} }
	run := func(r ...cluster.Running) cluster.Spec {
		return cluster.Spec{Nodes: cluster.Nodes("", 1, 0, 1), Running: r}
	}
	for wanted, spec := range map[string]cluster.Spec{
		"node 0: name is empty":                                                              node(cluster.Node{}),
		`node "n": listed twice`:                                                             {Nodes: []cluster.Node{{Name: "n"}, {Name: "n"}}},
		`node "n": slots -1 is negative`:                                                     node(cluster.Node{Name: "n", Slots: -1}),
		`node "n": capacity of cpu is -5`:                                                    node(cluster.Node{Name: "n", Capacity: cluster.Resources{cluster.CPU: -5}}),
		"workload 0: name is empty":                                                          {Workloads: []cluster.Workload{{}}},
		`workload "w": declared twice`:                                                       {Workloads: []cluster.Workload{{Name: "w"}, {Name: "w"}}},
		`workload "w": request of cpu is -1`:                                                 {Workloads: []cluster.Workload{{Name: "w", Requests: cluster.Resources{cluster.CPU: -1}}}},
		`running task "t": node "x" is not in the cluster`:                                   run(cluster.Running{Task: cluster.Task{ID: "t", Workload: "w"}, Node: "x"}),
		`running task "t": workload is empty`:                                                run(cluster.Running{Task: cluster.Task{ID: "t"}, Node: "node-0"}),
		`running task "t": listed twice`:                                                     run(cluster.Running{Task: cluster.Task{ID: "t", Workload: "w"}, Node: "node-0"}, cluster.Running{Task: cluster.Task{ID: "t", Workload: "w"}, Node: "node-0"}),
		`anti_affinity[0]: workloads "a" and ""`:                                             rule(cluster.Constraints{AntiAffinity: []cluster.AntiAffinity{{A: "a"}}}),
		"max_per_node[a]: -1 is negative":                                                    rule(cluster.Constraints{MaxPerNode: map[string]int{"a": -1}}),
		`spread[0]: workload "", key "z"`:                                                    rule(cluster.Constraints{Spread: []cluster.Spread{{Key: "z"}}}),
		"spread[0]: max_skew -1 is negative":                                                 rule(cluster.Constraints{Spread: []cluster.Spread{{Workload: "a", Key: "z", MaxSkew: -1}}}),
		`spread[1]: second rule for workload "a" over "z"`:                                   rule(cluster.Constraints{Spread: []cluster.Spread{{Workload: "a", Key: "z"}, {Workload: "a", Key: "z"}}}),
		`tolerations[a][0]: value "x" beside exists: true`:                                   rule(cluster.Constraints{Tolerations: map[string][]cluster.Toleration{"a": {{Key: "k", Exists: true, Value: "x"}}}}),
		`tolerations[a][0]: effect "Foo" is none of NoSchedule, NoExecute, PreferNoSchedule`: rule(cluster.Constraints{Tolerations: map[string][]cluster.Toleration{"a": {{Key: "k", Effect: "Foo"}}}}),
		"tolerations[a][0]: key is empty and exists is false":                                rule(cluster.Constraints{Tolerations: map[string][]cluster.Toleration{"a": {{}}}}),
	} {
		if _, err := cluster.NewSnapshot(spec); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%v, want %q", err, wanted)
		}
	}
}

func TestSnapshotDeclaresWhatIsNamed(t *testing.T) {
	s, err := cluster.NewSnapshot(cluster.Spec{
		Nodes:       cluster.Nodes("", 1, 0, 1),
		Running:     []cluster.Running{{Task: cluster.Task{ID: "t", Workload: "runs"}, Node: "node-0"}},
		Workloads:   []cluster.Workload{{Name: "declared"}},
		Constraints: cluster.Constraints{MaxPerNode: map[string]int{"ruled": 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"declared", "runs", "ruled"} {
		if _, ok := s.Workload(name); !ok {
			t.Errorf("workload %s is unknown", name)
		}
	}
	if _, ok := s.Workload("other"); ok {
		t.Error("an unknown workload is known")
	}
}

func TestSlots(t *testing.T) {
	nodes := cluster.Nodes("", 3, 0, 4)
	nodes[2].Unschedulable = true
	slots := func() (int, bool) {
		s, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes})
		if err != nil {
			t.Fatal(err)
		}
		return s.Slots()
	}
	if n, ok := slots(); n != 8 || !ok {
		t.Errorf("%d, %t: want 8 slots on the schedulable nodes", n, ok)
	}
	nodes[0].Slots = 0
	if _, ok := slots(); ok {
		t.Error("a node without a limit, yet the cluster has one")
	}
}

// A max_skew of 0 in a text is no default: Kubernetes refuses it.
func TestSpreadTellsNoneFromNothing(t *testing.T) {
	for text, want := range map[string]int{`{"workload":"a","key":"z"}`: 0, `{"workload":"a","key":"z","max_skew":null}`: 0, `{"max_skew":2,"workload":"a","key":"z"}`: 2} {
		var s cluster.Spread
		if err := json.Unmarshal([]byte(text), &s); err != nil || s != (cluster.Spread{Workload: "a", Key: "z", MaxSkew: want}) {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
		again, err := json.Marshal(s)
		if err != nil || json.Unmarshal(again, &s) != nil || s.MaxSkew != want {
			t.Errorf("%s: written as %s, %v", text, again, err)
		}
	}
	for text, want := range map[string]string{
		`{"workload":"a","key":"z","max_skew":0}`:  `spread of "a" over "z": max_skew 0; give at least 1`,
		`{"workload":"a","key":"z","max_skew":-1}`: "max_skew -1",
		`{"workload":"a","key":"z","skew":1}`:      `unknown field "skew"`,
	} {
		if err := json.Unmarshal([]byte(text), &cluster.Spread{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error with %q", text, err, want)
		}
	}
}
