package measured_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/sim/measured"
)

func alone(class, workload string, workers int, span cluster.Span, rate float64) history.Sample {
	return history.Sample{
		Class: class, Scope: history.ScopeDevice, Colocation: cluster.Colocation{workload: 1}, Workload: workload,
		Workers: workers, Span: span, Metric: history.Rate, Value: rate, Alone: rate,
	}
}

func beside(class, workload, other string, rate, alone float64) history.Sample {
	c := cluster.Colocation{workload: 1}
	c[other]++
	return history.Sample{
		Class: class, Scope: history.ScopeDevice, Colocation: c, Workload: workload,
		Metric: history.Rate, Value: rate, Alone: alone,
	}
}

// table is three workloads on two classes; "big" fits beside nothing on slow.
func table() []history.Sample {
	return []history.Sample{
		alone("fast", "lm", 1, "", 10), alone("fast", "lm", 2, cluster.SpanNode, 18), alone("fast", "lm", 2, cluster.SpanApart, 12),
		alone("fast", "a3c", 1, "", 4), alone("fast", "big", 1, "", 2),
		alone("slow", "lm", 1, "", 5), alone("slow", "a3c", 1, "", 3), alone("slow", "big", 1, "", 0.5),
		beside("fast", "lm", "lm", 6, 10), beside("fast", "lm", "a3c", 8, 10), beside("fast", "a3c", "lm", 2, 4),
		beside("fast", "a3c", "a3c", 3, 0), beside("fast", "lm", "big", 2, 10), beside("fast", "big", "lm", 1, 2),
		beside("slow", "lm", "lm", 2, 5), beside("slow", "lm", "a3c", 4, 5), beside("slow", "a3c", "lm", 1.5, 3),
		beside("slow", "a3c", "big", 0, 3), beside("slow", "big", "a3c", 0, 0.5), beside("slow", "big", "lm", 0, 0.5),
	}
}

func nodes() []cluster.Node {
	return append(cluster.Nodes("fast", 2, 2, 0), cluster.Nodes("slow", 2, 2, 0)...)
}

// runs is a worker on a device: "job id workload node device".
func runs(group, id, workload, node string, on ...int) cluster.Running {
	return cluster.Running{
		Task: cluster.Task{ID: cluster.TaskID(id), Workload: workload, Role: cluster.Worker, Devices: len(on)}, Node: node, On: on, Group: group,
	}
}

