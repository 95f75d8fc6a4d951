package place_test

import (
	"strings"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/placetest"
)

// evaluated is a cluster of two nodes with two slots each, in two zones, with a
// gang of two a and a group of two b; a and b must not meet on a node, and b is
// spread over the zones.
func evaluated(t *testing.T) place.Request {
	t.Helper()
	nodes := cluster.Nodes("", 2, 0, 2)
	nodes[0].Labels = map[string]string{cluster.ZoneKey: "east"}
	nodes[1].Labels = map[string]string{cluster.ZoneKey: "west"}
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes, Constraints: cluster.Constraints{
		AntiAffinity: []cluster.AntiAffinity{{A: "a", B: "b"}},
		Spread:       []cluster.Spread{{Workload: "b", Key: cluster.ZoneKey}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return place.Request{View: view, Pending: []cluster.Group{
		{Name: "gang", Gang: true, Tasks: []cluster.Task{{ID: "a1", Workload: "a"}, {ID: "a2", Workload: "a"}}},
		{Name: "rest", Tasks: []cluster.Task{{ID: "b1", Workload: "b"}, {ID: "b2", Workload: "b"}}},
	}}
}

func decision(bind map[cluster.TaskID]string, hold ...cluster.TaskID) place.Decision {
	var d place.Decision
	for _, id := range []cluster.TaskID{"a1", "a2", "b1", "b2"} {
		if n, ok := bind[id]; ok {
			d.Bind = append(d.Bind, place.Binding{Task: id, Node: n})
		}
	}
	for _, id := range hold {
		d.Hold = append(d.Hold, place.Hold{Task: id, Why: "a test"})
	}
	return d
}

type at = map[cluster.TaskID]string

func TestEvaluateRefuses(t *testing.T) {
	for wanted, d := range map[string]place.Decision{
		"decisions that move or resize are judged by the simulator":     {Move: []place.Move{{}}},
		"decisions that move or resize":                                 {Resize: []place.Resize{{}}},
		`neither binds nor holds task "b2"`:                             decision(at{"a1": "node-0", "a2": "node-0", "b1": "node-1"}),
		`names task "b1" twice`:                                         decision(at{"a1": "node-0", "a2": "node-0", "b1": "node-1"}, "b1", "b2"),
		`names task "c", which is not pending`:                          decision(at{}, "a1", "a2", "b1", "b2", "c"),
		`binds task "b1" to node "node-9", which is not in the cluster`: decision(at{"b1": "node-9"}, "a1", "a2", "b2"),
		`binds 1 of 2 tasks of gang "gang"`:                             decision(at{"a1": "node-0"}, "a2", "b1", "b2"),
		`task "b1": node node-0 runs a, which b must not be with`:       decision(at{"a1": "node-0", "a2": "node-1", "b1": "node-0"}, "b2"),
		`task "b1": node node-0 has no free slot`:                       decision(at{"a1": "node-0", "a2": "node-0", "b1": "node-0"}, "b2"),
		"the spread of b exceeds its max_skew by 1":                     decision(at{"b1": "node-1", "b2": "node-1"}, "a1", "a2"),
	} {
		_, err := place.Evaluate(evaluated(t), d, placetest.Model{})
		if err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%v, want %q", err, wanted)
		}
	}
	twice := evaluated(t)
	twice.Pending[1].Tasks[0].ID = "a1"
	if _, err := place.Evaluate(twice, place.Decision{}, placetest.Model{}); err == nil || !strings.Contains(err.Error(), `pending task "a1": listed twice`) {
		t.Errorf("%v, want a complaint about the task listed twice", err)
	}
}

// TestEvaluateCountsOnlyTheOutcome: b may pass through a skew on its way.
func TestEvaluateCountsOnlyTheOutcome(t *testing.T) {
	req := evaluated(t)
	req.Pending[1].Tasks = append(req.Pending[1].Tasks, cluster.Task{ID: "b3", Workload: "b"})
	d := decision(at{"b1": "node-0", "b2": "node-0"}, "a1", "a2")
	d.Bind = append(d.Bind, place.Binding{Task: "b3", Node: "node-1"})
	e, err := place.Evaluate(req, d, placetest.Model{})
	if err != nil {
		t.Fatal(err)
	}
	if e.Held != 2 || e.Placement.Colocation(0).Key() != "b*2" {
		t.Errorf("%+v", e)
	}
}

func TestEvaluateNamesWhatIsLeftOut(t *testing.T) {
	req := evaluated(t)
	req.Objective = place.TailLatency
	e, err := place.Evaluate(req, decision(at{"a1": "node-0", "a2": "node-0", "b1": "node-1"}, "b2"), placetest.Model{Names: []string{""}, NoLatency: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Left) != 1 || e.Left[0] != "a" {
		t.Errorf("left out of p99: %v, want a", e.Left)
	}
	// b1 is alone on its node: its p99 is as alone; the held b2 does not count.
	if e.Value != 1 {
		t.Errorf("p99 %v, want 1", e.Value)
	}
}
