package plugin

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
)

// together prefers a node with pods of the same colour, which the policy keeps
// apart.
func together(p *v1.Pod) {
	p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{
		Weight:          100,
		PodAffinityTerm: v1.PodAffinityTerm{TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}},
	}}}}
}

// What a gang's pods prefer of each other holds within it: each is planned for
// once those before have their nodes.
func TestGangsKeepTogetherWhereTheyWouldRather(t *testing.T) {
	for _, c := range []struct {
		name     string
		topology bool
		of       func(*v1.Pod)
	}{{"labels", false, gang("g", 3)}, {"PodGroup", false, of("g")}, {"placements", true, of("g")}} {
		t.Run(c.name, func(t *testing.T) {
			gates(t, c.topology)
			// A plan leaves what nothing is known of to the scheduler.
			threeReds := planetest.TwoColours + `{"colocation":{"red":3},"workload":"red","metric":"rate","value":0.3,"alone":1}` + "\n"
			w := startWith(t, threeReds, "mode: enforce", append(nodes(4, "8"), podGroup("g", 3))...)
			w.create(list(3, "red", c.of, together)...)
			at := w.settles(3)
			if at["red-0"] != at["red-1"] || at["red-0"] != at["red-2"] {
				t.Errorf("they would rather be on one node: %v", at)
			}
			w.planned(3)
		})
	}
}

// Soft rules are among what is decided: pods of one workload without them go by
// the policy alone.
func TestOnlyThePodsWithSoftRulesAreBoundByThem(t *testing.T) {
	w := start(t, "mode: enforce, slotsPerNode: 3", nodes(4, "8")...)
	w.create(list(3, "red", together)...)
	w.settles(3)
	w.create(pod("red-free", "red"))
	at := w.settles(4)
	if fmt.Sprint(at["red-0"], at["red-1"], at["red-2"]) != fmt.Sprint(at["red-0"], at["red-0"], at["red-0"]) || at["red-free"] == at["red-0"] {
		t.Errorf("three would rather be together, and one does not mind: %v", at)
	}
}
