package plugin

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// OpportunisticBatching stays on for all pods that no plan places: the plugin
// signs them. Pods that a plan places are not hinted away from it.
func TestSignPod(t *testing.T) {
	for _, c := range []struct {
		args  string
		pod   *v1.Pod
		signs bool
	}{
		{"mode: enforce", pod("a", "red"), false},
		{"mode: enforce", pod("b", "green"), true},
		{"mode: enforce, namespaces: {default: ignore}", pod("c", "red"), true},
		{"mode: assist", pod("d", "red"), true},
		{"mode: shadow", pod("e", "red"), true},
	} {
		t.Run(c.args+" "+c.pod.Name, func(t *testing.T) {
			w := start(t, c.args, nodes(1, "8")...)
			var h *core
			switch p := w.plugin.(type) {
			case *Plugin:
				h = p.core
			case *Shadow:
				h = p.core
			}
			if got := h.framework.SignPod(w.ctx, c.pod) != nil; got != c.signs {
				t.Errorf("signed: %v, want %v", got, c.signs)
			}
		})
	}
}
