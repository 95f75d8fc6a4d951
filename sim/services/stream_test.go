package services_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/place/placetest"
	"github.com/cotenant/cotenant/sim/services"
)

func standard() services.Stream {
	return services.Stream{Capacity: 160, Load: 0.8, Horizon: 60 * time.Hour, Lifetime: time.Hour, Scaling: 1, Workloads: []string{"a", "b", "c", "d"}}
}

// wanted is how many tasks are wanted over time: the mean, the most, and the
// mean at the start.
func wanted(arrivals []services.Arrival, horizon time.Duration) (mean float64, byWorkload map[string]float64, start int) {
	byWorkload = map[string]float64{}
	for _, a := range arrivals {
		for i, t := range a.Tasks {
			share := float64(min(a.Until[i], horizon)-a.Arrival) / float64(horizon)
			mean += share
			byWorkload[t.Workload] += share
			if a.Arrival == 0 {
				start++
			}
		}
	}
	return mean, byWorkload, start
}

// The mean number of wanted tasks is the load's, whatever the options.
func TestStreamsKeepTheLoad(t *testing.T) {
	for name, change := range map[string]func(*services.Stream){
		"standard":    func(*services.Stream) {},
		"no limit":    func(s *services.Stream) { s.Most = math.Inf(1) },
		"nearly full": func(s *services.Stream) { s.Load = 0.95 },
		"log-uniform": func(s *services.Stream) { s.Range = 30 },
		"all alike":   func(s *services.Stream) { s.Range = 1 },
		"no scaling":  func(s *services.Stream) { s.Scaling = 0 },
		"one size":    func(s *services.Stream) { s.Sizes = []services.Size{{Replicas: 3, Share: 7}} },
		"zipf, drift": func(s *services.Stream) { s.Mix, s.Drift = services.Zipf, 10*time.Hour },
	} {
		s := standard()
		change(&s)
		sum, start := 0.0, 0.0
		const seeds = 8
		for seed := range uint64(seeds) {
			arrivals, err := s.Draw(seed)
			if err != nil {
				t.Fatal(err)
			}
			mean, _, first := wanted(arrivals, s.Horizon)
			sum += mean / seeds
			start += float64(first) / seeds
		}
		want := s.Load * float64(s.Capacity)
		if math.Abs(sum/want-1) > 0.06 || math.Abs(start/want-1) > 0.01 {
			t.Errorf("%s: %.1f tasks wanted on average, %.1f at the start; want %.1f", name, sum, start, want)
		}
	}
}

func TestStreamsKeepBelowTheMost(t *testing.T) {
	s := standard()
	s.Load, s.Most = 0.4, 0.5
	arrivals, err := s.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	change := map[time.Duration]int{}
	var times []time.Duration
	for _, a := range arrivals {
		for i := range a.Tasks {
			for _, e := range []struct {
				at time.Duration
				by int
			}{{a.Arrival, 1}, {a.Until[i], -1}} {
				if _, ok := change[e.at]; !ok {
					times = append(times, e.at)
				}
				change[e.at] += e.by
			}
		}
	}
	for _, at := range times {
		n := 0
		for _, a := range arrivals {
			for i := range a.Tasks {
				if a.Arrival <= at && a.Until[i] > at {
					n++
				}
			}
		}
		if n > 80 {
			t.Fatalf("at %s %d tasks are wanted; at most 80 may be", at, n)
		}
	}
}

func TestMixes(t *testing.T) {
	s := standard()
	s.Sizes = []services.Size{{Replicas: 1, Share: 1}}
	s.Horizon = 400 * time.Hour
	shares := func() []float64 {
		arrivals, err := s.Draw(3)
		if err != nil {
			t.Fatal(err)
		}
		mean, by, _ := wanted(arrivals, s.Horizon)
		var out []float64
		for _, w := range s.Workloads {
			out = append(out, by[w]/mean)
		}
		return out
	}
	for _, x := range shares() {
		if math.Abs(x-0.25) > 0.02 {
			t.Errorf("uniform: share %.3f", x)
		}
	}
	s.Mix = services.Zipf
	total := 1 + 1./2 + 1./3 + 1./4
	for rank := 1; rank <= 4; rank++ {
		want := 1 / float64(rank) / total
		found := false
		for _, x := range shares() {
			found = found || math.Abs(x-want) < 0.02
		}
		if !found {
			t.Errorf("zipf: no workload with a share of about %.3f in %.3v", want, shares())
		}
	}
	// Over many mixes, drift evens them out.
	s.Drift = 4 * time.Hour
	for _, x := range shares() {
		if math.Abs(x-0.25) > 0.06 {
			t.Errorf("zipf with drift: share %.3f", x)
		}
	}
}