func snapshot(t testing.TB, running ...cluster.Running) *cluster.Snapshot {
	t.Helper()
	s, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes(), Running: running})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func truth(t testing.TB, classes ...string) *measured.Truth {
	t.Helper()
	w, err := measured.New(table(), classes...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestRatesByHand(t *testing.T) {
	ps := runs("j3", "ps", "lm/ps", "slow-0")
	ps.Role, ps.Devices = cluster.ParameterServer, 0
	for _, c := range []struct {
		name    string
		running []cluster.Running
		want    map[cluster.TaskID]float64
		scaled  int
	}{
		{"alone on the fastest", []cluster.Running{runs("", "a", "lm", "fast-0", 0)}, map[cluster.TaskID]float64{"a": 1}, 0},
		{"alone on the slow", []cluster.Running{runs("", "a", "lm", "slow-0", 1)}, map[cluster.TaskID]float64{"a": 0.5}, 0},
		{
			"a pair, and one on the next device",
			[]cluster.Running{runs("j1", "a", "lm", "fast-0", 0), runs("j2", "b", "a3c", "fast-0", 0), runs("j3", "c", "lm", "fast-0", 1)},
			map[cluster.TaskID]float64{"a": 0.8, "b": 0.5, "c": 1},
			0,
		},
		{"two alike, rate alone from the table", []cluster.Running{runs("j1", "a", "a3c", "fast-1", 1), runs("j2", "b", "a3c", "fast-1", 1)}, map[cluster.TaskID]float64{"a": 0.75, "b": 0.75}, 0},
		{"a pair on the slow", []cluster.Running{runs("j1", "a", "lm", "slow-1", 1), runs("j2", "b", "a3c", "slow-1", 1)}, map[cluster.TaskID]float64{"a": 0.4, "b": 0.375}, 0},
		{"a gang on one node", []cluster.Running{runs("j1", "a", "lm", "fast-0", 0), runs("j1", "b", "lm", "fast-0", 1)}, map[cluster.TaskID]float64{"a": 1, "b": 1}, 0},
		{"a gang apart", []cluster.Running{runs("j1", "a", "lm", "fast-0", 0), runs("j1", "b", "lm", "fast-1", 1)}, map[cluster.TaskID]float64{"a": 12.0 / 18, "b": 12.0 / 18}, 0},
		{
			"a gang apart, one of it in a pair",
			[]cluster.Running{runs("j1", "a", "lm", "fast-0", 0), runs("j1", "b", "lm", "fast-1", 1), runs("j2", "c", "a3c", "fast-1", 1)},
			map[cluster.TaskID]float64{"a": 12.0 / 18, "b": 0.8 * 12 / 18, "c": 0.5},
			0,
		},
		{"a gang of a size that slow lacks", []cluster.Running{runs("j1", "a", "lm", "slow-0", 0), runs("j1", "b", "lm", "slow-0", 1)}, map[cluster.TaskID]float64{"a": 10.0 / 18, "b": 10.0 / 18}, 1},
		{
			"a gang over two classes",
			[]cluster.Running{runs("j1", "a", "lm", "slow-0", 0), runs("j1", "b", "lm", "fast-0", 1)},
			map[cluster.TaskID]float64{"a": 10.0 / 18, "b": 12.0 / 18},
			1,
		},
		{"parameter servers do not count", []cluster.Running{runs("j3", "a", "lm", "fast-0", 0), ps}, map[cluster.TaskID]float64{"a": 1, "ps": 1}, 0},
		{"a task on two devices, one shared", []cluster.Running{runs("j1", "a", "lm", "fast-0", 0, 1), runs("j2", "b", "a3c", "fast-0", 1)}, map[cluster.TaskID]float64{"a": 0.8, "b": 0.5}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := truth(t)
			var ids []cluster.TaskID
			for _, r := range c.running {
				ids = append(ids, r.ID)
			}
			got := w.Rates(snapshot(t, c.running...), ids)
			for id, want := range c.want {
				if math.Abs(got[id]-want) > 1e-15 {
					t.Errorf("task %s: progress %g; want %g", id, got[id], want)
				}
			}
			if len(got) != len(c.want) || w.Err() != nil || w.Scaled() != c.scaled || w.Calls() != 1 {
				t.Errorf("%d rates, error %v, %d scaled, %d calls", len(got), w.Err(), w.Scaled(), w.Calls())
			}
		})
	}
}

func TestWhatCannotBe(t *testing.T) {
	for _, c := range []struct {
		name    string
		running []cluster.Running
		want    string
	}{
		{"three on a device", []cluster.Running{runs("j1", "a", "lm", "fast-0", 1), runs("j2", "b", "lm", "fast-0", 1), runs("j3", "c", "lm", "fast-0", 1)}, `device 1 of node "fast-0" holds 3 tasks`},
		{"a misfit", []cluster.Running{runs("j1", "a", "big", "slow-0", 0), runs("j2", "b", "a3c", "slow-0", 0)}, "do not fit on one slow together: a3c+big"},
		{"a misfit of which one side is measured", []cluster.Running{runs("j1", "a", "lm", "slow-0", 0), runs("j2", "b", "big", "slow-0", 0)}, "do not fit on one slow together: big+lm"},
		{"a pair that nobody measured", []cluster.Running{runs("j1", "a", "a3c", "fast-0", 0), runs("j2", "b", "big", "fast-0", 0)}, `the performance of "a3c" in a3c+big on class "fast" is unknown`},
		{"an unknown workload", []cluster.Running{runs("j1", "a", "vgg", "fast-0", 0)}, `workload "vgg" of task "a" has no rate alone on class "fast"`},
		{"beside an unknown workload", []cluster.Running{runs("j1", "a", "lm", "fast-0", 0), runs("j2", "b", "vgg", "fast-0", 0)}, `the performance of "lm" in lm+vgg`},
		{"no device", []cluster.Running{runs("j1", "a", "lm", "fast-0")}, `task "a" of workload "lm" runs on no device`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := truth(t)
			if got := w.Rates(snapshot(t, c.running...), []cluster.TaskID{"a"}); !math.IsNaN(got["a"]) {
				t.Errorf("progress %g; want NaN", got["a"])
			}
			if w.Err() == nil || !strings.Contains(w.Err().Error(), c.want) {
				t.Errorf("error %v; want %q", w.Err(), c.want)
			}
		})
	}
}

