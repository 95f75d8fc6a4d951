package sim_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/sim"
)

// A long stream has the load it was asked for, workloads alike often, and
// durations whose logarithm is uniform.
func TestStreamHasItsLoad(t *testing.T) {
	st := sim.Stream{
		Jobs: 20000, Load: 0.9, Capacity: 16, Workloads: []string{"a", "b", "c"},
		Sizes: []sim.Size{{Workers: 1, Share: 7}, {Workers: 2, Share: 2}, {Workers: 8, Share: 1}, {Workers: 64, Share: 0}},
		Alone: func(workload string, _ int) float64 {
			if workload == "c" {
				return 0.5
			}
			return 1
		},
	}
	jobs, err := st.Draw(3)
	if err != nil {
		t.Fatal(err)
	}
	work, workloads, sizes := 0.0, map[string]int{}, map[int]int{}
	for i, j := range jobs {
		alone := j.Work
		if j.Tasks[0].Workload == "c" {
			alone /= 0.5
		}
		work += alone * float64(len(j.Tasks))
		workloads[j.Tasks[0].Workload]++
		sizes[len(j.Tasks)]++
		if alone < 1800-1e-6 || alone > 53*3600+1e-6 {
			t.Errorf("job %d takes %g s alone, outside half an hour to 53 hours", i, alone)
		}
		if i > 0 && j.Arrival < jobs[i-1].Arrival {
			t.Errorf("job %d arrives before the one before it", i)
		}
	}
	if load := work / jobs[len(jobs)-1].Arrival.Seconds() / 16; math.Abs(load-0.9) > 0.03 {
		t.Errorf("load %g, want 0.9", load)
	}
	for w, n := range workloads {
		if math.Abs(float64(n)/20000-1./3) > 0.02 {
			t.Errorf("%d of 20000 jobs run %s", n, w)
		}
	}
	for size, share := range map[int]float64{1: 0.7, 2: 0.2, 8: 0.1} {
		if math.Abs(float64(sizes[size])/20000-share) > 0.02 {
			t.Errorf("%d of 20000 jobs have %d workers", sizes[size], size)
		}
	}
	if sizes[64] > 0 {
		t.Errorf("%d jobs of a size with no share", sizes[64])
	}
	short := 0
	for _, j := range jobs {
		alone := j.Work
		if j.Tasks[0].Workload == "c" {
			alone /= 0.5
		}
		if alone < math.Sqrt(1800*53*3600) {
			short++
		}
	}
	if math.Abs(float64(short)/20000-0.5) > 0.02 {
		t.Errorf("%d of 20000 jobs are shorter than the geometric mean, want half", short)
	}
}

// Another load moves the arrivals and nothing else; another seed moves all.
func TestStreamBySeed(t *testing.T) {
	draw := func(load float64, seed uint64) []sim.Job {
		jobs, err := sim.Stream{Jobs: 50, Load: load, Capacity: 4, Workloads: []string{"a", "b"}}.Draw(seed)
		if err != nil {
			t.Fatal(err)
		}
		return jobs
	}
	bytes := func(jobs []sim.Job) string {
		b, err := json.Marshal(jobs)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	a, denser := draw(0.5, 1), draw(1, 1)
	if bytes(a) != bytes(draw(0.5, 1)) || bytes(a) == bytes(draw(0.5, 2)) {
		t.Error("the jobs are not those of the seed")
	}
	for i := range a {
		if a[i].Work != denser[i].Work || a[i].Tasks[0].Workload != denser[i].Tasks[0].Workload || math.Abs(a[i].Arrival.Seconds()/denser[i].Arrival.Seconds()-2) > 1e-6 {
			t.Fatalf("job %d at load 0.5 and 1: %+v, %+v", i, a[i], denser[i])
		}
	}
}

func TestCapacity(t *testing.T) {
	nodes := append(cluster.Nodes("v100", 2, 4, 0), cluster.Nodes("k80", 1, 8, 0)...)
	speed := map[string]float64{"v100": 1, "k80": 0.25}
	if got := sim.Capacity(nodes, func(class string) float64 { return speed[class] }); got != 10 {
		t.Errorf("%g, want 8 + 8/4", got)
	}
}

func TestStreamRefuses(t *testing.T) {
	change := func(f func(*sim.Stream)) sim.Stream {
		st := sim.Stream{Jobs: 5, Load: 1, Capacity: 1, Workloads: []string{"a"}}
		f(&st)
		return st
	}
	for wanted, st := range map[string]sim.Stream{
		"-1 jobs":              change(func(st *sim.Stream) { st.Jobs = -1 }),
		"load 0":               change(func(st *sim.Stream) { st.Load = 0 }),
		"load NaN":             change(func(st *sim.Stream) { st.Load = math.NaN() }),
		"capacity 0":           change(func(st *sim.Stream) { st.Capacity = 0 }),
		"no workloads":         change(func(st *sim.Stream) { st.Workloads = nil }),
		"from 2s to 1s":        change(func(st *sim.Stream) { st.Min, st.Max = 2*s, s }),
		"size of 0 workers":    change(func(st *sim.Stream) { st.Sizes = []sim.Size{{Share: 1}} }),
		"shares of all sizes":  change(func(st *sim.Stream) { st.Sizes = []sim.Size{{Workers: 1}} }),
		"progress 0 alone":     change(func(st *sim.Stream) { st.Alone = func(string, int) float64 { return 0 } }),
		"would arrive after":   change(func(st *sim.Stream) { st.Load = 1e-9 }),
		"share -1; at least 1": change(func(st *sim.Stream) { st.Sizes = []sim.Size{{Workers: 1, Share: -1}} }),
	} {
		if _, err := st.Draw(1); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%v, want %q", err, wanted)
		}
	}
	fixed, err := change(func(st *sim.Stream) { st.Min, st.Max = s, s }).Draw(1)
	if err != nil || fixed[0].Work != time.Second.Seconds() {
		t.Errorf("%v, %v: durations from 1 s to 1 s are 1 s", fixed, err)
	}
}