func TestSameSeedSameRun(t *testing.T) {
	memory := &services.Memory{}
	run := func(seed uint64) string {
		s := standard()
		s.Horizon = 5 * time.Hour
		arrivals, err := s.Draw(seed)
		if err != nil {
			t.Fatal(err)
		}
		p, err := baseline.New("spread", baseline.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := services.Run(services.Config{
			Cluster: cluster.Spec{Nodes: cluster.Nodes("any", 20, 0, 8)}, Arrivals: arrivals, Truth: placetest.Model{}, Policy: p,
			Seed: seed, Horizon: s.Horizon, MTBF: 10 * time.Hour, Repair: time.Hour, Samples: 5, Memory: memory,
		})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%+v", r)
	}
	a := run(1) // with an empty memory, then with a full one, then with none
	b := run(1)
	memory = nil
	if c := run(1); a != b || a != c {
		t.Errorf("runs with one seed differ:\n%s\n%s\n%s", a, b, c)
	}
	if run(1) == run(2) {
		t.Error("two seeds give the same run")
	}
}

func TestStreamsRefuseNonsense(t *testing.T) {
	for want, change := range map[string]func(*services.Stream){
		"capacity of 0":      func(s *services.Stream) { s.Capacity = 0 },
		"load 0":             func(s *services.Stream) { s.Load = 0 },
		"load NaN":           func(s *services.Stream) { s.Load = math.NaN() },
		"load 1":             func(s *services.Stream) { s.Load = 1 },
		"at most -1":         func(s *services.Stream) { s.Most = -1 },
		"horizon 0s":         func(s *services.Stream) { s.Horizon = 0 },
		"mean lifetime -1ns": func(s *services.Stream) { s.Lifetime = -1 },
		"range of 0.5":       func(s *services.Stream) { s.Range = 0.5 },
		"scales -1":          func(s *services.Stream) { s.Scaling = -1 },
		"no workloads":       func(s *services.Stream) { s.Workloads = nil },
		`mix "x"`:            func(s *services.Stream) { s.Mix = "x" },
		"0 replicas":         func(s *services.Stream) { s.Sizes = []services.Size{{Share: 1}} },
		"add up to 0":        func(s *services.Stream) { s.Sizes = []services.Size{{Replicas: 1}} },
		"tasks would come":   func(s *services.Stream) { s.Lifetime, s.Horizon = time.Microsecond, 24*time.Hour },
		"some 1.28e+11":      func(s *services.Stream) { s.Scaling, s.Horizon = 1e6, 1000*s.Lifetime },
		"out of reach":       func(s *services.Stream) { s.Load, s.Sizes = 0.99, []services.Size{{Replicas: 100, Share: 1}} },
	} {
		s := standard()
		change(&s)
		if _, err := s.Draw(1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

func TestRunRefusesNonsense(t *testing.T) {
	for want, change := range map[string]func(*services.Config){
		"no truth":         func(c *services.Config) { c.Truth = nil },
		"no policy":        func(c *services.Config) { c.Policy = nil },
		"no nodes":         func(c *services.Config) { c.Cluster = cluster.Spec{} },
		"1 tasks run":      func(c *services.Config) { c.Cluster.Running = make([]cluster.Running, 1) },
		"horizon 0s":       func(c *services.Config) { c.Horizon = 0 },
		"warm-up of 1m0s":  func(c *services.Config) { c.Warmup = c.Horizon },
		"-1 samples":       func(c *services.Config) { c.Samples = -1 },
		"would fail some":  func(c *services.Config) { c.MTBF = 1 },
		"time of repair":   func(c *services.Config) { c.Repair = -1 },
		"no name":          func(c *services.Config) { c.Arrivals[0].Name = "" },
		"times of leaving": func(c *services.Config) { c.Arrivals[0].Until = nil },
		"no workload":      func(c *services.Config) { c.Arrivals[0].Tasks[0].Workload = "" },
		"has no ID":        func(c *services.Config) { c.Arrivals[0].Tasks[0].ID = "" },
		"requests of its":  func(c *services.Config) { c.Arrivals[0].Tasks[0].Devices = 1 },
		"leaves at 0s":     func(c *services.Config) { c.Arrivals[0].Until[0] = 0 },
		"arrives at -1ns":  func(c *services.Config) { c.Arrivals[0].Arrival = -1 },
		"comes twice":      func(c *services.Config) { c.Arrivals = append(c.Arrivals, c.Arrivals[0]) },
	} {
		c := services.Config{Cluster: two(1), Arrivals: []services.Arrival{group("a", 1, 0, 10)}, Truth: shared{}, Policy: &firstFit{}, Horizon: time.Minute}
		change(&c)
		if _, err := services.Run(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