func TestReferenceAndScale(t *testing.T) {
	both, slow := truth(t), truth(t, "slow")
	if r := both.Reference("lm", 2); r != 18 {
		t.Errorf("reference of lm with 2 workers: %g; want 18", r)
	}
	if r := slow.Reference("lm", 2); r != 10 {
		t.Errorf("reference of lm with 2 workers on slow only: %g; want 10", r)
	}
	if s := both.Scale("lm", 1, 2); s != 1.8 {
		t.Errorf("scale %g; want 1.8", s)
	}
	if s := both.Scale("vgg", 1, 2); s != 1 {
		t.Errorf("scale of the unknown %g; want 1", s)
	}
	if r := slow.Rates(snapshot(t, runs("", "a", "lm", "slow-0", 0)), []cluster.TaskID{"a"}); r["a"] != 1 {
		t.Errorf("progress on the fastest class that jobs may use: %g; want 1", r["a"])
	}
	if _, err := measured.New(table(), "p100"); err == nil || !strings.Contains(err.Error(), "p100") {
		t.Errorf("a class without rates: %v", err)
	}
	if _, err := measured.New(table()[8:9]); err == nil || !strings.Contains(err.Error(), "no rate alone") {
		t.Errorf("no rates alone: %v", err)
	}
}

// A learned world is the measured one where the model is the table.
func TestLearnedWorldOfTheTable(t *testing.T) {
	fit, misfits := history.SplitMisfits(table())
	for i := range fit {
		if fit[i].Alone == 0 {
			fit[i].Alone = 4 // the table's own, of a3c on fast
		}
	}
	m, err := interference.Fit(interference.KindTable, fit, interference.Options{})
	if err != nil {
		t.Fatal(err)
	}
	learned, err := measured.FromModel(m, history.NewAloneRates(fit), misfits)
	if err != nil {
		t.Fatal(err)
	}
	real := truth(t)
	for _, class := range []string{"fast", "slow"} {
		for _, a := range []string{"lm", "a3c", "big"} {
			for _, b := range []string{"lm", "a3c", "big"} {
				s := snapshot(t, runs("j1", "a", a, class+"-0", 0), runs("j2", "b", b, class+"-0", 0))
				x, y := real.Rates(s, []cluster.TaskID{"a"})["a"], learned.Rates(s, []cluster.TaskID{"a"})["a"]
				if x != y && !(math.IsNaN(x) && math.IsNaN(y)) {
					t.Errorf("%s beside %s on %s: %g, learned %g", a, b, class, x, y)
				}
			}
		}
	}
	if real.Calls() != 18 || learned.Calls() != 18 || learned.Fork().Calls() != 0 {
		t.Errorf("%d and %d calls; want 18 of each", real.Calls(), learned.Calls())
	}
}

// naive is the definition, anew for each snapshot.
func naive(rates *history.AloneRates, perf map[string]float64, s *cluster.Snapshot, id cluster.TaskID) float64 {
	var me cluster.Running
	for _, r := range s.Running() {
		if r.ID == id {
			me = r
		}
	}
	workers, homes, others := 0, map[string]bool{}, []string{}
	for _, r := range s.Running() {
		if r.Group == me.Group {
			workers++
			homes[r.Node] = true
		}
		if r.ID != id && r.Node == me.Node && r.On[0] == me.On[0] {
			others = append(others, r.Workload)
		}
	}
	span := cluster.SpanNode
	if len(homes) > 1 {
		span = cluster.SpanApart
	}
	at, _ := s.NodeIndex(me.Node)
	class := s.Nodes()[at].Class
	p, _ := rates.Progress(class, me.Workload, workers, span, rates.Classes())
	switch len(others) {
	case 0:
		return p
	case 1:
		if q, ok := perf[class+" "+me.Workload+" "+others[0]]; ok {
			return p * q
		}
	}
	return math.NaN()
}

