package plugin

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/testutil"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
	"github.com/cotenant/cotenant/kubernetes/plugin/plan"
)

// The mode shadow has none of the points by which decisions change or
// OpportunisticBatching is turned off.
func TestShadowHasNoSay(t *testing.T) {
	var p any = &Shadow{}
	for name, has := range map[string]bool{
		"PreEnqueue": is[fwk.PreEnqueuePlugin](p), "PreFilter": is[fwk.PreFilterPlugin](p), "Filter": is[fwk.FilterPlugin](p),
		"PostFilter": is[fwk.PostFilterPlugin](p), "PreScore": is[fwk.PreScorePlugin](p), "Score": is[fwk.ScorePlugin](p),
		"Permit": is[fwk.PermitPlugin](p), "PreBind": is[fwk.PreBindPlugin](p), "Bind": is[fwk.BindPlugin](p),
		"QueueSort": is[fwk.QueueSortPlugin](p), "PlacementGenerate": is[fwk.PlacementGeneratePlugin](p),
		"PlacementScore": is[fwk.PlacementScorePlugin](p), "PlacementFeasible": is[framework.PlacementFeasiblePlugin](p),
		"PodGroupPostFilter": is[fwk.PodGroupPostFilterPlugin](p),
	} {
		if has {
			t.Errorf("the plugin in the mode shadow implements %s", name)
		}
	}
}

func is[T any](p any) bool { _, ok := p.(T); return ok }

func TestShadowTellsAndChangesNothing(t *testing.T) {
	w := start(t, "mode: shadow", nodes(3, "8")...)
	w.create(append(list(3, "red"), list(3, "blue")...)...)
	w.settles(6)
	var told strings.Builder
	for end := time.Now().Add(5 * time.Second); !strings.Contains(told.String(), "CotenantShadow"); time.Sleep(10 * time.Millisecond) {
		told.WriteString(w.told())
		if time.Now().After(end) {
			t.Fatalf("no event tells what would have been:\n%s", told.String())
		}
	}
	if p, ok := w.plugin.(*Shadow); !ok {
		t.Errorf("the plugin is a %T", p)
	}
}

// Every pod is told of, however soon it is bound, and the plans are those of one
// cluster: the one that they fill. Two of a colour slow each other down, so each
// node gets one of each, whatever the scheduler does with them.
func TestShadowPlansOnWhatItWouldHaveFilled(t *testing.T) {
	w := start(t, "mode: shadow, slotsPerNode: 2", nodes(4, "8")...)
	pods := append(list(4, "red"), list(4, "blue")...)
	for i, pod := range pods {
		w.create(pod)
		w.settles(i + 1)
	}
	on := map[string]map[string]int{}
	for _, d := range w.shadows(len(pods)) {
		colour := strings.TrimPrefix(d.Group, "default/ReplicaSet/")
		if on[d.Planned] == nil {
			on[d.Planned] = map[string]int{}
		}
		on[d.Planned][colour]++
	}
	for node, colours := range on {
		if colours["red"] > 1 || colours["blue"] > 1 {
			t.Errorf("the plans together have %v on %s", colours, node)
		}
	}
}

// shadows waits until so many pods are told of, and returns what is told.
func (w *world) shadows(n int) []Decision {
	w.Helper()
	var text strings.Builder
	var out []Decision
	for end := time.Now().Add(10 * time.Second); len(out) < n; time.Sleep(10 * time.Millisecond) {
		for line := range strings.Lines(w.told()) {
			text.WriteString(line + "\n")
			_, decision, ok := strings.Cut(line, "decision: ")
			var d Decision
			if ok && json.Unmarshal([]byte(decision), &d) == nil {
				out = append(out, d)
			}
		}
		if time.Now().After(end) {
			w.Fatalf("%d of %d pods are told of:\n%s", len(out), n, text.String())
		}
	}
	return out
}

// Pods that get their nodes while a plan is being made are told of though no pod
// comes after them, on the nodes that the scheduler's filters admit them to, and
// beside those that came before them.
func TestShadowTellsOfTheLastOfABurst(t *testing.T) {
	w := start(t, "mode: shadow, slotsPerNode: 2", nodes(3, "8")...)
	s := w.plugin.(*Shadow)
	s.planning.Lock()
	w.create(pod("red-0", "red"))
	w.settles(1)
	only := func(node string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.OwnerReferences[0].Name = "only-" + node
			p.Spec.NodeSelector = map[string]string{v1.LabelHostname: node}
		}
	}
	w.create(pod("red-1", "red"), pod("red-2", "red", only("n1")), pod("red-3", "red", only("n2")), pod("green-0", "green", only("n2")))
	w.settles(5)
	s.planning.Unlock()
	at := map[string]string{}
	for _, d := range w.shadows(4) {
		at[d.Group] = d.Planned
	}
	if at["default/ReplicaSet/only-n1"] != "n1" || at["default/ReplicaSet/only-n2"] != "n2" {
		t.Errorf("planned: %v", at)
	}
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	if len(s.world.at) != 4 || len(s.world.missed)+len(s.world.late)+len(s.world.plans) != 0 {
		t.Errorf("%d pods are where plans had them; %d missed, %d late, %d with plans untold", len(s.world.at), len(s.world.missed), len(s.world.late), len(s.world.plans))
	}
}

// A pod of which nothing can be said is told of with the reason, and counted, once
// it has its node. One in a namespace that is left alone is not.
func TestShadowSaysWhatItCannotJudge(t *testing.T) {
	for name, c := range map[string]struct {
		samples, image string
		code           plan.Code
	}{
		"unknown workload": {planetest.TwoColours, "mauve", plan.WorkloadUnknown},
		"bad files":        {planetest.TwoColours[:40], "red", plan.BadFiles},
	} {
		t.Run(name, func(t *testing.T) {
			w := startWith(t, c.samples, "mode: shadow, namespaces: {left: ignore}", nodes(3, "8")...)
			count := func() float64 {
				n, err := testutil.GetCounterMetricValue(fallbacks.WithLabelValues(string(c.code)))
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			before := count()
			w.create(list(2, c.image)...)
			w.create(list(2, c.image, func(p *v1.Pod) { p.Namespace, p.Name = "left", "left-"+p.Name })...)
			w.settles(4)
			var told strings.Builder
			for end := time.Now().Add(5 * time.Second); strings.Count(told.String(), string(c.code)) < 2; time.Sleep(10 * time.Millisecond) {
				told.WriteString(w.told() + "\n")
				if time.Now().After(end) {
					t.Fatalf("not each of two pods is told of %s:\n%s", c.code, told.String())
				}
			}
			time.Sleep(100 * time.Millisecond)
			told.WriteString(w.told())
			if n := strings.Count(told.String(), "CotenantFallback"); n != 2 || strings.Contains(told.String(), "CotenantShadow") || count() != before+2 {
				t.Errorf("%d events, %v counted:\n%s", n, count()-before, told.String())
			}
		})
	}
}
