package balance

import (
	"testing"

	core "github.com/cotenant/cotenant/balance"
)

// TestRandomSchedules is the promise of the agreement: ten thousand schedules
// of crashes, joins, stalls and outages, and never a hang, a lost or repeated
// sample, another sum, or two ranks with different shares.
func TestRandomSchedules(t *testing.T) {
	n := uint64(10_000)
	if testing.Short() {
		n = 500
	}
	var total Played
	for seed := range n {
		s := Schedule{
			Ranks: 1 + int(seed%6), GlobalBatch: 24 + int(seed%97), Data: 500 + int(seed%311), Iterations: 30,
			Crash: 0.01, Stall: 0.02, Join: 0.03, Down: 0.03, Lose: 0.1, Allocator: core.CPU, Seed: seed,
		}
		if seed%50 == 0 {
			s.Allocator = core.GPU
		}
		p, err := Play(s)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		total.Applied += p.Applied
		total.Aborted += p.Aborted
		total.Moves += p.Moves
		total.Generations += p.Generations
		total.Outages += p.Outages
	}
	if total.Moves < int(n) || total.Aborted < int(n)/2 || total.Outages < int(n)/4 {
		t.Errorf("the schedules try too little: %+v", total)
	}
	t.Logf("%d schedules: %+v", n, total)
}
