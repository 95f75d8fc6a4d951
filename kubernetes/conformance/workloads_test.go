package conformance

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cotenant/cotenant/explain"
	"github.com/cotenant/cotenant/kubernetes/bench"
	"github.com/cotenant/cotenant/kubernetes/controlplane"
	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
)

// colours starts our scheduler, by samples of two workloads, with the plugin's
// arguments for each profile.
func colours(t *testing.T, c controlplane.Config, nodes int, shape controlplane.NodeShape, profiles map[string]string) (*world, *controlplane.RunningScheduler) {
	t.Helper()
	plane := planetest.Start(t, c, "cotenant-scheduler")
	w := &world{T: t, ctx: t.Context(), plane: plane, kube: plane.Client()}
	w.nodes(nodes, shape, nil)
	samples := filepath.Join(plane.Dir(), "samples.jsonl")
	if err := os.WriteFile(samples, []byte(planetest.TwoColours), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "profiles:\n"
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		text += fmt.Sprintf("- {schedulerName: %s, plugins: {multiPoint: {enabled: [{name: Cotenant}]}}, pluginConfig: [%s, {name: Cotenant, args: {%s, policy: {name: greedy}, samples: {path: %q}}}]}\n",
			name, noDefaultSpread, profiles[name], samples)
	}
	s, err := plane.StartScheduler(t.Context(), controlplane.Scheduler{Name: "ours", Program: "cotenant-scheduler", Configuration: text})
	if err != nil {
		t.Fatal(err)
	}
	return w, s
}

// noDefaultSpread leaves out the scheduler's default for spread, with which it signs
// no pod: pods that it does not sign it does not batch.
const noDefaultSpread = "{name: PodTopologySpread, args: {defaultingType: List}}"

func template(colour, scheduler string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": colour}},
		Spec: corev1.PodSpec{SchedulerName: scheduler, Containers: []corev1.Container{{
			Name: "main", Image: colour + ":1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
		}}},
	}
}

func coloured(name, colour, scheduler string) *corev1.Pod {
	of := template(colour, scheduler)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: of.Labels}, Spec: of.Spec}
}

