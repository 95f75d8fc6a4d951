package balance

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	core "github.com/cotenant/cotenant/balance"
)

// random is the schedule of a seed.
func random(seed uint64) Schedule {
	s := Schedule{
		Ranks: 1 + int(seed%6), GlobalBatch: 24 + int(seed%97), Data: 500 + int(seed%311), Iterations: 30,
		Crash: 0.01, Stall: 0.02, Join: 0.03, Down: 0.03, Lose: 0.1, Allocator: core.CPU, Seed: seed,
	}
	if seed%50 == 0 {
		s.Allocator = core.GPU
	}
	return s
}

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
		p, err := Play(random(seed))
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

var update = flag.Bool("update", false, "write testdata/schedules.jsonl anew")

// TestSchedulesForProcesses: the first 500 schedules are in a file, from which
// python/tests/replay.py has real processes go through them.
func TestSchedulesForProcesses(t *testing.T) {
	const file = "testdata/schedules.jsonl"
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	for seed := range uint64(500) {
		s := random(seed)
		p, err := Play(s)
		if err != nil {
			t.Fatal(err)
		}
		events := make([]string, len(p.Events))
		for i, e := range p.Events {
			events[i] = e.String()
		}
		err = lines.Encode(map[string]any{
			"seed": seed, "ranks": s.Ranks, "global_batch": s.GlobalBatch, "data": s.Data, "iterations": s.Iterations,
			"allocator": s.Allocator, "timeout": Timeout, "lose": s.Lose, "events": events,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || !bytes.Equal(want, text.Bytes()) {
		t.Errorf("%s holds other schedules than are played (%v); write it anew: go test ./sim/balance -run Processes -update", file, err)
	}
}
