package conformance

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cotenant/cotenant/kubernetes/bench"
	"github.com/cotenant/cotenant/kubernetes/controlplane"
	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
)

// controllers bind volumes and, once nobody uses them, let them be deleted.
var controllers = []string{"persistentvolume-binder-controller", "persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller"}

func TestStock(t *testing.T) { conform(t, bench.Stock()) }

func TestOurs(t *testing.T) {
	for _, mode := range []string{"enforce", "assist", "shadow"} {
		t.Run(mode, func(t *testing.T) {
			ours := bench.Ours()
			ours.Configuration = strings.Replace(ours.Configuration, "mode: enforce", "mode: "+mode, 1)
			conform(t, ours)
		})
	}
}

// conform runs the list against a scheduler on a plane of its own.
func conform(t *testing.T, c bench.Candidate) {
	plane := planetest.Start(t, controlplane.Config{Controllers: controllers}, c.Program)
	classes(t, plane)
	s := begin(t, plane, c)
	for _, list := range [][]struct {
		name string
		run  func(w *world)
	}{cases, softCases, storageCases, priorityCases} {
		for _, c := range list {
			t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
				w := &world{T: t, ctx: t.Context(), plane: plane, kube: plane.Client()}
				defer w.clean()
				c.run(w)
			})
		}
	}
	if t.Failed() {
		log, err := os.ReadFile(s.Log())
		t.Logf("the scheduler's log (%v):\n%s", err, log)
	}
}

// begin starts a candidate, ours by what ships.
func begin(t *testing.T, plane *controlplane.Plane, c bench.Candidate) *controlplane.RunningScheduler {
	t.Helper()
	truth, err := bench.ReadTruth("")
	if err != nil {
		t.Fatal(err)
	}
	configuration, err := c.For(truth, plane.Dir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := plane.StartScheduler(t.Context(), controlplane.Scheduler{Program: c.Program, Configuration: configuration})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func classes(t *testing.T, plane *controlplane.Plane) {
	t.Helper()
	never := corev1.PreemptNever
	for _, c := range []schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: 1},
		{ObjectMeta: metav1.ObjectMeta{Name: "middle"}, Value: 10},
		{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 100},
		{ObjectMeta: metav1.ObjectMeta{Name: "polite"}, Value: 100, PreemptionPolicy: &never},
	} {
		if _, err := plane.Client().SchedulingV1().PriorityClasses().Create(t.Context(), &c, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
