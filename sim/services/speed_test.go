package services_test

import (
	"os"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/sim/services"
)

// firstFit is a policy without a thought: it remembers where there was room.
type firstFit struct{ room []int }

func (f *firstFit) Place(req place.Request) (place.Decision, error) {
	nodes := req.View.Nodes()
	f.room = f.room[:0]
	for i := range nodes {
		f.room = append(f.room, nodes[i].Slots)
		if nodes[i].Unschedulable {
			f.room[i] = 0
		}
	}
	running := req.View.Running()
	for i := range running {
		n, _ := req.View.NodeIndex(running[i].Node)
		f.room[n]--
	}
	var d place.Decision
	n := 0
	for _, g := range req.Pending {
		for _, t := range g.Tasks {
			for n < len(nodes) && f.room[n] <= 0 {
				n++
			}
			if n == len(nodes) {
				d.Hold = append(d.Hold, place.Hold{Task: t.ID, Why: "full"})
				continue
			}
			f.room[n]--
			d.Bind = append(d.Bind, place.Binding{Task: t.ID, Node: nodes[n].Name})
		}
	}
	return d, nil
}

func metis(t testing.TB) interference.Model {
	const path = "../../../shared/data/metis/colocation-6435.csv"
	f, err := os.Open(path)
	if err != nil {
		t.Skipf("%s is absent: %v", path, err)
	}
	defer f.Close()
	samples, _, err := formats.ReadMetisCSV(f, formats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := interference.Fit(interference.KindTable, samples, interference.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func BenchmarkRun(b *testing.B) {
	m := metis(b)
	for _, nodes := range []int{81, 729} {
		for _, name := range []string{"first", "greedy", "spread"} {
			b.Run(name, func(b *testing.B) {
				events, decisions := 0, 0
				for i := range b.N {
					horizon := 20 * time.Hour
					arrivals, err := services.Stream{
						Capacity: nodes * 8, Load: 0.8, Horizon: horizon, Lifetime: time.Hour, Workloads: m.Workloads(""), Scaling: 1,
					}.Draw(uint64(i))
					if err != nil {
						b.Fatal(err)
					}
					var p place.Policy = &firstFit{}
					if name != "first" {
						if p, err = baseline.New(name, baseline.Options{Model: m}); err != nil {
							b.Fatal(err)
						}
					}
					r, err := services.Run(services.Config{
						Cluster: cluster.Spec{Nodes: cluster.Nodes("", nodes, 0, 8)}, Arrivals: arrivals, Truth: m, Policy: p,
						Horizon: horizon, Warmup: 2 * time.Hour, Lifetime: time.Hour, Samples: 20,
					})
					if err != nil {
						b.Fatal(err)
					}
					events += r.Events
					decisions += r.Decisions
					if i == 0 {
						b.Logf("%d %+v", nodes, r)
					}
				}
				b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
				b.ReportMetric(float64(decisions)/b.Elapsed().Seconds(), "decisions/s")
			})
		}
	}
}
