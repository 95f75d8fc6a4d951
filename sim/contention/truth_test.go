package contention_test

import (
	"fmt"
	"maps"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/contention"
)

var _ interface {
	sim.Truth
	sim.Scaler
} = (*contention.Truth)(nil)

func world(t interface{ Fatal(...any) }, c contention.Config) *contention.Truth {
	truth, err := contention.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return truth
}

// where says on which node each task of a job runs, workers first.
type where struct {
	workload    int
	workers, ps []int
}

func snapshot(t interface{ Fatal(...any) }, c contention.Constants, nodes, perRack int, jobs ...where) *cluster.Snapshot {
	spec := cluster.Spec{Nodes: c.Nodes(nodes, perRack), Workloads: c.Requests()}
	for i, j := range jobs {
		spec.Running = append(spec.Running, running(c, spec.Nodes, fmt.Sprintf("job-%d", i), j)...)
	}
	s, err := cluster.NewSnapshot(spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func running(c contention.Constants, nodes []cluster.Node, name string, j where) []cluster.Running {
	var out []cluster.Running
	at := append(append([]int(nil), j.workers...), j.ps...)
	for i, task := range c.Workloads[j.workload].Tasks(name, len(j.workers), len(j.ps)) {
		out = append(out, cluster.Running{Task: task, Node: nodes[at[i]].Name, Group: name})
	}
	return out
}

func all(s *cluster.Snapshot) []cluster.TaskID {
	var ids []cluster.TaskID
	for _, r := range s.Running() {
		ids = append(ids, r.ID)
	}
	return ids
}

func rates(t interface{ Fatal(...any) }, c contention.Config, s *cluster.Snapshot) map[cluster.TaskID]float64 {
	return maps.Clone(world(t, c).Rates(s, all(s)))
}

// A job of one worker and one parameter server on an idle server goes at 1,
// whatever the strength.
func TestAloneIsOne(t *testing.T) {
	c := contention.Default()
	for w := range c.Workloads {
		s := snapshot(t, c, 1, 0, where{w, []int{0}, []int{0}})
		for _, strength := range []float64{0.7, 1, 1.3, 10} {
			for id, rate := range rates(t, contention.Config{Strength: strength}, s) {
				if math.Abs(rate-1) > 1e-12 {
					t.Errorf("%s of %s at strength %g: %g", id, c.Workloads[w].Name, strength, rate)
				}
			}
		}
	}
}

func TestParameterServerBesideItsWorkerIsFaster(t *testing.T) {
	c := contention.Default()
	for w := range c.Workloads {
		local := rates(t, contention.Config{}, snapshot(t, c, 2, 0, where{w, []int{0}, []int{0}}))["job-0/worker-0"]
		remote := rates(t, contention.Config{}, snapshot(t, c, 2, 0, where{w, []int{0}, []int{1}}))["job-0/worker-0"]
		rack := rates(t, contention.Config{}, snapshot(t, c, 2, 1, where{w, []int{0}, []int{1}}))["job-0/worker-0"]
		if !(local > remote && remote > rack) {
			t.Errorf("%s: local %g, remote %g, in another rack %g", c.Workloads[w].Name, local, remote, rack)
		}
	}
}

// hand is a world whose numbers can be worked out on paper.
func hand() contention.Constants {
	return contention.Constants{
		Format: 1,
		Server: contention.Server{
			Devices: 4, CPUs: 8, Memory: 64, Compute: 2, MemoryBandwidth: 100, TaskMemoryBandwidth: 10,
			PCIe: 10, DevicePCIe: 10, NIC: 1, Disk: 1, Oversubscription: 2,
		},
		Workloads: []contention.Workload{{
			Name: "a", Batch: 10, WorkerCPUs: 2, PSCPUs: 2, Gradients: 1000, Fixed: 1, WorkerCPU: 0.2, UpdateCPU: 2,
		}},
	}
}

// Alone on a server: 1 s fixed, 2 CPU-seconds on 2 CPUs, 2 GB of gradients
// over 10 GB/s of PCIe, and 2 CPU-seconds of update: 1 + 1 + 0.2 + 1 = 3.2 s.
// Apart, 1 GB crosses the network: 4.2 s. Computing takes 2 of 3.2 s, and
// PCIe 0.2.
//
// Beside another such job, which computes 2/3.2 of the time, a phase of
// computing gets 2 CPUs or half of them: 2 (1 - 0.625) + 1 x 0.625 = 1.375.
// PCIe gets 10 or 5 GB/s: 10 - 5 x 0.0625 = 9.6875.
func TestByHand(t *testing.T) {
	c := hand()
	check := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %.9f, want %.9f", name, got, want)
		}
	}
	config := contention.Config{Constants: &c}
	apart := rates(t, config, snapshot(t, c, 2, 0, where{0, []int{0}, []int{1}}))
	check("worker apart", apart["job-0/worker-0"], 3.2/4.2)
	check("ps apart", apart["job-0/ps-0"], 3.2/4.2)
	check("racks apart", rates(t, config, snapshot(t, c, 2, 1, where{0, []int{0}, []int{1}}))["job-0/ps-0"], 3.2/5.2)

	two := rates(t, config, snapshot(t, c, 1, 0, where{0, []int{0}, []int{0}}, where{0, []int{0}, []int{0}}))
	check("two jobs", two["job-0/worker-0"], 3.2/(1+2/1.375+2/9.6875+2/1.375))
	harsh := config
	harsh.Strength = 2 // computing 1.25, at most 1, of the time; PCIe 0.125
	two = rates(t, harsh, snapshot(t, c, 1, 0, where{0, []int{0}, []int{0}}, where{0, []int{0}, []int{0}}))
	check("two jobs, twice as harsh", two["job-1/ps-0"], 3.2/(1+2/1.0+2/9.375+2/1.0))

	// Two workers of one job on a server compute at once: 1 CPU each; on two
	// servers, with 2 x 0.5 GB of gradients from each to the other, 2. The batch
	// is divided: 1 CPU-second each.
	apart = rates(t, config, snapshot(t, c, 2, 0, where{0, []int{0, 1}, []int{0, 1}}))
	together := 1 + 2.0/2 + 4.0/10 + 2.0/2 // 3.4 s
	spread := 1 + 1.0/2 + 2.0/10 + 1.0 + 1.0/2
	check("two workers", apart["job-0/worker-1"], min(together, spread)/spread)
}

