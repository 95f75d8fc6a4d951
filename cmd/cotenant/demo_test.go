package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// madeUp is a sample of every workload in every co-location of up to most
// tasks: each other task of b costs a third, each of the rest a twentieth.
func madeUp(most int, workloads ...string) []history.Sample {
	var out []history.Sample
	var add func(c cluster.Colocation, from int)
	add = func(c cluster.Colocation, from int) {
		for _, w := range c.Workloads() {
			others := c.With(w)
			others[w] -= 2
			slowdown := 1.0
			for o, n := range others {
				cost := .05
				if o == "b" {
					cost = .33
				}
				slowdown += cost * float64(n)
			}
			out = append(out, history.Sample{Colocation: c, Workload: w, Metric: history.Rate, Value: 100 / slowdown, Alone: 100})
		}
		if c.Tasks() < most {
			for i := from; i < len(workloads); i++ {
				add(c.With(workloads[i]), i)
			}
		}
	}
	for i, w := range workloads {
		add(cluster.Colocation{w: 1}, i)
	}
	return out
}

func writeSamples(t *testing.T, samples []history.Sample) string {
	t.Helper()
	var text strings.Builder
	for _, s := range samples {
		line, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(line, '\n'))
	}
	return file(t, "samples.jsonl", text.String())
}

