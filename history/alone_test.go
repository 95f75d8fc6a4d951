package history_test

import (
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

func TestAggregateFillsInTheRateAlone(t *testing.T) {
	one := func(class, colocation, workload string, metric history.Metric, value float64) history.Sample {
		c, err := cluster.ParseColocation(colocation)
		if err != nil {
			t.Fatal(err)
		}
		return history.Sample{Class: class, Colocation: c, Workload: workload, Metric: metric, Value: value, Repeats: 1}
	}
	got := history.Aggregate([]history.Sample{
		one("", "a+b", "a", history.Rate, 30),
		one("", "a+b", "b", history.Rate, 7),
		one("", "a", "a", history.Rate, 90),
		one("", "a", "a", history.P99, 2),
		one("", "a", "a", history.Rate, 110),
		one("", "a+b", "a", history.Rate, 50),
		one("fast", "a+b", "a", history.Rate, 50),
	})
	want := []struct {
		class, colocation, workload string
		metric                      history.Metric
		value, alone                float64
		repeats                     int
	}{
		{"", "a", "a", history.Rate, 100, 100, 2},
		{"", "a", "a", history.P99, 2, 2, 1},
		{"", "a+b", "a", history.Rate, 40, 100, 2},
		{"", "a+b", "b", history.Rate, 7, 0, 1},
		{"fast", "a+b", "a", history.Rate, 50, 0, 1},
	}
	if len(got) != len(want) {
		t.Fatalf("%d samples, want %d: %+v", len(got), len(want), got)
	}
	for i, w := range want {
		g := got[i]
		if g.Class != w.class || g.Colocation.Key() != w.colocation || g.Workload != w.workload || g.Metric != w.metric ||
			g.Value != w.value || g.Alone != w.alone || g.Repeats != w.repeats {
			t.Errorf("sample %d: %+v, want %+v", i, g, w)
		}
	}
}

// Only a raw record is joined: samples that say what alone is, or not when, are
// as someone wrote them.
func TestOnlyRawRecordsAreJoined(t *testing.T) {
	raw := history.Sample{
		Start: time.Unix(1, 0), End: time.Unix(2, 0), Colocation: cluster.Colocation{"a": 1}, Workload: "a",
		Metric: history.Rate, Value: 10,
	}
	again := raw
	again.Value = 20
	if got := history.Joined([]history.Sample{raw, again}); len(got) != 1 || got[0].Value != 15 || got[0].Alone != 15 {
		t.Errorf("a raw record: %+v", got)
	}
	again.Alone = 20
	if got := history.Joined([]history.Sample{raw, again}); len(got) != 2 {
		t.Errorf("samples with a rate alone were joined: %+v", got)
	}
}
