package plugin

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cotenant/cotenant/explain"
	"github.com/cotenant/cotenant/kubernetes/plugin/plan"
)

func TestEnforcePlacesByThePlan(t *testing.T) {
	w := start(t, "mode: enforce, slotsPerNode: 2, groupWindow: 20ms", nodes(6, "8")...)
	w.create(append(list(6, "red"), list(6, "blue")...)...)
	at := w.settles(12)
	w.mixed(at)
	if d := w.decision("red-0"); d.Node != at["red-0"] || d.Planned != d.Node || d.Performance == nil || *d.Performance != 1 || d.Policy != "greedy" {
		t.Errorf("the annotation says %+v, the pod is on %s", d, at["red-0"])
	}
}

// Without a number in the configuration a node holds as many pods as were measured
// together: of more nothing is known, and the scheduler's own scores decide.
func TestNodesHoldWhatWasMeasured(t *testing.T) {
	w := start(t, "mode: enforce, groupWindow: 20ms", nodes(3, "8")...)
	w.create(append(list(5, "red"), list(4, "blue")...)...)
	w.settles(9)
	planned := map[string]int{}
	for name := range w.where() {
		planned[w.decision(name).Planned]++
	}
	if planned[""] != 3 || planned["n0"] != 2 || planned["n1"] != 2 || planned["n2"] != 2 {
		t.Errorf("planned by node %v; want 2 on each, the most that were measured, and 3 left", planned)
	}
	if told := w.told(); strings.Count(told, "no-room") != 3 {
		t.Errorf("not 3 events say that there was no room:\n%s", told)
	}
}

// decision is what the pod's annotation says.
func (w *world) decision(name string) Decision {
	w.Helper()
	p, err := w.client.CoreV1().Pods("default").Get(w.ctx, name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	var d Decision
	if err := json.Unmarshal([]byte(p.Annotations[explain.DecisionAnnotation]), &d); err != nil {
		w.Fatalf("annotation %q: %v", p.Annotations[explain.DecisionAnnotation], err)
	}
	return d
}

func TestUnknownWorkloadsGoByTheStockScores(t *testing.T) {
	w := start(t, "mode: enforce", nodes(3, "8")...)
	w.create(pod("green-0", "green"))
	w.settles(1)
	if told := w.told(); !strings.Contains(told, "workload-unknown") {
		t.Errorf("events don't say why:\n%s", told)
	}
}

// An event of a pod without a place has the words of the scheduler's filters.
func TestEventsSayWhatTheFiltersSaid(t *testing.T) {
	w := start(t, "mode: enforce", nodes(1, "8")...)
	w.create(pod("red-0", "red", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "fast"} }))
	var told string
	for end := time.Now().Add(10 * time.Second); !strings.Contains(told, string(plan.NoRoom)); time.Sleep(10 * time.Millisecond) {
		told += w.told()
		if time.Now().After(end) {
			t.Fatalf("no event says %s:\n%s", plan.NoRoom, told)
		}
	}
	if !strings.Contains(told, "node n0: node(s) didn't match Pod's node affinity/selector") {
		t.Errorf("events don't say what the filter said:\n%s", told)
	}
}

// In the mode assist, too, a pod that one node alone takes has its decision, and
// the reason where there is none: the scheduler scores nothing then.
func TestAssistTellsOfPodsThatOneNodeTakes(t *testing.T) {
	w := start(t, "mode: assist", nodes(1, "8")...)
	w.create(pod("green-0", "green"), pod("red-0", "red"))
	w.settles(2)
	if d := w.decision("green-0"); d.Mode != "assist" || d.Node != "n0" || d.Fallback != string(plan.WorkloadUnknown) {
		t.Errorf("the annotation of an unknown workload says %+v", d)
	}
	if d := w.decision("red-0"); d.Mode != "assist" || d.Node != "n0" || d.Policy != "score" || d.Fallback != "" {
		t.Errorf("the annotation of a known workload says %+v", d)
	}
	if told := w.told(); strings.Count(told, string(plan.WorkloadUnknown)) != 1 {
		t.Errorf("one event should say why:\n%s", told)
	}
}
