package conformance

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/cotenant/cotenant/kubernetes/controlplane"
)

// softCases are about rules that are kept wherever there is room to.
var softCases = []struct {
	name string
	run  func(w *world)
}{
	{"a preferred node is filled first", func(w *world) {
		w.nodes(4, small, disks)
		w.same(3, requests(corev1.ResourceCPU, "900m"), prefersNode(100, "disk", "d3"))
		w.counts(3, "node-0003", 2)
	}},
	{"the next best node is filled next", func(w *world) {
		w.nodes(4, small, disks)
		w.same(3, requests(corev1.ResourceCPU, "1500m"), prefersNode(100, "disk", "d3"), prefersNode(50, "disk", "d2"))
		w.counts(3, "node-0003", 1, node2, 1)
	}},
	{"a node that would rather not is filled last", func(w *world) {
		w.nodes(3, small, taint(0, corev1.TaintEffectPreferNoSchedule))
		w.same(5, requests(corev1.ResourceCPU, "900m"))
		w.counts(5, node0, 1, node1, 2, node2, 2)
	}},
	{"a pod would rather be where its companion is", func(w *world) {
		w.nodes(4, controlplane.NodeShape{CPU: "32", Memory: "64Gi"}, zones(2))
		w.create(pod("first", label("app", "web"), selects(corev1.LabelHostname, node1)))
		w.bound("first", node1)
		w.create(
			pod("same-node", rather(near("web", corev1.LabelHostname))),
			pod("same-zone", rather(near("web", corev1.LabelTopologyZone))),
			pod("lonely", rather(near("nobody", corev1.LabelHostname))),
		)
		w.bound("same-node", node1)
		w.bound("same-zone", node1, "node-0003")
		w.on("lonely")
	}},
	{"pods would rather be in one zone", func(w *world) {
		w.nodes(6, controlplane.NodeShape{CPU: "32", Memory: "64Gi"}, zones(3))
		w.same(5, rather(near("redis", corev1.LabelTopologyZone)))
		at := w.at(5, func(node string) string { return fmt.Sprint((node[len(node)-1] - '0') % 3) })
		if len(at) != 1 {
			w.Errorf("5 pods that would rather be in one zone: %v", at)
		}
	}},
	{"pods would rather be in zones of their own", func(w *world) {
		w.nodes(4, small, lopsided)
		w.same(4, rather(awayFrom("redis", corev1.LabelTopologyZone)))
		w.counts(4, node0, 2)
	}},
	{"pods would rather be on nodes of their own", func(w *world) {
		w.nodes(3, small, nil)
		w.same(4, rather(awayFrom("redis", corev1.LabelHostname)))
		if at := w.at(4, hosts); len(at) != 3 {
			w.Errorf("4 pods that would rather be apart, on 3 nodes: %v", at)
		}
	}},
	{"a soft spread over zones", func(w *world) {
		w.nodes(4, small, lopsided)
		w.same(4, rather(spreads(corev1.LabelTopologyZone, 1)))
		w.counts(4, node0, 2)
	}},
	{"a soft spread that no node can keep", func(w *world) {
		w.nodes(2, small, func(i int, n *corev1.Node) {
			zones(2)(i, n)
			n.Spec.Unschedulable = i == 1
		})
		w.same(3, rather(spreads(corev1.LabelTopologyZone, 1)))
		w.counts(3, node0, 3)
	}},
}

// lopsided has one zone with one node, and one with all others.
func lopsided(i int, n *corev1.Node) {
	n.Labels[corev1.LabelTopologyZone] = fmt.Sprint("zone-", min(i, 1))
}

func disks(i int, n *corev1.Node) { n.Labels["disk"] = fmt.Sprint("d", i) }

// same creates n pods that are alike, at once.
func (w *world) same(n int, options ...option) {
	w.Helper()
	for i := range n {
		w.create(pod(fmt.Sprint("a-", i), options...))
	}
}

// at counts the first n pods of same by where they are.
func (w *world) at(n int, by func(node string) string) map[string]int {
	w.Helper()
	count := map[string]int{}
	for i := range n {
		count[by(w.on(fmt.Sprint("a-", i)))]++
	}
	return count
}

func hosts(node string) string { return node }

// counts asks that so many of the first n pods of same be on these nodes: a node,
// a number, and so on.
func (w *world) counts(n int, wanted ...any) {
	w.Helper()
	got := w.at(n, hosts)
	want := maps.Clone(got)
	for i := 0; i < len(wanted); i += 2 {
		want[wanted[i].(string)] = wanted[i+1].(int)
	}
	if !maps.Equal(got, want) {
		w.Errorf("%d pods are at %v, want %v", n, got, want)
	}
}
