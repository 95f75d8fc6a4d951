package main

import (
	"strings"
	"testing"
)

// Proven is proven over what was measured: where nodes could hold more, the
// table says so, and only there.
func TestPlanSaysWhatTheBoundLeavesOut(t *testing.T) {
	const left = "co-locations that nodes could hold; a plan with one of them may be better than the bound\n"
	for slots, want := range map[string]bool{"3": false, "4": true} {
		out, errs, code := cotenant(t, tiny("--slots", slots, "--policy", "bound")...)
		if code != 0 {
			t.Fatalf("exit %d: %s", code, errs)
		}
		if !strings.Contains(out, "yes") || strings.Contains(out, left) != want || strings.Contains(out, "nobody measured ") != want {
			t.Errorf("%s slots: %s", slots, out)
		}
	}
}
