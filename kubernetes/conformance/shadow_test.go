package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cotenant/cotenant/kubernetes/bench"
	"github.com/cotenant/cotenant/kubernetes/controlplane"
	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
)

// The same pods, one by one, each of which prefers one node by far: the stock
// scheduler has nothing to draw, so that in the mode shadow each pod must go
// where it goes without us.
func TestShadowDecidesAsStock(t *testing.T) {
	var stock, again, ours []string
	// Subtests, so that a plane ends before the next begins.
	t.Run("stock", func(t *testing.T) { stock = oneByOne(t, bench.Stock()) })
	t.Run("again", func(t *testing.T) { again = oneByOne(t, bench.Stock()) })
	if !slices.Equal(stock, again) {
		t.Fatalf("the stock scheduler itself draws between nodes:\n%q\n%q", stock, again)
	}
	shadow := bench.Ours()
	shadow.Configuration = strings.Replace(shadow.Configuration, "mode: enforce", "mode: shadow", 1)
	t.Run("shadow", func(t *testing.T) { ours = oneByOne(t, shadow) })
	if !slices.Equal(stock, ours) {
		t.Errorf("stock %q\nshadow %q", stock, ours)
	}
}

// oneByOne is where a scheduler puts pods that come when the one before is bound.
func oneByOne(t *testing.T, c bench.Candidate) []string {
	t.Helper()
	truth, err := bench.ReadTruth("")
	if err != nil {
		t.Fatal(err)
	}
	plane := planetest.Start(t, controlplane.Config{}, c.Program)
	w := &world{T: t, ctx: t.Context(), plane: plane, kube: plane.Client()}
	// What is free differs by a few points; what a pod prefers, by 66.
	const nodes = 4
	w.nodes(nodes, controlplane.NodeShape{}, func(_ int, n *corev1.Node) {
		n.Status.Allocatable[corev1.ResourceCPU], n.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("1000"), resource.MustParse("1000Gi")
		n.Status.Capacity = n.Status.Allocatable.DeepCopy()
	})
	begin(t, plane, c)
	var at []string
	for i := range 40 {
		name := fmt.Sprintf("pod-%02d", i)
		var prefers []corev1.PreferredSchedulingTerm
		for n := range nodes {
			prefers = append(prefers, corev1.PreferredSchedulingTerm{
				Weight: int32(100 - 33*((n+i*i)%nodes)),
				Preference: corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
					{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{fmt.Sprintf("node-%04d", n)}},
				}},
			})
		}
		w.create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
			Spec: corev1.PodSpec{
				Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: prefers}},
				Containers: []corev1.Container{{
					Name: "main", Image: truth.Workloads[i%len(truth.Workloads)],
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
						corev1.ResourceCPU: resource.MustParse("1370m"), corev1.ResourceMemory: resource.MustParse("1873Mi"),
					}},
				}},
			},
		})
		at = append(at, w.on(name))
	}
	return at
}
