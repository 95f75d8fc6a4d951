package compare_test

import (
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
	"github.com/cotenant/cotenant/sim/contention"
)

// Traces name no parameter servers; on servers a job without any would cost
// the network nothing.
func TestJobsOfTracesGetParameterServers(t *testing.T) {
	w, err := compare.Contention(compare.ContentionConfig{Servers: 3, Profile: contention.SamplesConfig{Colocations: 30, Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.FromTrace([]formats.TraceJob{
		{Name: "a", Workload: "vgg-16/32", Workers: 3, Devices: 1, Steps: 1000, Weight: 1},
		{Name: "b", Workload: "nobody", Workers: 1, Devices: 1, Seconds: 60, Weight: 1},
	}, compare.TraceOptions{})
	if err != nil || len(got.Jobs) == 0 {
		t.Fatalf("%d jobs, %v", len(got.Jobs), err)
	}
	count := map[cluster.Role]int{}
	batch := 0
	for _, task := range got.Jobs[0].Tasks {
		count[task.Role]++
		batch += task.BatchSize
	}
	if count[cluster.Worker] != 3 || count[cluster.ParameterServer] != 3 || batch != 32 {
		t.Errorf("%v tasks with batch sizes that add up to %d; want 3 workers that share 32, and 3 parameter servers", count, batch)
	}
}

// Gangs that share servers are moved, too, task by task, and gain by it.
func TestGangsMoveBetweenServers(t *testing.T) {
	w, err := compare.Contention(compare.ContentionConfig{Servers: 3, Profile: contention.SamplesConfig{Colocations: 200, Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	s := setting(t, w, "spread", "harmony")
	s.Jobs = func(seed uint64) ([]sim.Job, error) { return w.Generate(compare.Load{Jobs: 60, Load: 0.9}, seed) }
	still := compare.Rows(run(t, &s))[1]
	s.Options.Migrate = sim.Price{On: true, Cost: 30 * time.Second}
	moving := compare.Rows(run(t, &s))[1]
	if moving.Moves == 0 || !(moving.MeanJCT < still.MeanJCT) {
		t.Errorf("%d moves; mean JCT %.0f s, without moves %.0f s", moving.Moves, moving.MeanJCT, still.MeanJCT)
	}
}
