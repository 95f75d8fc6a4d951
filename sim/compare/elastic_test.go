package compare_test

import (
	"encoding/json"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
)

// Jobs that are scaled stay within their bounds, do all their work and no more,
// and the same seed gives the same bytes; jobs are done sooner than without.
func TestScaling(t *testing.T) {
	w := growing(t)
	s := setting(t, w, "spread", "greedy", "greedy-wait", "matching", "harmony")
	elastic := compare.Elastic{Min: 0.5, Max: 2}
	s.Jobs = func(seed uint64) ([]sim.Job, error) {
		return w.Generate(compare.Load{Jobs: 60, Load: 0.8, Elastic: elastic, Sizes: []sim.Size{{Workers: 1, Share: 1}, {Workers: 2, Share: 1}}}, seed)
	}
	still := run(t, &s)
	s.Options.Scale = sim.Price{On: true, Cost: time.Minute}
	var mu sync.Mutex
	work := map[string]map[string]float64{}
	s.Hook = func(spec compare.Spec, seed uint64, c *sim.Config) {
		bounds, did := map[string][2]int{}, map[string]float64{}
		for _, j := range c.Jobs {
			bounds[j.Name] = [2]int{j.MinWorkers, j.MaxWorkers}
		}
		mu.Lock()
		work[spec.Text+string(rune(seed))] = did
		mu.Unlock()
		c.Watch = func(v sim.Stretch) {
			workers := map[string]int{}
			for i, r := range v.View.Running() {
				if workers[r.Group]++; workers[r.Group] == 1 {
					did[r.Group] += v.Rate[i] * max(0, v.To-max(v.From, v.Still[i])).Seconds()
				}
			}
			for name, n := range workers {
				if b := bounds[name]; b[1] > 0 && (n < b[0] || n > b[1]) {
					t.Errorf("%s: %s has %d workers; it takes %d to %d", spec.Text, name, n, b[0], b[1])
				}
			}
		}
	}
	scaled := run(t, &s)
	for i, o := range scaled {
		for _, j := range o.Result.Jobs {
			if did := work[o.Spec.Text+string(rune(o.Seed))][j.Name]; math.Abs(did-j.Work) > 1e-3 {
				t.Errorf("%s: %s did %g s of its %g s of work", o.Spec.Text, j.Name, did, j.Work)
			}
		}
		if spread := o.Spec.Text == compare.Spread; spread == (o.Result.Resizes > 0) {
			t.Errorf("%s: %d resizes", o.Spec.Text, o.Result.Resizes)
		} else if !spread && o.Result.MeanJCT >= still[i].Result.MeanJCT {
			t.Errorf("%s, seed %d: mean JCT %g, without scaling %g", o.Spec.Text, o.Seed, o.Result.MeanJCT, still[i].Result.MeanJCT)
		}
	}
	one, _ := json.Marshal(scaled)
	two, _ := json.Marshal(run(t, &s))
	if string(one) != string(two) {
		t.Error("two runs of the same seeds differ")
	}
}

// growing is a world in which 2 workers are 1.7 times and 4 are 2.6 times as fast
// as one.
func growing(t *testing.T) *compare.World {
	t.Helper()
	samples := table("v100", 10, needs)
	for name := range needs {
		for _, z := range []struct {
			workers int
			rate    float64
		}{{2, 17}, {4, 26}} {
			samples = append(samples, history.Sample{
				Class: "v100", Scope: history.ScopeDevice, Colocation: cluster.Colocation{name: 1}, Workload: name, Metric: history.Rate,
				Workers: z.workers, Span: cluster.SpanNode, Value: z.rate, Alone: z.rate,
			})
		}
	}
	w, err := compare.Measured(samples, cluster.Nodes("v100", 2, 4, 0), 2)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestElasticBounds(t *testing.T) {
	for _, c := range []struct {
		elastic       compare.Elastic
		workers       int
		least, most   int
		wrongElastics bool
	}{
		{compare.Elastic{}, 4, 0, 0, false},
		{compare.Elastic{Min: 0.5, Max: 2}, 1, 1, 2, false},
		{compare.Elastic{Min: 0.5, Max: 2}, 3, 2, 6, false},
		{compare.Elastic{Min: 1, Max: 1}, 3, 0, 0, false},
		{compare.Elastic{Min: 0, Max: 1}, 3, 1, 3, false},
		{compare.Elastic{Min: 2, Max: 1}, 3, 0, 0, true},
		{compare.Elastic{Min: 0.5, Max: math.NaN()}, 3, 0, 0, true},
	} {
		if err := c.elastic.Check(); (err != nil) != c.wrongElastics {
			t.Errorf("%v: %v", c.elastic, err)
		}
		if c.wrongElastics {
			continue
		}
		list, err := world(t).Generate(compare.Load{Jobs: 1, Load: 1, Elastic: c.elastic, Sizes: []sim.Size{{Workers: c.workers, Share: 1}}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if j := list[0].Job; j.MinWorkers != c.least || j.MaxWorkers != c.most || len(j.Group().Tasks) != c.workers {
			t.Errorf("%v: %d workers scale from %d to %d, want %d to %d", c.elastic, c.workers, j.MinWorkers, j.MaxWorkers, c.least, c.most)
		}
		if z := list[0].Group().Sizes(); (z == nil) != (c.most == 0) || z != nil && z.WorkerID("j", c.workers) != cluster.TaskID("j/worker-"+string(rune('0'+c.workers))) {
			t.Errorf("%v: sizes %+v", c.elastic, z)
		}
	}
}
