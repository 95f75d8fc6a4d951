package bench

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/kubernetes/plugin/brain"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
)

// What the scheduler makes of the files that it is given decides as the
// simulator's policy does: the same jobs end at the same times.
func TestFilesHoldWhatTheSimulatorKnows(t *testing.T) {
	testbed, err := NewTestbed(3, 100)
	if err != nil {
		t.Fatal(err)
	}
	load := compare.Load{Jobs: 40, Load: .9}
	results, err := testbed.Simulate(t.Context(), load, 1, compare.Harmony)
	if err != nil {
		t.Fatal(err)
	}
	model, err := testbed.Model(1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := brain.Files{
		Model: filepath.Join(dir, "model"), Samples: filepath.Join(dir, "alone.jsonl"),
		Services: brain.Policy{Name: "greedy"}, Jobs: brain.Policy{Name: compare.Harmony},
	}
	if err := testbed.save(model, files.Model, files.Samples); err != nil {
		t.Fatal(err)
	}
	b, err := brain.New(files)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := b.Now().Jobs(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := testbed.Generate(load, 1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := sim.Run(sim.Config{
		Nodes: testbed.Nodes, Workloads: testbed.Declared, Jobs: jobs, Truth: testbed.Truth(), Policy: policy, Seed: 1, Backfill: true,
	})
	if err != nil || got.MeanJCT != results[0].MeanJCT {
		t.Errorf("mean JCT %.0f s by the scheduler's files, %.0f s by the simulator's policy (%v)", got.MeanJCT, results[0].MeanJCT, err)
	}
}

// A scheduler that binds at once what a simulation places gives what the
// simulation gives.
func TestProgressIsTheSimulators(t *testing.T) {
	testbed, err := NewTestbed(3, 50)
	if err != nil {
		t.Fatal(err)
	}
	load := compare.Load{Jobs: 30, Load: .9}
	jobs, err := testbed.Generate(load, 1)
	if err != nil {
		t.Fatal(err)
	}
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: testbed.Nodes, Workloads: testbed.Declared})
	if err != nil {
		t.Fatal(err)
	}
	s := &progress{truth: testbed.Truth(), view: view}
	for i := range jobs {
		s.waiting = append(s.waiting, &replayed{Job: &jobs[i], left: jobs[i].Work})
	}
	// The first job runs alone on the first node, the next beside it an hour later.
	where := map[string]string{}
	put := func(j int) {
		for _, task := range jobs[j].Tasks {
			where[taskPod(task.ID)] = nodeName(0)
		}
	}
	at := func(pod string) string { return where[pod] }
	put(0)
	if _, began, err := s.pass(10, at); began != 1 || err != nil || s.running[0].rate <= 0 || s.running[0].rate > 1.0001 {
		t.Fatalf("%d began (%v)", began, err)
	}
	alone := s.running[0].rate
	put(1)
	if ended, began, err := s.pass(600, at); len(ended) != 0 || began != 1 || err != nil {
		t.Fatalf("%d ended, %d began (%v)", len(ended), began, err)
	}
	if want := jobs[0].Work - 590*alone; s.running[0].left != want {
		t.Errorf("%g s of work are left, want %g", s.running[0].left, want)
	}
	if s.running[0].rate >= alone {
		t.Errorf("beside another it goes at %g, alone at %g", s.running[0].rate, alone)
	}
	end := s.next()
	if ended, _, err := s.pass(end, at); len(ended) != 1 || err != nil || s.jct[0] <= 0 {
		t.Errorf("%d ended (%v)", len(ended), err)
	}
	if len(s.view.Running()) != len(s.running[0].Tasks) {
		t.Errorf("%d tasks run, want those of one job", len(s.view.Running()))
	}
}
