package plugin

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
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
	told := map[string]bool{}
	var text strings.Builder
	for end := time.Now().Add(5 * time.Second); len(told) < len(pods)-1; time.Sleep(10 * time.Millisecond) {
		for line := range strings.Lines(w.told()) {
			text.WriteString(line)
			_, decision, ok := strings.Cut(line, "decision: ")
			var d Decision
			if !ok || json.Unmarshal([]byte(decision), &d) != nil {
				continue
			}
			told[line] = true
			colour := strings.TrimPrefix(d.Group, "default/ReplicaSet/")
			if on[d.Planned] == nil {
				on[d.Planned] = map[string]int{}
			}
			on[d.Planned][colour]++
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d pods are told of:\n%s", len(told), len(pods), text.String())
		}
	}
	for node, colours := range on {
		if colours["red"] > 1 || colours["blue"] > 1 {
			t.Errorf("the plans together have %v on %s:\n%s", colours, node, text.String())
		}
	}
}
