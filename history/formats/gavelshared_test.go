package formats

import (
	"strings"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// What FORMATS.md and DESIGN.md say of Gavel's table, counted.
func TestGavelThroughputs(t *testing.T) {
	all, rep := readShared(t, "gavel/throughputs.json", Options{Strict: true}, ReadGavel)
	samples, _ := readShared(t, "gavel/throughputs.json", Options{Exclude: []string{"Recommendation"}}, ReadGavel)
	if rep.Skipped != 0 || len(samples) >= len(all) {
		t.Errorf("%d samples, %d without Recommendation, report %+v", len(all), len(samples), rep)
	}
	for _, s := range samples {
		if strings.HasPrefix(s.Workload, "recommendation") || strings.Contains(s.Colocation.Key(), "recommendation") {
			t.Fatalf("excluded, and there: %+v", s)
		}
	}
	if got := history.Summarise(all); len(got.Contradictions) != 0 || got.Duplicates != 0 {
		t.Errorf("%d contradictions, %d duplicates", len(got.Contradictions), got.Duplicates)
	}
	fit, misfits := history.SplitMisfits(all)
	// 26 configurations: 676 cells of ordered pairs a class, 351 pairs.
	pairs := map[string]map[string]bool{"v100": {}, "k80": {}}
	cells := map[string]int{}
	alone := map[string]int{}
	for _, s := range fit {
		switch {
		case s.Colocation.Alone():
			alone[s.Class+" "+string(s.Span)]++
		default:
			pairs[s.Class][s.Colocation.Key()] = true
			cells[s.Class]++
			if p, ok := s.Performance(); !ok || p <= 0 || p > 1.5 {
				t.Errorf("performance %g %v: %+v", p, ok, s)
			}
		}
	}
	t.Logf("alone %v, pair cells %v, pairs %d and %d, misfits %d and %d; warnings %q", alone, cells,
		len(pairs["v100"]), len(pairs["k80"]), len(misfits.Keys("v100")), len(misfits.Keys("k80")), rep.Warnings)
	if cells["v100"] != 636 || cells["k80"] != 589 {
		t.Errorf("pair cells %v; want 636 and 589", cells)
	}
	for class, want := range map[string]int{"v100": 351, "k80": 351} {
		if got := len(pairs[class]) + len(misfits.Keys(class)); got != want {
			t.Errorf("%s: %d pairs and misfits; want %d", class, got, want)
		}
	}
	for where, want := range map[string]int{"v100 ": 26, "v100 node": 57, "v100 apart": 57, "k80 ": 26, "k80 node": 54, "k80 apart": 51} {
		if alone[where] != want {
			t.Errorf("%d rates alone on %q; want %d", alone[where], where, want)
		}
	}
	rates := history.NewAloneRates(all)
	for _, c := range []struct {
		class, workload string
		workers         int
		span            cluster.Span
		want            float64
		scaled          bool
	}{
		{"k80", "resnet-18/16", 1, "", 4.795294551566172, false},
		{"v100", "resnet-18/16", 1, cluster.SpanApart, 32.353, false},
		{"v100", "resnet-18/16", 8, cluster.SpanNode, 382.597, false},
		{"v100", "resnet-18/16", 8, cluster.SpanApart, 64.41, false},
		{"v100", "cyclegan", 8, cluster.SpanNode, 8 * 4.426, true},
		{"k80", "resnet-50/128", 2, cluster.SpanNode, 2 * 0.347, true}, // 0.0 in the file
		{"k80", "recommendation/512", 1, "", 32.859, false},
	} {
		got, scaled, ok := rates.Rate(c.class, c.workload, c.workers, c.span)
		if got < c.want*0.998 || got > c.want*1.002 || scaled != c.scaled || !ok {
			t.Errorf("%s on %s, %d workers, span %q: %g %v %v; want %g", c.workload, c.class, c.workers, c.span, got, scaled, ok, c.want)
		}
	}
}

func TestGavelTraces(t *testing.T) {
	for _, c := range []struct {
		name             string
		jobs, kept, most int
	}{
		{"2869ce", 533, 434, 32}, {"51b7ef", 18, 17, 8}, {"e13805", 607, 497, 24}, {"ed69ec", 951, 779, 1},
	} {
		jobs, rep := readShared(t, "gavel/"+c.name+".trace", Options{Strict: true}, ReadGavelTrace)
		kept, _ := readShared(t, "gavel/"+c.name+".trace", Options{Strict: true, Exclude: []string{"Recommendation"}}, ReadGavelTrace)
		most := 0
		for _, j := range jobs {
			most = max(most, j.Workers)
		}
		if len(jobs) != c.jobs || len(kept) != c.kept || most != c.most {
			t.Errorf("%s: %d jobs, %d without Recommendation, up to %d workers; want %d, %d, %d", c.name, len(jobs), len(kept), most, c.jobs, c.kept, c.most)
		}
		t.Log(rep.Warnings, jobs[1])
	}
}

func TestDL2Speeds(t *testing.T) {
	speeds, rep := readShared(t, "dl2/config_speed.txt", Options{Strict: true}, ReadDL2)
	samples, _ := readShared(t, "dl2/config_speed.txt", Options{Strict: true}, ReadDL2Samples)
	workloads := map[string]bool{}
	for _, s := range speeds {
		workloads[s.Workload] = true
	}
	if rep.Read != 804 || len(speeds) != 794 || len(samples) != 794 || len(workloads) != 8 || rep.Duplicates != 0 {
		t.Errorf("%d read, %d speeds, %d samples, %d workloads; want 804, 794, 794, 8", rep.Read, len(speeds), len(samples), len(workloads))
	}
}

func TestOpenbAsJobs(t *testing.T) {
	jobs, rep := readShared(t, "openb/openb_pod_list_default.csv", Options{Strict: true}, ReadOpenbJobs)
	for i, j := range jobs {
		if j.Seconds <= 0 || i > 0 && j.Arrival < jobs[i-1].Arrival {
			t.Fatalf("job %d: %+v", i, j)
		}
	}
	t.Logf("%d jobs of %d pods: %q", len(jobs), rep.Read, rep.Warnings)
	if rep.Read != 8152 || len(jobs) == 0 {
		t.Errorf("%d jobs of %d pods", len(jobs), rep.Read)
	}
}
