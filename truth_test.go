package cotenant_test

import (
	"slices"
	"testing"
)

// truths know how fast jobs really run, or reach who does.
var truths = []string{"sim/measured", "sim/contention", "sim/compare"}

// TestTrainingReachesNoTruth wants what learns to place jobs to have no way to
// the truth, even through others: it sees the world that a model believes
// (sim/learned). train/worlds and the command, which turn a world with a truth
// into such, show by its counter of calls that they never ask it.
func TestTrainingReachesNoTruth(t *testing.T) {
	for _, p := range list(t, "./train/harmony", "./train/curves", "./rl", "./place/harmony", "./place/encode", "./place/jobs", "./sim/learned") {
		for _, d := range p.Deps {
			if to, ok := folder(d); ok && slices.Contains(truths, to) {
				from, _ := folder(p.ImportPath)
				t.Errorf("%s reaches %s; who learns must not know the truth", from, to)
			}
		}
	}
}
