package worlds_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
	"github.com/cotenant/cotenant/sim/contention"
	"github.com/cotenant/cotenant/train/harmony"
	"github.com/cotenant/cotenant/train/worlds"
)

// samples are of two workloads on two classes: the first twice as fast, pairs
// at 0.7 of it.
func samples() []history.Sample {
	var out []history.Sample
	for class, speed := range map[string]float64{"fast": 2, "slow": 1} {
		add := func(workload string, value float64, c cluster.Colocation) {
			out = append(out, history.Sample{Class: class, Scope: history.ScopeDevice, Colocation: c, Workload: workload, Metric: history.Rate, Value: value * speed, Alone: speed})
		}
		for _, a := range []string{"a", "b"} {
			add(a, 1, cluster.Colocation{a: 1})
			add(a, 0.7, cluster.Colocation{a: 2})
			add(a, 0.7, cluster.Colocation{"a": 1, "b": 1})
		}
	}
	return out
}

func measured(t *testing.T, nodes ...cluster.Node) *compare.World {
	t.Helper()
	w, err := compare.Measured(samples(), nodes, 2)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestDraws wants what Convert makes to be runnable, to depend on the seed
// alone, and to differ from seed to seed within what was asked for.
func TestDraws(t *testing.T) {
	servers, err := compare.Contention(compare.ContentionConfig{Servers: 6, PerRack: 2, Profile: contention.SamplesConfig{Colocations: 40, Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	known, err := compare.Known(samples(), cluster.Nodes("fast", 4, 2, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	singles := measured(t, append(cluster.Nodes("fast", 6, 1, 0), cluster.Nodes("slow", 4, 1, 0)...)...)
	like := []sim.Job{
		{Job: cluster.Job{Name: "x", Tasks: sim.Workers("x", "a", 2)}, Work: 3600},
		{Job: cluster.Job{Name: "y", Tasks: sim.Workers("y", "b", 1)}, Work: 60},
	}
	for name, x := range map[string]struct {
		world *compare.World
		kind  string
		like  []sim.Job
	}{
		"single devices":   {singles, interference.KindTable, nil},
		"several devices":  {measured(t, cluster.Nodes("fast", 4, 4, 0)...), interference.KindTable, nil},
		"like a trace":     {singles, interference.KindTable, like},
		"servers":          {servers, interference.KindLinear, nil},
		"only samples":     {known, interference.KindLinear, nil},
		"samples, a trace": {known, interference.KindLinear, like},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := x.world.Fit(compare.Belief{Observed: 1, Kind: x.kind})
			if err != nil {
				t.Fatal(err)
			}
			w, err := worlds.Convert(name, x.world, x.world.Speeds(m, 0), worlds.Options{Jobs: 60, Size: [2]float64{0.5, 2}, Like: x.like})
			if err != nil {
				t.Fatal(err)
			}
			sizes, n := map[int]bool{}, len(x.world.Nodes)
			for seed := range uint64(12) {
				e, err := w.Draw(seed)
				if err != nil {
					t.Fatal(err)
				}
				again, err := w.Draw(seed)
				if err != nil || !reflect.DeepEqual(e, again) {
					t.Errorf("seed %d: another episode the second time; %v", seed, err)
				}
				sizes[len(e.Nodes)] = true
				if len(e.Jobs) != 60 || len(e.Nodes) < n/2 || len(e.Nodes) > 2*n {
					t.Errorf("seed %d: %d jobs on %d nodes; want 60 on %d to %d", seed, len(e.Jobs), len(e.Nodes), n/2, 2*n)
				}
			}
			if len(sizes) < 3 {
				t.Errorf("clusters of %v nodes; want several sizes", sizes)
			}
			tr, err := harmony.NewTrainer(harmony.Config{Worlds: []harmony.World{w}, Updates: 1, Episodes: 4, Takes: 2, Validation: 2, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			if err := tr.Run(t.Context(), func(harmony.Report) error { return nil }); err != nil {
				t.Error(err)
			}
			if calls := x.world.Calls(); calls != 0 {
				t.Errorf("training asked the truth %d times", calls)
			}
		})
	}
}

// Clusters keep their proportions and the size of their racks.
func TestScaledClusters(t *testing.T) {
	nodes := append(cluster.Nodes("fast", 4, 2, 0), cluster.Nodes("slow", 2, 2, 0)...)
	for i := range nodes {
		nodes[i].Labels = map[string]string{cluster.RackKey: fmt.Sprint("rack-", i/2), "zone": "z"}
	}
	world := measured(t, nodes...)
	w, err := worlds.Convert("racks", world, world.Speeds(world.Table, 0), worlds.Options{Jobs: 5, Size: [2]float64{2, 2}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := w.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	classes, racks := map[string]int{}, map[string]int{}
	for _, n := range e.Nodes {
		classes[n.Devices[0].Class]++
		racks[n.Labels[cluster.RackKey]]++
		if n.Labels["zone"] != "z" {
			t.Errorf("node %s lost its other labels: %v", n.Name, n.Labels)
		}
	}
	if classes["fast"] != 8 || classes["slow"] != 4 || len(racks) != 6 || racks["rack-5"] != 2 {
		t.Errorf("classes %v, racks %v; want 8 and 4, and 6 racks of 2", classes, racks)
	}
	if world.Nodes[0].Labels[cluster.RackKey] != "rack-0" || world.Nodes[0].Name != nodes[0].Name {
		t.Error("the world's own nodes changed")
	}
}

func TestConvertRefuses(t *testing.T) {
	world := measured(t, cluster.Nodes("fast", 4, 1, 0)...)
	speeds := world.Speeds(world.Table, 0)
	for want, o := range map[string]worlds.Options{
		"2 to 1":  {Load: [2]float64{2, 1}},
		"-1 to 1": {Size: [2]float64{-1, 1}},
		"-5 jobs": {Jobs: -5},
	} {
		if _, err := worlds.Convert("x", world, speeds, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want an error with %q", o, err, want)
		}
	}
	if _, err := worlds.Convert("x", &compare.World{}, speeds, worlds.Options{}); err == nil {
		t.Error("a world without nodes")
	}
}

func Example() {
	world, err := compare.Measured(samples(), cluster.Nodes("fast", 4, 1, 0), 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	w, err := worlds.Convert("fast", world, world.Speeds(world.Table, 0), worlds.Options{Jobs: 100, Load: [2]float64{0.9, 0.9}})
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := w.Draw(1)
	fmt.Println(len(e.Jobs), "jobs over", e.Jobs[99].Arrival > 10*time.Hour, err, "calls of the truth:", world.Calls())
	// Output:
	// 100 jobs over true <nil> calls of the truth: 0
}
