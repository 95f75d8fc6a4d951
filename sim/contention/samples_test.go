package contention_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/contention"
)

func measure(t *testing.T, c contention.SamplesConfig) []history.Sample {
	t.Helper()
	samples, err := world(t, contention.Config{}).Samples(c)
	if err != nil {
		t.Fatal(err)
	}
	return samples
}

func TestSamplesAreValid(t *testing.T) {
	c := contention.Default()
	asked := map[string]cluster.Resources{}
	for _, w := range c.Requests() {
		asked[w.Name] = w.Requests
	}
	samples := measure(t, contention.SamplesConfig{Colocations: 500, Seed: 1})
	full := 0
	for i, s := range samples {
		if err := s.Validate(); err != nil {
			t.Fatalf("sample %d: %v", i, err)
		}
		if p, ok := s.Performance(); !ok || p > 1+1e-9 || p <= 0 {
			t.Errorf("sample %d of %s in %s: performance %g", i, s.Workload, s.Colocation.Key(), p)
		}
		workers, cpu := 0, int64(0)
		for w, n := range s.Colocation {
			if !strings.HasSuffix(w, "/ps") {
				workers += n
			}
			cpu += int64(n) * asked[w][cluster.CPU]
		}
		if workers > c.Server.Devices || cpu > int64(c.Server.CPUs*1000) {
			t.Errorf("%s does not fit a server", s.Colocation.Key())
		}
		if cpu == int64(c.Server.CPUs*1000) {
			full++
		}
	}
	if full == 0 {
		t.Error("no full server was measured")
	}
	if again := measure(t, contention.SamplesConfig{Colocations: 500, Seed: 1}); !reflect.DeepEqual(again, samples) {
		t.Error("the same seed measured otherwise")
	}
}

// What the profiler measures is what the truth says of the same placement.
func TestSamplesAgreeWithTruth(t *testing.T) {
	c := contention.Default()
	index := map[string]int{}
	for i, w := range c.Workloads {
		index[w.Name] = i
	}
	seen := 0
	for _, s := range measure(t, contention.SamplesConfig{Colocations: 4000, Seed: 2, MaxWorkers: 1, MaxPS: 1}) {
		// Workers whose parameter server is elsewhere: each is a job of its own.
		var jobs []where
		for _, w := range s.Colocation.Workloads() {
			at, worker := index[w]
			if !worker {
				jobs = nil
				break
			}
			for range s.Colocation[w] {
				jobs = append(jobs, where{at, []int{0}, []int{1 + len(jobs)}})
			}
		}
		if len(jobs) < 2 {
			continue
		}
		seen++
		snap := snapshot(t, c, 1+len(jobs), 0, jobs...)
		got := rates(t, contention.Config{}, snap)
		for i, j := range jobs {
			if c.Workloads[j.workload].Name != s.Workload {
				continue
			}
			alone := rates(t, contention.Config{}, snapshot(t, c, 2, 0, where{j.workload, []int{0}, []int{1}}))["job-0/worker-0"]
			want := got[cluster.TaskID(fmt.Sprintf("job-%d/worker-0", i))] / alone
			if p, _ := s.Performance(); math.Abs(p-want) > 1e-9 {
				t.Errorf("%s in %s: measured %g, in truth %g", s.Workload, s.Colocation.Key(), p, want)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d co-locations of workers alone", seen)
	}
}

func TestNoiseHasItsDeviation(t *testing.T) {
	exact := measure(t, contention.SamplesConfig{Colocations: 1, Seed: 3})
	var ratios []float64
	for seed := range uint64(3) {
		clean := measure(t, contention.SamplesConfig{Colocations: 400, Seed: seed})
		if len(clean) < len(exact) {
			t.Fatal("nothing measured")
		}
		for _, s := range measure(t, contention.SamplesConfig{Colocations: 400, Seed: seed, Noise: 0.05}) {
			// Alone, a task's value and its value alone are the same but for noise.
			if s.Colocation.Alone() {
				ratios = append(ratios, s.Value/s.Alone-1)
			}
		}
	}
	mean, square := 0.0, 0.0
	for _, r := range ratios {
		mean += r / float64(len(ratios))
		square += r * r / float64(len(ratios))
	}
	// The ratio of two measurements deviates by the root of 2 as much.
	if sd := math.Sqrt(square); len(ratios) < 50 || math.Abs(sd-0.05*math.Sqrt2) > 0.02 || math.Abs(mean) > 0.03 {
		t.Errorf("%d ratios: mean %g, sd %g; want 0 and %g", len(ratios), mean, sd, 0.05*math.Sqrt2)
	}
}

func TestSamplesRefuse(t *testing.T) {
	for _, c := range []contention.SamplesConfig{{Colocations: -1}, {Noise: -1}, {Noise: math.NaN()}, {MaxWorkers: -1}, {MaxPS: -1}} {
		if _, err := world(t, contention.Config{}).Samples(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

func TestAloneSamples(t *testing.T) {
	samples := world(t, contention.Config{}).AloneSamples(4, 4)
	if want := 8 * 4 * 4 * 2; len(samples) != want {
		t.Fatalf("%d samples, want %d", len(samples), want)
	}
	for i, s := range samples {
		if err := s.Validate(); err != nil {
			t.Fatalf("sample %d: %v", i, err)
		}
	}
	rates := history.NewAloneRates(samples)
	for _, w := range contention.Default().Workloads {
		for workers := 2; workers <= 4; workers++ {
			node, _, ok := rates.Rate("", w.Name, workers, cluster.SpanNode)
			apart, _, ok2 := rates.Rate("", w.Name, workers, cluster.SpanApart)
			if !ok || !ok2 || !(node > apart) {
				t.Errorf("%s with %d workers: %g on a node, %g apart", w.Name, workers, node, apart)
			}
		}
	}
}

func TestJobsMakeTheirLoad(t *testing.T) {
	c := contention.Default()
	config := contention.JobsConfig{Jobs: 4000, Seed: 7, Load: 0.9, Devices: 24}
	jobs, err := c.Jobs(config)
	if err != nil {
		t.Fatal(err)
	}
	work, kinds, shapes := 0.0, map[string]int{}, map[[2]int]int{}
	for _, j := range jobs {
		shape := [2]int{}
		for _, task := range j.Tasks {
			if task.Role == cluster.Worker {
				shape[0]++
			} else {
				shape[1]++
			}
		}
		kinds[j.Tasks[0].Workload]++
		shapes[shape]++
		work += j.Work * float64(shape[0])
	}
	if load := work / 24 / jobs[len(jobs)-1].Arrival.Seconds(); math.Abs(load-0.9) > 0.05 {
		t.Errorf("load %g, want 0.9", load)
	}
	if len(kinds) != 8 || len(shapes) != 16 {
		t.Errorf("%d workloads, %d shapes; want 8 and 4 x 4", len(kinds), len(shapes))
	}
	config.Load = 0.45
	slower, err := c.Jobs(config)
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(jobs, func(j sim.Job) bool { return len(j.Tasks) == 8 }); !reflect.DeepEqual(jobs[i].Tasks, slower[i].Tasks) {
		t.Error("another load draws other jobs")
	}
	for _, bad := range []contention.JobsConfig{{Jobs: 1, Load: 1}, {Jobs: 1, Devices: 1}, {Load: 1, Devices: 1, MaxPS: -1}, {Jobs: -1, Load: 1, Devices: 1}} {
		if _, err := c.Jobs(bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
