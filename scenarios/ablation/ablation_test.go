package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// small is the quick run: every variant, trained for two updates.
func small(out string, more ...string) []string {
	return append([]string{
		"-out", out, "-seeds", "0", "-updates", "2", "-episodes", "8", "-jobs", "20",
		"-servers", "3", "-profile", "60", "-test-jobs", "30", "-test-seeds", "1",
	}, more...)
}

func ablation(t *testing.T, want int, args ...string) (out, log string) {
	t.Helper()
	var o, l bytes.Buffer
	if code := run(t.Context(), args, &o, &l); code != want {
		t.Fatalf("ablation %s: exit status %d, want %d:\n%s", strings.Join(args, " "), code, want, l.String())
	}
	return o.String(), l.String()
}

// What is done is not done again, and what is missing is.
func TestRunsOnceAndGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	out, _ := ablation(t, 0, small(path, "-only", "full,forget")...)
	if !strings.Contains(out, "no table yet") {
		t.Errorf("without the rules the table is\n%s", out)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out, log := ablation(t, 0, small(path)...)
	both, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(both, first) || bytes.Count(both, []byte("\n")) != 1+len(variants) {
		t.Errorf("%d lines of results after all runs, want %d, those of before first", bytes.Count(both, []byte("\n")), 1+len(variants))
	}
	if strings.Contains(log, "full, seed 0") {
		t.Errorf("a run that was done was done again:\n%s", log)
	}
	for _, v := range variants {
		if !strings.Contains(out, "| "+v.name+": ") {
			t.Errorf("the table lacks %s:\n%s", v.name, out)
		}
	}
	again, log := ablation(t, 0, small(path)...)
	if again != out || log != "" {
		t.Errorf("with nothing missing, the table is\n%sthe log %q; want the same table and no log", again, log)
	}
	results := readAll(t, path)
	for _, r := range results {
		switch {
		case r.TruthCalls != 0:
			t.Errorf("%s: training asked the truth %d times", r.Variant, r.TruthCalls)
		case r.Variant == "imitation" && (r.Curve != nil || r.Streams[0].Differ != 0):
			t.Errorf("imitation: %d looks, %d choices unlike its own; want none", len(r.Curve), r.Streams[0].Differ)
		case r.Variant == full && (len(r.Curve) != 3 || r.Streams[0].Choices == 0):
			t.Errorf("full: %d looks and %d choices; want looks after 0, 1 and 2 updates", len(r.Curve), r.Streams[0].Choices)
		}
	}
}

// The same run gives the same numbers, times apart.
func TestSameSeedSameStreams(t *testing.T) {
	var jct []float64
	for range 2 {
		path := filepath.Join(t.TempDir(), "results.jsonl")
		ablation(t, 0, small(path, "-only", "unaware")...)
		r := readAll(t, path)[0]
		jct = append(jct, r.Streams[2].JCT["unaware"])
	}
	if jct[0] != jct[1] || !(jct[0] > 0) {
		t.Errorf("mean JCT %g, then %g", jct[0], jct[1])
	}
}

func readAll(t *testing.T, path string) []record {
	t.Helper()
	results, err := read(path, settings{Updates: 2, Episodes: 8, Jobs: 20, Servers: 3, Profile: 60, TestJobs: 30, TestSeeds: 1})
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func TestRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	if err := add(path, &record{Variant: full, Settings: settings{Updates: 3}}); err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.jsonl")
	if err := os.WriteFile(cut, []byte(`{"variant":"fu`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{1, "line 1: a run with", small(path, "-only", "none")},
		{1, "line 1: unexpected end", small(cut, "-only", "none")},
		{2, "no such variant: nonsense", small(path, "-only", "full,nonsense")},
		{2, "-seeds 3-1", []string{"-seeds", "3-1"}},
		{2, "at least 1", []string{"-updates", "0"}},
		{2, "unknown argument", []string{"full"}},
	} {
		if _, log := ablation(t, c.code, c.args...); !strings.Contains(log, c.says) {
			t.Errorf("ablation %v says %q; want %q", c.args, log, c.says)
		}
	}
}

// When 95 % of the gain was reached is read off the curve: the gain is that of
// the look that is kept, not of the last.
func TestSpeed(t *testing.T) {
	var s score
	s.speed(&record{Curve: []look{
		{0, 1, 1, 0, 1.00},
		{3, 5, 4, 0, 0.95},
		{6, 9, 7, 0, 0.903},
		{9, 13, 10, 0, 0.90},
		{12, 17, 13, 0, 0.92},
	}})
	if math.Abs(s.gain-0.1) > 1e-12 || s.cpu != 7 || s.seconds != 9 {
		t.Errorf("gain %g, 95 %% of it after %g s of CPU and %g s; want 0.1, 7 and 9", s.gain, s.cpu, s.seconds)
	}
	s = score{seconds: math.NaN(), cpu: math.NaN()}
	s.speed(&record{Curve: []look{{0, 1, 1, 0, 1}, {3, 5, 4, 0, 1.1}}})
	if s.gain != 0 || !math.IsNaN(s.cpu) {
		t.Errorf("without a gain: gain %g, %g s; want 0 and none", s.gain, s.cpu)
	}
}
