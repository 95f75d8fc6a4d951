package data

import (
	"bytes"
	"slices"
	"testing"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
)

var six = []string{"allreduce", "memcached", "nginx", "postgres", "redis", "stream"}

func TestSamplesAreCompleteUpToFourTasks(t *testing.T) {
	all, err := Samples()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string][]string{}
	for _, s := range all {
		if s.Metric != history.Rate {
			continue
		}
		key := s.Colocation.Key()
		seen[key] = append(seen[key], s.Workload)
		if s.Value <= 0 || s.Alone <= 0 || s.Repeats < 2 || s.Spread <= 0 {
			t.Errorf("%s of %s: value %g, alone %g, %d repeats, spread %g", s.Workload, key, s.Value, s.Alone, s.Repeats, s.Spread)
		}
		for w := range s.Colocation {
			if !slices.Contains(six, w) {
				t.Errorf("%s has a workload that is none of %v", key, six)
			}
		}
		if s.Colocation.Tasks() > 4 {
			t.Errorf("%s has more than four tasks", key)
		}
		want := s.Colocation.Workloads()
		if n := len(seen[key]); n > len(want) || !slices.Contains(want, s.Workload) {
			t.Errorf("%s: rates of %v", key, seen[key])
		}
	}
	if len(seen) != 209 {
		t.Errorf("%d co-locations, want 209", len(seen))
	}
	for key, got := range seen {
		slices.Sort(got)
		if len(slices.Compact(got)) != len(got) {
			t.Errorf("%s: rates of %v", key, got)
		}
	}
}

// More neighbours mean less performance, by far more than the noise.
func TestSamplesShowInterference(t *testing.T) {
	all, err := Samples()
	if err != nil {
		t.Fatal(err)
	}
	sum, n := make([]float64, 5), make([]float64, 5)
	for _, s := range all {
		if p, ok := s.Performance(); ok && s.Metric == history.Rate {
			sum[s.Colocation.Tasks()] += p
			n[s.Colocation.Tasks()]++
		}
	}
	for k := 2; k <= 4; k++ {
		if here, before := sum[k]/n[k], sum[k-1]/n[k-1]; !(here < before-.05) {
			t.Errorf("mean performance %.3f of %d tasks, %.3f of %d", here, k, before, k-1)
		}
	}
}

// The example trace is read by the reader of Gavel's traces, and nothing in it
// needs a warning.
func TestTraceIsOneOfGavels(t *testing.T) {
	jobs, report, err := formats.ReadGavelTrace(bytes.NewReader(Trace), formats.Options{Strict: true})
	if err != nil || len(jobs) != 300 || len(report.Warnings) > 0 {
		t.Errorf("%d jobs, %v, %v", len(jobs), report.Warnings, err)
	}
	if fields := bytes.Count(Trace[:bytes.IndexByte(Trace, '\n')], []byte("\t")); fields != 9 {
		t.Errorf("%d tabs in a line; the layout has 10 fields", fields)
	}
}

func TestExtraHasTheOtherWorkloadsInTwos(t *testing.T) {
	all, err := Extra()
	if err != nil {
		t.Fatal(err)
	}
	pairs := map[string]bool{}
	rate := map[string]float64{}
	for _, s := range all {
		if s.Metric != history.Rate {
			continue
		}
		if s.Colocation.Tasks() == 2 {
			pairs[s.Colocation.Key()] = true
		}
		if s.Colocation.Alone() {
			rate[s.Workload] = s.Value
		}
	}
	// 55 pairs of ten workloads, less the 21 of the six.
	if len(pairs) != 34 {
		t.Errorf("%d co-locations in twos, want 34", len(pairs))
	}
	if rate["store-apart"] <= 0 || rate["store-apart"] > rate["store"]/2 {
		t.Errorf("the store apart from its client does %g requests/s, on the same node %g", rate["store-apart"], rate["store"])
	}
}
