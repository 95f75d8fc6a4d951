package jobs

import (
	"fmt"

	"github.com/cotenant/cotenant/place"
)

var binpackEntry = entry{
	name: "binpack",
	make: func(numbers, Settings) (placer, error) { return taskwise{Binpack{}}, nil },
}

// Binpack puts a task on the fullest site that takes it, like kube-scheduler's
// NodeResourcesFit by MostAllocated. Ties go to the first site.
type Binpack struct{}

// Choose implements Chooser.
func (Binpack) Choose(b *Board, t int) (site int, why Refusal) {
	return b.byLoad(int32(t), true)
}

func (Binpack) reason(b *Board, t, s int) place.Reason {
	load := b.state[b.sites[s].node].share
	return place.Reason{
		Words:  fmt.Sprintf("%s is the fullest that takes it: %d tasks, %.0f %% of its node requested", b.siteName(s), len(b.sites[s].tenants), 100*load),
		Scores: map[string]float64{"tasks": float64(len(b.sites[s].tenants)), "load": load},
	}
}
