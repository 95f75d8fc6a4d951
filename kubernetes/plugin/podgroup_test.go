package plugin

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"

	"github.com/cotenant/cotenant/explain"
)

func gates(t *testing.T, topology bool) {
	t.Helper()
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.GenericWorkload: true, features.TopologyAwareWorkloadScheduling: topology,
	})
}

func podGroup(name string, n int32, topology ...string) *schedulingv1beta1.PodGroup {
	g := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: "pg-" + "uid"},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: n},
		}},
	}
	for _, key := range topology {
		g.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: key}}}
	}
	return g
}

func of(group string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group} }
}

// planned checks that every pod is where its plan has it.
func (w *world) planned(n int) {
	w.Helper()
	list, err := w.client.CoreV1().Pods("default").List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	there := 0
	for i := range list.Items {
		p := &list.Items[i]
		var d Decision
		if err := json.Unmarshal([]byte(p.Annotations[explain.DecisionAnnotation]), &d); err != nil {
			w.Errorf("pod %s: annotation %q: %v", p.Name, p.Annotations[explain.DecisionAnnotation], err)
		}
		if d.Planned == p.Spec.NodeName && d.Fallback == "" {
			there++
		}
	}
	if there < n {
		w.Errorf("%d pods are where their plan has them, want %d: %v\n%s", there, n, w.where(), w.told())
	}
}

func TestPodGroupWithoutPlacements(t *testing.T) {
	gates(t, false)
	w := start(t, "mode: enforce, slotsPerNode: 2", append(nodes(4, "8"), podGroup("g", 4))...)
	w.create(append(list(2, "red", of("g")), list(2, "blue", of("g"))...)...)
	w.settles(4)
	w.planned(4)
}

func TestPodGroupWithPlacements(t *testing.T) {
	gates(t, true)
	var objects []runtime.Object
	for i := range 6 {
		objects = append(objects, node(fmt.Sprintf("n%d", i), "8", func(n *v1.Node) {
			n.Labels[v1.LabelTopologyZone] = fmt.Sprint("z", i%3)
		}))
	}
	// Two zones run something already: in z2 the pods have a node each to themselves.
	for _, i := range []int{0, 1, 3, 4} {
		objects = append(objects, pod(fmt.Sprintf("red-there-%d", i), "red", func(p *v1.Pod) {
			p.Spec.NodeName, p.Spec.SchedulerName = fmt.Sprintf("n%d", i), "another"
		}))
	}
	w := start(t, "mode: enforce, slotsPerNode: 2", append(objects, podGroup("g", 2, v1.LabelTopologyZone))...)
	w.create(list(2, "red", of("g"))...)
	at := w.settles(6)
	for name, n := range at {
		if (name == "red-0" || name == "red-1") && n != "n2" && n != "n5" {
			t.Errorf("%s is on %s, the best zone has n2 and n5: %v", name, n, at)
		}
	}
}

// A PodGroup of which one pod has no place takes none.
func TestPodGroupIsWhole(t *testing.T) {
	for _, topology := range []bool{false, true} {
		t.Run(fmt.Sprint(topology), func(t *testing.T) {
			gates(t, topology)
			w := start(t, "mode: enforce, slotsPerNode: 2", append(nodes(2, "1"), podGroup("g", 3))...)
			w.create(list(3, "red", of("g"))...)
			w.stays(0, 500*time.Millisecond)
			if _, err := w.client.CoreV1().Nodes().Create(w.ctx, node("n9", "1"), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			w.settles(3)
		})
	}
}

// A policy for jobs that lets a gang wait is obeyed, and asked again when what
// runs has ended.
func TestPodGroupWaits(t *testing.T) {
	for _, topology := range []bool{false, true} {
		t.Run(fmt.Sprint(topology), func(t *testing.T) {
			gates(t, topology)
			there := pod("red-there", "red", func(p *v1.Pod) { p.Spec.NodeName, p.Spec.SchedulerName = "n0", "another" })
			w := start(t, "mode: enforce, jobsPolicy: {name: greedy-wait, params: {threshold: '0.6'}}",
				append(nodes(1, "8"), there, podGroup("g", 2))...)
			w.create(list(2, "red", of("g"))...)
			w.stays(1, time.Second)
			w.remove("red-there")
			w.settles(2)
			w.planned(2)
		})
	}
}

// Of the PodGroups that wait one is tried when there is room again, and calls
// the others that its plan has a place for.
func TestPodGroupsThatWaitAreCalled(t *testing.T) {
	gates(t, true)
	there := pod("red-there", "red", func(p *v1.Pod) { p.Spec.NodeName, p.Spec.SchedulerName = "n0", "another" })
	// The first of those that wait fits nowhere.
	large := func(p *v1.Pod) { p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("9") }
	w := start(t, "mode: enforce, groupWindow: 20ms, jobsPolicy: {name: greedy-wait, params: {threshold: '0.6'}}",
		append(nodes(1, "8"), there, podGroup("a", 1), podGroup("b", 1))...)
	w.create(pod("a", "red", of("a"), large))
	time.Sleep(200 * time.Millisecond)
	w.create(pod("b", "red", of("b")))
	w.stays(1, time.Second)
	begin := time.Now()
	w.remove("red-there")
	w.settles(1)
	if w.where()["b"] != "n0" || time.Since(begin) > lookAgain-time.Second {
		t.Errorf("after %v: %v", time.Since(begin), w.where())
	}
}