// Deployments come, roll out a new version, and are scaled, as their controllers do
// it; on the full cluster each node has one pod of each colour all the while.
func TestDeploymentsRollOutAndScale(t *testing.T) {
	w, _ := colours(t, controlplane.Config{Controllers: []string{"deployment-controller", "replicaset-controller"}}, 8,
		controlplane.NodeShape{CPU: "2"}, map[string]string{corev1.DefaultSchedulerName: "mode: enforce"})
	api := w.kube.AppsV1().Deployments(namespace)
	names := []string{"red", "blue"}
	for _, colour := range names {
		six := int32(6)
		_, err := api.Create(w.ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: colour},
			Spec: appsv1.DeploymentSpec{
				Replicas: &six, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": colour}}, Template: template(colour, ""),
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	patched := func(patch string) {
		t.Helper()
		for _, colour := range names {
			if _, err := api.Patch(w.ctx, colour, types.StrategicMergePatchType, []byte(strings.ReplaceAll(patch, "COLOUR", colour)), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	done := func(what string, replicas int32) {
		t.Helper()
		for _, colour := range names {
			w.until(what+" "+colour, func() (bool, error) {
				d, err := api.Get(w.ctx, colour, metav1.GetOptions{})
				if err != nil {
					return false, err
				}
				s := d.Status
				return s.ObservedGeneration >= d.Generation && s.Replicas == replicas && s.UpdatedReplicas == replicas && s.AvailableReplicas == replicas, nil
			})
		}
	}
	done("create", 6)
	patched(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"COLOUR:2"}]}}}}`)
	done("roll out", 6)
	for _, n := range []int32{8, 2, 8} {
		patched(fmt.Sprintf(`{"spec":{"replicas":%d}}`, n))
		done(fmt.Sprintf("scale to %d", n), n)
	}
	if on := w.colours(); len(on) != 8 {
		t.Errorf("16 pods are on %d of 8 nodes: %v", len(on), on)
	}
}

// colours are the images by node, sorted.
func (w *world) colours() map[string][]string {
	w.Helper()
	list, err := w.kube.CoreV1().Pods(namespace).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	on := map[string][]string{}
	for i := range list.Items {
		p := &list.Items[i]
		on[p.Spec.NodeName] = append(on[p.Spec.NodeName], p.Labels["app"])
		slices.Sort(on[p.Spec.NodeName])
	}
	return on
}

// The stock scheduler and ours fill the same nodes at the same time: all pods find
// room, and no node has more than it holds. Neither sees at once where the other
// binds; the room that is left over is for that.
func TestBesideASecondScheduler(t *testing.T) {
	const nodes, each = 20, 80
	w, _ := colours(t, controlplane.Config{}, nodes, controlplane.NodeShape{CPU: "12"}, map[string]string{"ours": "mode: enforce, slotsPerNode: 8, unsure: 0"})
	if _, err := w.plane.StartScheduler(w.ctx, controlplane.Scheduler{Name: "stock", Program: "kube-scheduler"}); err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	for _, scheduler := range []string{corev1.DefaultSchedulerName, "ours"} {
		both.Go(func() {
			for i := range each {
				p := coloured(fmt.Sprintf("%s-%d", scheduler, i), []string{"red", "blue"}[i%2], scheduler)
				if _, err := w.kube.CoreV1().Pods(namespace).Create(w.ctx, p, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	for i := range each {
		w.on(fmt.Sprintf("%s-%d", corev1.DefaultSchedulerName, i))
		w.on(fmt.Sprintf("ours-%d", i))
	}
	for node, on := range w.colours() {
		if len(on) > 12 {
			t.Errorf("%s has %d pods of 1 CPU each and 12 CPUs", node, len(on))
		}
	}
}

// Profiles of one scheduler have each their mode, and the metrics tell them apart.
func TestProfilesHaveModes(t *testing.T) {
	w, s := colours(t, controlplane.Config{}, 6, controlplane.NodeShape{CPU: "8"},
		map[string]string{"enforces": "mode: enforce", "assists": "mode: assist", "shadows": "mode: shadow"})
	for _, profile := range []string{"enforces", "assists", "shadows"} {
		for i := range 2 {
			w.create(coloured(fmt.Sprintf("%s-%d", profile, i), "red", profile))
		}
	}
	for profile, policy := range map[string]string{"enforces": `"policy":"greedy"`, "assists": `"policy":"score"`, "shadows": ""} {
		for i := range 2 {
			name := fmt.Sprintf("%s-%d", profile, i)
			at := w.on(name)
			p, err := w.pod(name)
			if err != nil {
				t.Fatal(err)
			}
			decision := p.Annotations[explain.DecisionAnnotation]
			if !strings.Contains(decision, policy) || (policy == "") != (decision == "") {
				t.Errorf("%s is on %s, and its annotation says %q; want %s", name, at, decision, policy)
			}
			if profile == "enforces" && !strings.Contains(decision, at) {
				t.Errorf("%s is on %s, its plan says %s", name, at, decision)
			}
		}
	}
	w.until("the metrics have two pods of each mode", func() (bool, error) {
		families, err := s.Metrics(w.ctx)
		if err != nil {
			return false, err
		}
		decided := bench.ByLabel(families["cotenant_pods_decided_total"], "mode")
		elsewhere := -1.0
		for _, m := range families["cotenant_pods_elsewhere_ratio"].GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetValue() == "enforce" {
					elsewhere = m.GetGauge().GetValue()
				}
			}
		}
		if decided["enforce"] != 2 || decided["assist"] != 2 || decided["shadow"] != 2 || elsewhere != 0 {
			return false, fmt.Errorf("pods decided by mode %v, share elsewhere %g of enforce; want 2 each, 0", decided, elsewhere)
		}
		return true, nil
	})
}

// OpportunisticBatching takes a pod by the scores of the one before where the two
// are alike: with our plugin in shadow and assist, and for workloads that it does not
// know, as without it.
func TestBatchingStaysOn(t *testing.T) {
	const pods = 30
	for _, c := range []struct{ name, args, colour string }{
		{"stock", "", "red"}, {"shadow", "mode: shadow", "red"}, {"assist", "mode: assist", "red"}, {"enforce unknown", "mode: enforce", "mauve"},
	} {
		t.Run(c.name, func(t *testing.T) {
			shape := controlplane.NodeShape{CPU: "1"} // one pod each, or none is batched
			var w *world
			var s *controlplane.RunningScheduler
			if c.args == "" {
				plane := planetest.Start(t, controlplane.Config{}, "kube-scheduler")
				w = &world{T: t, ctx: t.Context(), plane: plane, kube: plane.Client()}
				w.nodes(pods, shape, nil)
				var err error
				text := "profiles: [{schedulerName: default-scheduler, pluginConfig: [" + noDefaultSpread + "]}]\n"
				if s, err = plane.StartScheduler(t.Context(), controlplane.Scheduler{Program: "kube-scheduler", Configuration: text}); err != nil {
					t.Fatal(err)
				}
			} else {
				w, s = colours(t, controlplane.Config{}, pods, shape, map[string]string{corev1.DefaultSchedulerName: c.args})
			}
			for i := range pods {
				p := coloured(fmt.Sprint("p-", i), c.colour, "")
				p.Labels = nil // no Service would select it, and its spread is nobody's wish
				w.create(p)
			}
			for i := range pods {
				w.on(fmt.Sprint("p-", i))
			}
			used := 0.0
			w.until("most pods are batched", func() (bool, error) {
				families, err := s.Metrics(w.ctx)
				if err != nil {
					return false, err
				}
				used = bench.ByLabel(families["scheduler_batch_attempts_total"], "result")["hint_used"]
				return used >= pods/2, fmt.Errorf("%g of %d pods were", used, pods)
			})
			t.Logf("%g of %d pods were batched", used, pods)
		})
	}
}
