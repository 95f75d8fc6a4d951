package plugin

import (
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