func TestDemoShowsWhatWasMeasuredLearnedAndPlanned(t *testing.T) {
	from := writeSamples(t, madeUp(3, "a", "b", "c"))
	page := filepath.Join(t.TempDir(), "page.html")
	out, errs, code := cotenant(t, "demo", "--samples", from, "--report", page, "--seeds", "2", "--nodes", "6", "--jobs", "60")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{
		"measured: 19 co-locations", "mean relative error of the rate", "table", "linear", "forest", "neural",
		"of 15 tasks on 6 nodes", "spread", "greedy-search", "yes",
		"60 training jobs on 6 servers", "JCT / SPREAD", "harmony", "(lower bound)",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the tables lack %q:\n%s", want, out)
		}
	}
	if !strings.Contains(errs, page) {
		t.Errorf("standard error does not say where the page is: %s", errs)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a beside b: performance 0.75", "15 tasks on 6 nodes of 3 slots", "proven: as far as co-locations are known, no placement can do better", "held-out cells", "60 of the example trace", "a network trained by reinforcement learning"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// demoRow has the fields of both kinds of objects.
type demoRow struct {
	Model, Policy string
	Seed          uint64
	Train         int
	HeldOut       int     `json:"held_out"`
	Error         float64 `json:"mean_relative_error"`
	ValueTrue     float64 `json:"value_true"`
	Bound, Share  float64
	BoundOn       string `json:"bound_on"`
	Proven        bool
	Seconds       float64
	Jobs          int
	JCT           float64 `json:"mean_jct_s"`
	LowerBound    float64 `json:"lower_bound_s"`
	Unfinished    int
	Placement     []struct{ Colocation map[string]int }
}

func TestDemoGivesTheSameRowsForTheSameSeed(t *testing.T) {
	from := writeSamples(t, madeUp(3, "a", "b", "c"))
	rows := func() []demoRow {
		page := filepath.Join(t.TempDir(), "page.html")
		out, errs, code := cotenant(t, "demo", "--samples", from, "--report", page, "--seeds", "1", "--nodes", "6", "--jobs", "60", "-o", "json")
		var rows []demoRow
		if err := json.Unmarshal([]byte(out), &rows); code != 0 || err != nil {
			t.Fatalf("exit %d: %v: %s\n%s", code, err, errs, out)
		}
		for i := range rows {
			rows[i].Seconds = 0
		}
		return rows
	}
	first := rows()
	if again := rows(); fmt.Sprint(first) != fmt.Sprint(again) {
		t.Errorf("two runs differ:\n%+v\n%+v", first, again)
	}
	shares, jcts := map[string]float64{}, map[string]float64{}
	for _, r := range first {
		switch {
		case r.Jobs > 0:
			jcts[r.Policy] = r.JCT
			if r.Jobs != 60 || r.Unfinished > 0 || !(r.JCT > r.LowerBound) {
				t.Errorf("policy for jobs: %+v", r)
			}
		case r.Model != "":
			if r.Train != 10 || r.HeldOut != 9 || r.Model != "table" && !(r.Error < .3) {
				t.Errorf("model: %+v", r)
			}
		default:
			shares[r.Policy] = r.Share
			if !r.Proven || r.BoundOn != "truth" || !(r.Share <= 1) {
				t.Errorf("policy: %+v", r)
			}
		}
	}
	if !(shares["bound"] > shares["binpack"]) {
		t.Errorf("bound reaches %g, binpack %g", shares["bound"], shares["binpack"])
	}
	if len(jcts) != len(demoJobPolicies) || !(jcts["greedy"] < jcts["spread"]) {
		t.Errorf("mean JCTs of jobs: %v", jcts)
	}
}

func TestDemoWithoutJobsShowsNone(t *testing.T) {
	from := writeSamples(t, madeUp(2, "a", "b", "c"))
	page := filepath.Join(t.TempDir(), "page.html")
	out, errs, code := cotenant(t, "demo", "--samples", from, "--report", page, "--seeds", "1", "--nodes", "6", "--jobs", "0")
	if code != 0 || strings.Contains(out, "JCT") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
	if text, err := os.ReadFile(page); err != nil || strings.Contains(string(text), `id="jobs"`) {
		t.Errorf("the page shows jobs, or is none: %v", err)
	}
}

func TestDemoPlansOnlyWhereItCanBeJudged(t *testing.T) {
	// d was measured with one neighbour only, and a hole is in the triples.
	samples := append(madeUp(3, "a", "b", "c"), madeUp(2, "a", "d")...)
	got, err := wholePart(samples, "s")
	if err != nil || got.slots != 3 || !slices.Equal(got.workloads, []string{"a", "b", "c"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	holed := slices.DeleteFunc(slices.Clone(samples), func(s history.Sample) bool { return s.Colocation.Key() == "a+b+c" })
	got, err = wholePart(holed, "s")
	if err != nil || got.slots != 2 || !slices.Equal(got.workloads, []string{"a", "b", "c"}) {
		t.Errorf("with a hole: got %+v, %v", got, err)
	}
	_, err = wholePart(madeUp(1, "a", "b"), "samples x")
	if err == nil || !strings.Contains(err.Error(), "samples x: no two workloads") || !strings.Contains(err.Error(), "measure each pair") {
		t.Errorf("of single tasks: %v", err)
	}
}

func TestDemoRefusesWhatMakesNoSense(t *testing.T) {
	from := writeSamples(t, madeUp(2, "a", "b"))
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--report", ""}, 2, "--report"},
		{[]string{"--nodes", "0"}, 2, "--nodes 0"},
		{[]string{"--seeds", "0"}, 2, "--seeds 0"},
		{[]string{"--jobs", "-1"}, 2, "--jobs -1"},
		{[]string{"-o", "csv"}, 2, "table, json, yaml"},
		{[]string{"x"}, 2, `"x"`},
		{[]string{"--samples", filepath.Join(dir, "absent.jsonl")}, 1, "absent.jsonl"},
		{[]string{"--samples", writeSamples(t, nil)}, 1, "no sample"},
		{[]string{"--samples", writeSamples(t, madeUp(1, "a", "b"))}, 1, "measure each pair"},
		{[]string{"--samples", from, "--seeds", "1", "--report", filepath.Join(dir, "absent", "r.html")}, 1, "--report"},
	} {
		out, errs, code := cotenant(t, append([]string{"demo", "--report", filepath.Join(dir, "r.html")}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("demo %q: exit %d, want %d with %q: %s%s", c.args, code, c.code, c.want, out, errs)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %s", left)
	}
}
