package plugin

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cotenant/cotenant/explain"
)

// in puts a pod into a namespace.
func in(namespace string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Namespace, p.Name = namespace, namespace+"-"+p.Name }
}

// decided lists the pods of a namespace that carry a decision.
func (w *world) decided(namespace string) (names []string) {
	w.Helper()
	list, err := w.client.CoreV1().Pods(namespace).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Annotations[explain.DecisionAnnotation] != "" {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}

// Beside a namespace in enforce, one in shadow is planned for as it is alone, and
// one to ignore is left alone. Neither is bound by the plugin, and no plan made in
// the mode shadow holds up another.
func TestShadowBesideEnforce(t *testing.T) {
	w := start(t, "mode: enforce, slotsPerNode: 2, namespaces: {watched: shadow, left: ignore}", nodes(6, "8")...)
	p, ok := w.plugin.(*Plugin)
	if !ok {
		t.Fatalf("the plugin is a %T", w.plugin)
	}
	p.shadow.planning.Lock()
	w.create(append(list(2, "red", in("watched")), list(2, "blue", in("watched"))...)...)
	w.create(append(list(2, "red", in("left")), list(2, "blue", in("left"))...)...)
	w.settles(8)
	w.create(append(list(2, "red"), list(2, "blue")...)...)
	w.settles(12)
	w.planned(4)
	p.shadow.planning.Unlock()
	for _, d := range w.shadows(4) {
		if d.Mode != "shadow" || d.Planned == "" || d.Group != "watched/ReplicaSet/red" && d.Group != "watched/ReplicaSet/blue" {
			t.Errorf("told: %+v", d)
		}
	}
	if names := append(w.decided("watched"), w.decided("left")...); names != nil {
		t.Errorf("the plugin bound %v, which are not its own to place", names)
	}
}

// So it is beside assist, and where shadow is what holds for all others.
func TestShadowBesideAssist(t *testing.T) {
	for _, args := range []string{"mode: assist, namespaces: {watched: shadow}", "mode: shadow, namespaces: {default: enforce}"} {
		t.Run(args, func(t *testing.T) {
			w := start(t, args, nodes(3, "8")...)
			w.create(list(3, "red", in("watched"))...)
			w.create(list(3, "blue")...)
			w.settles(6)
			if got := w.shadows(3); len(got) != 3 {
				t.Errorf("told: %+v", got)
			}
		})
	}
}

// Pods of a gang that the plugin is not to mind do not wait for each other.
func TestGangsThatAreLeftAloneAreNotHeld(t *testing.T) {
	w := start(t, "mode: enforce, namespaces: {watched: shadow, left: ignore}", nodes(3, "8")...)
	w.create(pod("red-0", "red", gang("g", 4), in("watched")), pod("red-1", "red", gang("g", 4), in("left")), pod("red-2", "red", gang("g", 4)))
	at := w.settles(2)
	if at["red-2"] != "" {
		t.Errorf("the gang that is held runs in part: %v", at)
	}
}

// The pods of a native PodGroup are planned for in the mode shadow as any others,
// once the scheduler has decided on the group.
func TestShadowTellsOfPodGroups(t *testing.T) {
	for name, topology := range map[string]bool{"without placements": false, "with placements": true} {
		t.Run(name, func(t *testing.T) {
			gates(t, topology)
			w := start(t, "mode: shadow, slotsPerNode: 2", append(nodes(4, "8"), podGroup("g", 4))...)
			w.create(append(list(2, "red", of("g")), list(2, "blue", of("g"))...)...)
			w.settles(4)
			for _, d := range w.shadows(4) {
				if d.Planned == "" || d.Fallback != "" || d.Group != "default/podgroup/g" {
					t.Errorf("told: %+v", d)
				}
			}
		})
	}
}
