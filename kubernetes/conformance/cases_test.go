package conformance

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cotenant/cotenant/kubernetes/controlplane"
)

const (
	unschedulable = corev1.PodReasonUnschedulable
	schedulingOff = corev1.PodReasonSchedulingGated
)

var (
	node0, node1, node2 = "node-0000", "node-0001", "node-0002"
	small               = controlplane.NodeShape{CPU: "2", Memory: "8Gi"}
)

// cases are what any scheduler must do. Each begins with an empty cluster.
var cases = []struct {
	name string
	run  func(w *world)
}{
	{"a taint keeps pods off", func(w *world) {
		w.nodes(2, small, taint(0, corev1.TaintEffectNoSchedule))
		w.create(pod("plain"), pod("tolerant", tolerates("reserved", corev1.TaintEffectNoSchedule), selects(corev1.LabelHostname, node0)))
		w.bound("plain", node1)
		w.bound("tolerant", node0)
	}},
	{"a taint of another effect is not tolerated", func(w *world) {
		w.nodes(1, small, taint(0, corev1.TaintEffectNoExecute))
		w.create(pod("a", tolerates("reserved", corev1.TaintEffectNoSchedule)))
		w.pending("a", unschedulable)
	}},
	{"a cordoned node takes no pods until it is opened", func(w *world) {
		w.nodes(1, small, func(_ int, n *corev1.Node) { n.Spec.Unschedulable = true })
		w.create(pod("a"))
		w.pending("a", unschedulable)
		w.patchNode(node0, `{"spec":{"unschedulable":false}}`)
		w.bound("a", node0)
	}},
	{"a node selector", func(w *world) {
		w.nodes(3, small, func(i int, n *corev1.Node) { n.Labels["disk"] = fmt.Sprint("d", i) })
		w.create(pod("a", selects("disk", "d2")), pod("b", selects("disk", "d9")))
		w.bound("a", node2)
		w.pending("b", unschedulable)
	}},
	{"node affinity by every operator", func(w *world) {
		w.nodes(3, small, func(i int, n *corev1.Node) {
			n.Labels["rank"] = fmt.Sprint(i)
			if i == 1 {
				n.Labels["fast"] = ""
			}
		})
		w.create(
			pod("in", needsNode("rank", corev1.NodeSelectorOpIn, "0", "7")),
			pod("not-in", needsNode("rank", corev1.NodeSelectorOpNotIn, "0", "1")),
			pod("exists", needsNode("fast", corev1.NodeSelectorOpExists)),
			pod("absent", needsNode("fast", corev1.NodeSelectorOpDoesNotExist)),
			pod("greater", needsNode("rank", corev1.NodeSelectorOpGt, "1")),
			pod("less", needsNode("rank", corev1.NodeSelectorOpLt, "1")),
			pod("nowhere", needsNode("rank", corev1.NodeSelectorOpGt, "2")),
		)
		w.bound("in", node0)
		w.bound("not-in", node2)
		w.bound("exists", node1)
		w.bound("absent", node0, node2)
		w.bound("greater", node2)
		w.bound("less", node0)
		w.pending("nowhere", unschedulable)
	}},
	{"a pod goes where its companion is", func(w *world) {
		w.nodes(4, small, zones(2))
		w.create(pod("first", label("app", "web"), selects(corev1.LabelHostname, node1)))
		w.bound("first", node1)
		w.create(pod("same-node", near("web", corev1.LabelHostname)), pod("same-zone", near("web", corev1.LabelTopologyZone)), pod("lonely", near("nobody", corev1.LabelHostname)))
		w.bound("same-node", node1)
		w.bound("same-zone", node1, "node-0003")
		w.pending("lonely", unschedulable)
	}},
	{"anti-affinity puts one on a node", func(w *world) {
		w.nodes(3, small, nil)
		apart := func(i int) *corev1.Pod { return pod(fmt.Sprint("a-", i), awayFrom("redis", corev1.LabelHostname)) }
		w.create(apart(0), apart(1), apart(2))
		used := map[string]bool{w.on("a-0"): true, w.on("a-1"): true, w.on("a-2"): true}
		if len(used) != 3 {
			w.Errorf("three pods apart are on %v", slices.Sorted(maps.Keys(used)))
		}
		w.create(apart(3))
		w.pending("a-3", unschedulable)
	}},
	{"who is there keeps others away", func(w *world) {
		w.nodes(2, small, nil)
		w.create(pod("hermit", label("app", "hermit"), awayFrom("guest", corev1.LabelHostname), selects(corev1.LabelHostname, node0)))
		w.bound("hermit", node0)
		w.create(pod("guest", label("app", "guest")))
		w.bound("guest", node1)
	}},
	{"a spread over zones", func(w *world) {
		w.nodes(6, small, zones(3))
		var names []string
		for i := range 6 {
			names = append(names, fmt.Sprint("s-", i))
			w.create(pod(names[i], label("app", "even"), spreads(corev1.LabelTopologyZone, 1)))
		}
		perZone := map[byte]int{}
		for _, n := range names {
			at := w.on(n)
			perZone[(at[len(at)-1]-'0')%3]++
		}
		if len(perZone) != 3 || perZone[0] != 2 || perZone[1] != 2 || perZone[2] != 2 {
			w.Errorf("6 pods over 3 zones: %v", perZone)
		}
	}},
	{"a spread that no node can keep", func(w *world) {
		w.nodes(2, small, func(i int, n *corev1.Node) {
			zones(2)(i, n)
			n.Spec.Unschedulable = i == 1
		})
		w.create(pod("s-0", spreads(corev1.LabelTopologyZone, 1)))
		w.bound("s-0", node0)
		w.create(pod("s-1", spreads(corev1.LabelTopologyZone, 1)))
		w.pending("s-1", unschedulable)
	}},
	{"a gated pod waits for its gate", func(w *world) {
		w.nodes(1, small, nil)
		w.create(pod("g", gated("example.com/quota"), gated("example.com/audit")))
		w.pending("g", schedulingOff)
		w.patchPod("g", `[{"op":"replace","path":"/spec/schedulingGates","value":[{"name":"example.com/audit"}]}]`)
		w.pending("g", schedulingOff)
		w.patchPod("g", `[{"op":"remove","path":"/spec/schedulingGates"}]`)
		w.bound("g", node0)
	}},
	{"no more than fits", func(w *world) {
		w.nodes(2, controlplane.NodeShape{CPU: "2", Memory: "8Gi", Pods: "3"}, nil)
		w.create(pod("a", requests(corev1.ResourceCPU, "1500m")), pod("b", requests(corev1.ResourceCPU, "1500m")))
		if a, b := w.on("a"), w.on("b"); a == b {
			w.Errorf("two pods of 1.5 cores are both on %s, which has 2", a)
		}
		w.create(pod("c", requests(corev1.ResourceCPU, "1500m")), pod("d", requests(corev1.ResourceMemory, "9Gi")))
		w.pending("c", unschedulable)
		w.pending("d", unschedulable)
		w.delete("a")
		w.on("c")
	}},
	{"no more pods than the node admits", func(w *world) {
		w.nodes(1, controlplane.NodeShape{Pods: "2"}, nil)
		w.create(pod("a"), pod("b"))
		w.bound("a", node0)
		w.bound("b", node0)
		w.create(pod("c"))
		w.pending("c", unschedulable)
	}},
	{"a resource that few nodes have", func(w *world) {
		w.nodes(2, small, func(i int, n *corev1.Node) {
			if i == 1 {
				n.Status.Capacity["example.com/gpu"], n.Status.Allocatable["example.com/gpu"] = one, one
			}
		})
		w.create(pod("g", requests("example.com/gpu", "1")))
		w.bound("g", node1)
		w.create(pod("more", requests("example.com/gpu", "1")), pod("zero", requests("example.com/other", "0")), pod("unknown", requests("example.com/other", "1")))
		w.bound("zero", node0, node1)
		w.pending("more", unschedulable)
		w.pending("unknown", unschedulable)
	}},
	{"init containers and overhead count", func(w *world) {
		w.nodes(1, small, nil)
		w.create(pod("a", requests(corev1.ResourceCPU, "100m"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "redis", Resources: cpu("3")}}
		}))
		w.pending("a", unschedulable)
		w.create(pod("b", requests(corev1.ResourceCPU, "100m"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "redis", Resources: cpu("1900m")}}
		}))
		w.bound("b", node0)
	}},
	{"a port of the host is taken once", func(w *world) {
		w.nodes(2, small, nil)
		w.create(pod("a", port(8080)), pod("b", port(8080)))
		if a, b := w.on("a"), w.on("b"); a == b {
			w.Errorf("two pods have port 8080 of %s", a)
		}
		w.create(pod("c", port(8080)), pod("d", port(8081)))
		w.pending("c", unschedulable)
		w.bound("d", node0, node1)
	}},
	{"a pod of another scheduler is left alone", func(w *world) {
		w.nodes(1, small, nil)
		w.create(pod("theirs", func(p *corev1.Pod) { p.Spec.SchedulerName = "another" }), pod("mine"))
		w.bound("mine", node0)
		if p, err := w.pod("theirs"); err != nil || p.Spec.NodeName != "" || len(p.Status.Conditions) > 0 {
			w.Errorf("the pod of another scheduler: node %q, conditions %v (%v)", p.Spec.NodeName, p.Status.Conditions, err)
		}
	}},
	{"a node that comes later", func(w *world) {
		// The scheduler hears a moment later that the case before took its nodes
		// away, and no object tells when it has.
		time.Sleep(2 * time.Second)
		w.create(pod("early"))
		w.pending("early", unschedulable)
		w.nodes(1, small, nil)
		w.bound("early", node0)
	}},
	{"a node that comes back under its name", func(w *world) {
		w.nodes(1, small, nil)
		w.create(pod("a", requests(corev1.ResourceCPU, "2")))
		w.bound("a", node0)
		w.deleteNode(node0)
		w.delete("a")
		w.create(pod("b", requests(corev1.ResourceCPU, "2")))
		w.pending("b", unschedulable)
		w.nodes(1, small, nil)
		w.bound("b", node0)
	}},
}

func taint(at int, effect corev1.TaintEffect) func(int, *corev1.Node) {
	return func(i int, n *corev1.Node) {
		if i == at {
			n.Spec.Taints = []corev1.Taint{{Key: "reserved", Value: "yes", Effect: effect}}
		}
	}
}

func (w *world) patchNode(name, patch string) {
	w.Helper()
	if _, err := w.kube.CoreV1().Nodes().Patch(w.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.Fatalf("patch node %s: %v", name, err)
	}
}

func (w *world) patchPod(name, patch string) {
	w.Helper()
	if _, err := w.kube.CoreV1().Pods(namespace).Patch(w.ctx, name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.Fatalf("patch pod %s: %v", name, err)
	}
}

func (w *world) delete(name string) {
	w.Helper()
	none := int64(0)
	if err := w.kube.CoreV1().Pods(namespace).Delete(w.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
		w.Fatalf("delete pod %s: %v", name, err)
	}
	w.gone(name)
}

func (w *world) deleteNode(name string) {
	w.Helper()
	if err := w.kube.CoreV1().Nodes().Delete(w.ctx, name, metav1.DeleteOptions{}); err != nil {
		w.Fatalf("delete node %s: %v", name, err)
	}
}
