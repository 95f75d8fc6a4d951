package compare_test

import (
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history/formats"
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
