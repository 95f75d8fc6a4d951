package history

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
)

func valid() Sample {
	return Sample{
		Source: "profile", Class: "c5", Colocation: cluster.Colocation{"redis": 1, "mms": 2},
		Workload: "redis", Role: cluster.Replica, Metric: Rate, Value: 0.8, Alone: 1, Repeats: 3, Spread: 0.01,
	}
}

// single is a sample of a task alone, with what it is said to do alone.
func single(value, alone float64) Sample {
	return Sample{Colocation: cluster.Colocation{"redis": 1}, Workload: "redis", Metric: Rate, Value: value, Alone: alone}
}

func TestValidateNamesTheFieldAndTheValue(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name string
		do   func(*Sample)
		want string // in the error; "" for a valid sample
	}{
		{"valid", func(*Sample) {}, ""},
		{"no value alone", func(s *Sample) { s.Alone = 0 }, ""},
		{"value zero", func(s *Sample) { s.Value = 0 }, ""},
		{"no workload", func(s *Sample) { s.Workload = "" }, "workload: empty"},
		{"no co-location", func(s *Sample) { s.Colocation = nil }, "colocation: empty"},
		{"not among them", func(s *Sample) { s.Workload = "isr" }, `workload "isr"`},
		{"no metric", func(s *Sample) { s.Metric = "" }, "metric:"},
		{"unknown metric", func(s *Sample) { s.Metric = "p95" }, `"p95"`},
		{"unknown scope", func(s *Sample) { s.Scope = "room" }, `"room"`},
		{"negative batch size", func(s *Sample) { s.BatchSize = -1 }, "batch_size: -1"},
		{"negative workers", func(s *Sample) { s.Workers = -1 }, "workers: -1"},
		{"negative repeats", func(s *Sample) { s.Repeats = -2 }, "repeats: -2"},
		{"ends before it starts", func(s *Sample) { s.Start, s.End = now, now.Add(-time.Second) }, "end:"},
		{"negative count", func(s *Sample) { s.Colocation = cluster.Colocation{"redis": 1, "mms": -1} }, `-1 tasks of workload "mms"`},
		{"empty name", func(s *Sample) { s.Colocation = cluster.Colocation{"redis": 1, "": 1} }, "name is empty"},
		{"name with a plus", func(s *Sample) { s.Colocation = cluster.Colocation{"redis": 1, "a+b": 1} }, `"a+b"`},
		{"name with a star", func(s *Sample) { s.Colocation = cluster.Colocation{"redis": 1, "a*2": 1} }, `"a*2"`},
		{"name with a space", func(s *Sample) { s.Colocation = cluster.Colocation{"redis": 1, " a": 1} }, `" a"`},
		{"name with a newline", func(s *Sample) { s.Colocation = cluster.Colocation{"redis": 1, "a\n": 1} }, `"a\n"`},
		{"NaN", func(s *Sample) { s.Value = math.NaN() }, "value: NaN"},
		{"infinite", func(s *Sample) { s.Alone = math.Inf(1) }, "alone: +Inf"},
		{"negative spread", func(s *Sample) { s.Spread = -0.1 }, "spread: -0.1"},
		{"past any count", func(s *Sample) { s.Value, s.Alone = 1e31, 1e31 }, "value: 1e+31 is more than anything counts to"},
		{"a rate past sense", func(s *Sample) { s.Value, s.Alone = 1e9, 8 }, "value: 1e+09 is 1.25e+08 times the rate alone, 8"},
		{"a rate that neighbours help", func(s *Sample) { s.Value = 900 }, ""},
		{"a latency of a full queue", func(s *Sample) { s.Metric, s.Value, s.Alone = P99, 60, 1e-4 }, ""},
		{"a latency in nanoseconds", func(s *Sample) { s.Metric, s.Value, s.Alone = P99, 2e6, 1e-3 }, "times the p99 alone, 0.001"},
		{"alone at twice its rate alone", func(s *Sample) { *s = single(10, 5) }, "value: 10 of a single task, where its rate alone is given as 5"},
		{"alone at half its rate alone", func(s *Sample) { *s = single(5, 10) }, "value: 5 of a single task"},
		{"standing still alone", func(s *Sample) { *s = single(0, 10) }, "value: 0 of a single task"},
		{"alone as alone, by the tolerance", func(s *Sample) { *s = single(8, 10) }, ""},
		{"alone as alone, by its spread", func(s *Sample) { *s = single(5, 10); s.Spread = 1 }, ""},
		{"alone here, with workers elsewhere", func(s *Sample) { *s = single(5, 10); s.Workers = 4 }, ""},
		{"alone here, apart from its server", func(s *Sample) { *s = single(5, 10); s.Span = cluster.SpanApart }, ""},
		{"a latency that was not measured", func(s *Sample) { *s = single(0, 10); s.Metric = P99 }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := valid()
			c.do(&s)
			err := s.Validate()
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v; want one with %q", err, c.want)
			}
		})
	}
}

func TestMemoryKeepsAllOrNothing(t *testing.T) {
	var m Memory
	bad := valid()
	bad.Value = math.NaN()
	if err := m.Append(valid(), bad); err == nil || !strings.Contains(err.Error(), "sample 1") {
		t.Errorf("error %v; want one about sample 1", err)
	}
	if all, _ := m.All(); len(all) != 0 {
		t.Errorf("kept %d samples of a refused append", len(all))
	}
	if err := m.Append(valid()); err != nil {
		t.Fatal(err)
	}
	all, _ := m.All()
	all[0].Value = 99
	if again, _ := m.All(); again[0].Value != valid().Value {
		t.Error("All returned the store's own slice")
	}
}

func TestPerformance(t *testing.T) {
	s := valid()
	if p, ok := s.Performance(); !ok || p != 0.8 {
		t.Errorf("performance %g %v; want 0.8 true", p, ok)
	}
	s.Alone = 0
	if _, ok := s.Performance(); ok {
		t.Error("performance known without a value alone")
	}
}

// The JSON form is a file format: its field names may not change.
func TestSampleJSON(t *testing.T) {
	s := valid()
	s.Start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.End = s.Start.Add(5 * time.Second)
	s.Scope, s.Job, s.Span, s.Workers, s.BatchSize = ScopeDevice, "j1", cluster.SpanRack, 4, 32
	got, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"source":"profile","start":"2026-01-02T03:04:05Z","end":"2026-01-02T03:04:10Z","class":"c5",` +
		`"scope":"device","colocation":{"mms":2,"redis":1},"workload":"redis","role":"replica","job":"j1","span":"rack",` +
		`"workers":4,"batch_size":32,"metric":"rate","value":0.8,"alone":1,"repeats":3,"spread":0.01}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
