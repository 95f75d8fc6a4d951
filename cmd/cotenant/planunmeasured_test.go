package main

import (
	"strings"
	"testing"

	"github.com/cotenant/cotenant/interference"
)

// Co-locations larger than any that was measured are told, and what keeps plans to
// what was.
func TestPlanWarnsOfLargerColocationsThanWereMeasured(t *testing.T) {
	batch, cluster := file(t, "b.csv", "cache,train,web\n4,4,4\n"), file(t, "c.json", waitingPods)
	args := []string{"plan", "services", "--cluster", cluster, "--batch", batch, "--policy", "metis,spread", "--slots", "8"}
	_, errs, code := cotenant(t, append(args, "--samples", "testdata/samples.jsonl")...)
	for _, want := range []string{"metis, seed 1: WARNING: ", "spread, seed 1: WARNING: 2 of 2 nodes would hold more tasks than were ever measured together, 13 in all and up to 7 on one, where 3 are measured", "is not known", "--slots 3 keeps"} {
		if code != exitDone || !strings.Contains(errs, want) {
			t.Errorf("exit %d: %s lacks %q", code, errs, want)
		}
	}
	if _, errs, _ = cotenant(t, append(args, "--model", model(t, interference.KindForest, "testdata/samples.jsonl"))...); !strings.Contains(errs, "a guess beyond all that was measured") {
		t.Error(errs)
	}
	small := file(t, "s.csv", "cache,train,web\n1,1,1\n")
	if _, errs, _ = cotenant(t, "plan", "services", "--cluster", cluster, "--batch", small, "--slots", "3", "--samples", "testdata/samples.jsonl", "--policy", "metis"); strings.Contains(errs, "WARNING") {
		t.Error(errs)
	}
}