// drawWorld puts random jobs on a small cluster, with no regard to capacity.
func drawWorld(t *rapid.T, nodes int) []where {
	c := contention.Default()
	jobs := make([]where, rapid.IntRange(0, 7).Draw(t, "jobs"))
	for i := range jobs {
		at := rapid.SliceOfN(rapid.IntRange(0, nodes-1), 1, 4)
		jobs[i] = where{rapid.IntRange(0, len(c.Workloads)-1).Draw(t, "workload"), at.Draw(t, "workers"), at.Draw(t, "ps")}
	}
	return jobs
}

func TestPropertyNeighboursNeverSpeedUp(t *testing.T) {
	c := contention.Default()
	rapid.Check(t, func(t *rapid.T) {
		nodes, perRack := rapid.IntRange(1, 4).Draw(t, "nodes"), rapid.IntRange(0, 2).Draw(t, "per rack")
		jobs := drawWorld(t, nodes)
		if len(jobs) == 0 {
			return
		}
		strength := rapid.SampledFrom([]float64{0.7, 1, 1.3}).Draw(t, "strength")
		with := rates(t, contention.Config{Strength: strength}, snapshot(t, c, nodes, perRack, jobs...))
		without := rates(t, contention.Config{Strength: strength}, snapshot(t, c, nodes, perRack, jobs[:len(jobs)-1]...))
		for id, rate := range without {
			if with[id] > rate*(1+1e-12) {
				t.Fatalf("%s went at %g, with a neighbour more at %g", id, rate, with[id])
			}
		}
		harsher := rates(t, contention.Config{Strength: strength * 1.3}, snapshot(t, c, nodes, perRack, jobs...))
		for id, rate := range with {
			if harsher[id] > rate*(1+1e-12) {
				t.Fatalf("%s goes at %g, under harsher contention at %g", id, rate, harsher[id])
			}
			if !(rate > 0 && rate <= 1+1e-9) {
				t.Fatalf("%s goes at %g, beyond alone", id, rate)
			}
		}
	})
}

