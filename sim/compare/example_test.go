package compare_test

import (
	"context"
	"fmt"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
)

// table is what was measured of workloads that need a part of a device: two
// that need more than all of it slow each other.
func table(class string, rate float64, needs map[string]float64) []history.Sample {
	var out []history.Sample
	add := func(workload string, c cluster.Colocation, performance float64) {
		out = append(out, history.Sample{
			Class: class, Scope: history.ScopeDevice, Colocation: c, Workload: workload, Metric: history.Rate, Value: rate * performance, Alone: rate,
		})
	}
	names := cluster.Colocation{}
	for name := range needs {
		names[name] = 1
	}
	for _, a := range names.Workloads() {
		add(a, cluster.Colocation{a: 1}, 1)
		for _, b := range names.Workloads() {
			pair := cluster.Colocation{a: 1}
			pair[b]++
			add(a, pair, min(1, 1/(needs[a]+needs[b])))
		}
	}
	return out
}

func Example() {
	samples := table("v100", 10, map[string]float64{"small": 0.3, "large": 0.9})
	world, err := compare.Measured(samples, cluster.Nodes("v100", 8, 1, 0), 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	var specs []compare.Spec
	for _, text := range []string{"spread", "greedy:truth"} {
		spec, err := compare.ParseSpec(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		specs = append(specs, spec)
	}
	setting := compare.Setting{
		World: world, Specs: specs, Seeds: []uint64{1, 2, 3, 4},
		Jobs: func(seed uint64) ([]sim.Job, error) {
			return world.Generate(compare.Load{Jobs: 200, Load: 0.9}, seed)
		},
		Options: sim.Config{Backfill: true},
		Belief:  compare.Belief{Observed: 1},
	}
	outcomes, err := setting.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range compare.Rows(outcomes) {
		fmt.Printf("%s: %.2f of spread's mean JCT\n", r.Spec.Text, r.Ratio)
	}
	// Output:
	// spread: 1.00 of spread's mean JCT
	// greedy:truth: 0.97 of spread's mean JCT
}