// However the cluster changes, the truth that follows it says what one that
// sees it for the first time says, and what the plain definition says.
func TestFollowsAnyChange(t *testing.T) {
	samples := table()
	rates := history.NewAloneRates(samples)
	perf := map[string]float64{}
	for _, s := range samples {
		if s.Colocation.Tasks() == 2 && s.Value > 0 {
			other := s.Workload
			for o := range s.Colocation {
				if o != s.Workload {
					other = o
				}
			}
			a, _, _ := rates.Rate(s.Class, s.Workload, 1, "")
			perf[s.Class+" "+s.Workload+" "+other] = s.Value / a
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := truth(t)
		s := snapshot(t)
		chain, seen, serial := cluster.NewChain(s), []*cluster.Snapshot{s}, 0
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			var gone []int
			var moved []cluster.Running
			for i, r := range s.Running() {
				switch rapid.IntRange(0, 5).Draw(rt, "fate") {
				case 0:
					gone = append(gone, i)
				case 1:
					gone = append(gone, i)
					r.Node = rapid.SampledFrom(nodes()).Draw(rt, "node").Name
					r.On = []int{rapid.IntRange(0, 1).Draw(rt, "device")}
					moved = append(moved, r)
				}
			}
			for range rapid.IntRange(0, 2).Draw(rt, "jobs") {
				serial++
				workload := rapid.SampledFrom([]string{"lm", "a3c", "big"}).Draw(rt, "workload")
				for i := range rapid.IntRange(1, 3).Draw(rt, "workers") {
					moved = append(moved, runs(fmt.Sprint("job", serial), fmt.Sprint("job", serial, "/", i), workload,
						rapid.SampledFrom(nodes()).Draw(rt, "node").Name, rapid.IntRange(0, 1).Draw(rt, "device")))
				}
			}
			var err error
			switch rapid.IntRange(0, 9).Draw(rt, "snapshot") {
			case 0: // of the same nodes, in another order
				all := slices.Clone(s.Running())
				slices.Reverse(all)
				if s, err = cluster.NewSnapshot(cluster.Spec{Nodes: s.Nodes(), Running: all}); err != nil {
					rt.Fatal(err)
				}
				chain = cluster.NewChain(s)
			case 1: // of other nodes
				s = snapshot(t, s.Running()...)
				chain = cluster.NewChain(s)
			case 2, 3, 4: // in which tasks only begin, if any is new
				gone, moved = nil, slices.DeleteFunc(moved, func(r cluster.Running) bool {
					return slices.ContainsFunc(s.Running(), func(o cluster.Running) bool { return o.ID == r.ID })
				})
				fallthrough
			default:
				if s, err = chain.Next(gone, moved); err != nil {
					rt.Fatal(err)
				}
			}
			if past := rapid.SampledFrom(seen).Draw(rt, "past"); rapid.IntRange(0, 4).Draw(rt, "look back") == 0 {
				w.Rates(past, nil)
			}
			seen = append(seen, s)
			var ids []cluster.TaskID
			for _, r := range s.Running() {
				ids = append(ids, r.ID)
			}
			got := w.Rates(s, ids)
			anew := truth(t).Rates(s, ids)
			for _, id := range ids {
				want := naive(rates, perf, s, id)
				same := func(x float64) bool { return math.Abs(x-want) < 1e-12 || math.IsNaN(x) && math.IsNaN(want) }
				if !same(got[id]) || !same(anew[id]) {
					rt.Fatalf("task %s: %g following, %g at first sight, %g by definition", id, got[id], anew[id], want)
				}
			}
		}
	})
}