// The truth follows successive snapshots; a new one that sees only the last
// must say the same, bit for bit.
func TestPropertyFollowingIsForgetting(t *testing.T) {
	c := contention.Default()
	rapid.Check(t, func(t *rapid.T) {
		const nodes = 3
		followed := world(t, contention.Config{})
		s := snapshot(t, c, nodes, 2, drawWorld(t, nodes)...)
		for step := range rapid.IntRange(1, 6).Draw(t, "steps") {
			var gone []int
			for i := range s.Running() {
				if rapid.IntRange(0, 3).Draw(t, "gone") == 0 {
					gone = append(gone, i)
				}
			}
			var added []cluster.Running
			for i, j := range drawWorld(t, nodes) {
				added = append(added, running(c, s.Nodes(), fmt.Sprintf("new-%d-%d", step, i), j)...)
			}
			for _, at := range gone { // some move
				if moved := s.Running()[at]; rapid.Bool().Draw(t, "moves") {
					moved.Node = s.Nodes()[rapid.IntRange(0, nodes-1).Draw(t, "to")].Name
					added = append(added, moved)
				}
			}
			next, err := s.Next(gone, added)
			if err != nil {
				t.Fatal(err)
			}
			s = next
			touched := all(s)
			if n := len(touched); n > 0 {
				touched = touched[rapid.IntRange(0, n-1).Draw(t, "from"):]
			}
			want := world(t, contention.Config{}).Rates(s, all(s))
			got := followed.Rates(s, touched)
			for _, id := range touched {
				if _, ok := got[id]; !ok {
					t.Fatalf("no rate of %s", id)
				}
			}
			for id, rate := range got {
				if rate != want[id] {
					t.Fatalf("step %d: %s goes at %v, seen afresh at %v", step, id, rate, want[id])
				}
			}
		}
	})
}

// Moving part of a job changes what it demands on nodes where nothing else
// changed; their jobs are among the answers.
func TestPartialMoveReachesOtherNodes(t *testing.T) {
	c := contention.Default()
	truth := world(t, contention.Config{})
	const vgg = 1
	s := snapshot(t, c, 3, 0, where{vgg, []int{0}, []int{1}}, where{vgg, []int{0}, []int{0}})
	truth.Rates(s, all(s))
	moved := s.Running()[1] // the parameter server of job-0
	moved.Node = s.Nodes()[2].Name
	next, err := s.Next([]int{1}, []cluster.Running{moved})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := truth.Rates(next, []cluster.TaskID{moved.ID})["job-1/worker-0"]; !ok {
		t.Error("the neighbour of a job that moved in part has no new rate")
	}
}

func TestStrangersAndIdlersGoAtOne(t *testing.T) {
	c := contention.Default()
	stranger := cluster.Running{Task: cluster.Task{ID: "x", Workload: "redis"}, Node: "server-0"}
	idle := cluster.Running{Task: cluster.Task{ID: "y", Workload: c.Workloads[0].Name + "/ps"}, Node: "server-0"}
	lone := cluster.Running{Task: cluster.Task{ID: "z", Workload: c.Workloads[0].Name, Role: cluster.Worker}, Node: "server-0"}
	s, err := cluster.NewSnapshot(cluster.Spec{Nodes: c.Nodes(1, 0), Running: []cluster.Running{stranger, idle, lone}})
	if err != nil {
		t.Fatal(err)
	}
	for id, rate := range rates(t, contention.Config{}, s) {
		if math.Abs(rate-1) > 1e-12 {
			t.Errorf("%s goes at %g", id, rate)
		}
	}
}

func TestScale(t *testing.T) {
	truth := world(t, contention.Config{})
	for _, w := range contention.Default().Workloads {
		if one := truth.Scale(w.Name, 3, 3); one != 1 {
			t.Errorf("%s from 3 to 3 workers: %g", w.Name, one)
		}
		if two := truth.Scale(w.Name, 1, 2); !(two > 0.4 && two < 2) {
			t.Errorf("%s from 1 to 2 workers: %g", w.Name, two)
		}
	}
	if got := truth.Scale("redis", 1, 2); got != 1 {
		t.Errorf("a stranger scales by %g", got)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, strength := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := contention.New(contention.Config{Strength: strength}); err == nil {
			t.Errorf("strength %g is taken", strength)
		}
	}
	if _, err := contention.New(contention.Config{Constants: &contention.Constants{}}); err == nil {
		t.Error("an empty world is taken")
	}
}

func BenchmarkRates(b *testing.B) {
	for _, nodes := range []int{6, 100} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			c := contention.Default()
			var jobs []where
			for n := range nodes { // three jobs a server, one of them from the next
				jobs = append(jobs, where{n % 8, []int{n}, []int{n}}, where{(n + 3) % 8, []int{n, n}, []int{n, n}}, where{(n + 5) % 8, []int{n}, []int{(n + 1) % nodes}})
			}
			s := snapshot(b, c, nodes, 0, jobs...)
			truth := world(b, contention.Config{})
			// The last job ends and begins again, beside the jobs of two servers.
			last := len(s.Running()) - 2
			without, err := s.Next([]int{last, last + 1}, nil)
			if err != nil {
				b.Fatal(err)
			}
			touched := all(s)[:12]
			truth.Rates(s, touched)
			for i := 0; b.Loop(); i++ {
				if i%2 == 0 {
					truth.Rates(without, touched)
				} else {
					truth.Rates(s, touched)
				}
			}
		})
	}
}
