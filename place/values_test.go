package place_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/placetest"
)

// Workload numbers need not follow names: Predict's rows do.
var workloads = []string{"c", "a", "d", "b"}

var objectives = []place.Objective{
	{},
	place.MeanPerformance, place.WorstPerformance, place.TailLatency, place.NodesUsed,
	{Mean: 2, Worst: 0.5, P99: 0.25, Nodes: 0.01},
}

func drawModel(t *rapid.T) placetest.Model {
	return placetest.Model{
		Names:     []string{"", "fast"},
		Silence:   rapid.SampledFrom([]uint64{0, 3}).Draw(t, "silence"),
		NoLatency: rapid.SampledFrom([][]string{nil, {"d"}, {"a", "b"}}).Draw(t, "without latency"),
	}
}

// TestPropertyNumbering: a config is the multiset that led to it, whatever the
// way, and Prev goes back.
func TestPropertyNumbering(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := place.NewValues(placetest.Model{}, place.Objective{}, workloads, []int{9, 9, 9, 9}, 0)
		seen := map[string]place.Config{}
		for range rapid.IntRange(1, 5).Draw(t, "walks") {
			class := rapid.SampledFrom([]string{"", "fast"}).Draw(t, "class")
			c, counts := v.Empty(class), make([]int, len(workloads))
			for range rapid.IntRange(0, 12).Draw(t, "steps") {
				w := rapid.IntRange(0, len(workloads)-1).Draw(t, "workload")
				if counts[w] > 0 && rapid.Bool().Draw(t, "less") {
					before := c
					c = v.Prev(c, w)
					counts[w]--
					if v.Next(c, w) != before {
						t.Fatal("Next does not undo Prev")
					}
				} else {
					before := c
					c = v.Next(c, w)
					counts[w]++
					if v.Prev(c, w) != before {
						t.Fatal("Prev does not undo Next")
					}
				}
				want := cluster.Colocation{}
				for w, n := range counts {
					if n > 0 {
						want[workloads[w]] = n
					}
					if got := v.Counts(c)[w]; int(got) != n {
						t.Fatalf("%d of workload %d, want %d", got, w, n)
					}
				}
				key := class + "|" + want.Key()
				if got := v.Colocation(c).Key(); got != want.Key() || v.Class(c) != class {
					t.Fatalf("config of %q on %q, want %q", got, v.Class(c), key)
				}
				if id, ok := seen[key]; ok && id != c {
					t.Fatalf("%s is config %d and %d", key, id, c)
				}
				seen[key] = c
				if v.Of(class, counts) != c {
					t.Fatalf("Of %v is another config", counts)
				}
				if int(c) >= v.Len() {
					t.Fatalf("config %d of %d", c, v.Len())
				}
			}
		}
	})
}

// plainValue computes a Value from the model's answers alone.
func plainValue(m interference.Model, o place.Objective, class string, c cluster.Colocation, total map[string]int, k float64) place.Value {
	o = o.Or()
	tasks, tails := 0, 0
	latency := map[string]bool{}
	for w, n := range total {
		tasks += n
		for _, known := range m.Classes() {
			latency[w] = latency[w] || m.Predict(known, history.P99, []cluster.Colocation{{w: 1}})[0][0].Known
		}
		if latency[w] {
			tails += n
		}
	}
	out := place.Value{Worst: math.Inf(1), Known: true, Measured: true}
	rate := m.Predict(class, history.Rate, []cluster.Colocation{c})[0]
	tail := m.Predict(class, history.P99, []cluster.Colocation{c})[0]
	use := func(e interference.Estimate, sign float64) float64 {
		out.Known = out.Known && e.Known
		out.Measured = out.Measured && e.Measured
		if e.Measured {
			return e.Value
		}
		return e.Value + sign*k*e.Std
	}
	for i, w := range c.Workloads() {
		for range c[w] {
			if o.Mean > 0 || o.Worst > 0 {
				p := max(0, use(rate[i], -1))
				out.Sum += o.Mean * p / float64(tasks)
				if o.Worst > 0 {
					out.Worst = min(out.Worst, p)
				}
			}
			if o.P99 > 0 && latency[w] {
				out.Sum -= o.P99 * use(tail[i], 1) / float64(tails)
			}
		}
	}
	if c.Tasks() > 0 {
		out.Sum -= o.Nodes
	}
	if !out.Known {
		out.Sum, out.Worst = math.Inf(-1), math.Inf(-1)
	}
	return out
}

func near(a, b float64) bool { return a == b || math.Abs(a-b) < 1e-9 }

func TestPropertyValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		o := rapid.SampledFrom(objectives).Draw(t, "objective")
		k := rapid.SampledFrom([]float64{0, 1.5}).Draw(t, "pessimism")
		total := rapid.SliceOfN(rapid.IntRange(0, 4), 4, 4).Draw(t, "total")
		byName := map[string]int{}
		for w, n := range total {
			byName[workloads[w]] = n
		}
		v := place.NewValues(m, o, workloads, total, k)
		counts := make([]int, len(workloads))
		for w := range counts {
			counts[w] = rapid.IntRange(0, total[w]).Draw(t, "count")
		}
		for _, class := range []string{"", "fast", "unheard of"} {
			c := v.Of(class, counts)
			got, want := v.Value(c), plainValue(m, o, class, v.Colocation(c), byName, k)
			if !near(got.Sum, want.Sum) || !near(got.Worst, want.Worst) || got.Known != want.Known || got.Known && got.Measured != want.Measured {
				t.Fatalf("%s of %q on %q: %+v, want %+v", o, v.Colocation(c).Key(), class, got, want)
			}
		}
		var without []string
		if o.P99 > 0 {
			without = slices.Sorted(slices.Values(m.NoLatency))
		} else {
			without = slices.Sorted(slices.Values(workloads))
		}
		if got := v.WithoutLatency(); !slices.Equal(got, without) {
			t.Fatalf("without latency: %v, want %v", got, without)
		}
	})
}

// TestFillAsksOnce: however often a value is wanted, the model is asked once,
// and many co-locations go into one call.
func TestFillAsksOnce(t *testing.T) {
	m := &counting{}
	v := place.NewValues(m, place.Objective{}, workloads, []int{9, 9, 9, 9}, 0)
	var configs []place.Config
	for n := range 5 {
		configs = append(configs, v.Of("any", []int{n, 1, 0, 0}))
	}
	v.Fill(configs)
	for _, c := range configs {
		v.Value(c)
	}
	v.Fill(append(configs, configs...))
	if m.calls != 1 || m.colocations != 5 {
		t.Errorf("%d calls for %d co-locations, want 1 for 5", m.calls, m.colocations)
	}
}

type counting struct {
	placetest.Model
	calls, colocations int
}

func (c *counting) Predict(class string, metric history.Metric, cs []cluster.Colocation) [][]interference.Estimate {
	c.calls++
	c.colocations += len(cs)
	return c.Model.Predict(class, metric, cs)
}

func TestModelClass(t *testing.T) {
	one, two := placetest.Model{Names: []string{"x"}}, placetest.Model{Names: []string{"x", "y"}}
	if got := place.ModelClass(one, ""); got != "x" {
		t.Errorf("the class without a name is %q in a model of one class", got)
	}
	if got := place.ModelClass(one, "y") + place.ModelClass(two, ""); got != "y" {
		t.Errorf("%q: other names stay", got)
	}
}

func TestPrevOfNothingPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("took a task from an empty node")
		}
	}()
	v := place.NewValues(placetest.Model{}, place.Objective{}, workloads, []int{1, 1, 1, 1}, 0)
	v.Prev(v.Empty("any"), 0)
}
