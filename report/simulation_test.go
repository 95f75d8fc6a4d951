package report_test

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/report"
)

// simulation is a comparison of policies with the given names.
func simulation(a, b, c string) report.Simulation {
	s := report.Simulation{
		Title: "Jobs of " + a, Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Command: "cotenant simulate jobs --x=" + b,
		Facts: []report.Fact{{Name: "Nodes", Text: c}}, Seeds: 3, Bound: 0.6, Sharing: "a device of " + c,
		Workloads: []string{a, b, c},
		True:      [][]float64{{.9, .5, .3}, {1.2, .8, .4}, {.6, .7, math.NaN()}},
		Believed:  [][]float64{{.9, .6, .3}, {1.1, .8, .4}, {.6, .7, .2}},
	}
	for i, name := range []string{"spread", "policy " + b, "failed"} {
		p := report.Simulated{
			Name: name, Words: "says what " + b + " does", Ratio: 1 - float64(i)/10, RatioError: .01, Closed: float64(i) / 4, ClosedError: .02,
			Mean: 9000, Median: 5000, P95: 40000, LongestWait: 3600,
			JCTs:   []float64{100, 5000, 9000, 20000, 86400},
			Queue:  []report.QueueStep{{From: 0, Queued: 0}, {From: 3600, Queued: 4}, {From: 3700, Queued: 1}, {From: 9000, Queued: 0}},
			Beside: []report.BesideHours{{A: 0, B: 1, Hours: 40}, {A: 0, B: 0, Hours: 10}, {A: 1, B: 2, Hours: .001}, {A: 2, B: 2, Hours: 5}},
		}
		if name == "failed" {
			p = report.Simulated{Name: name, Ratio: math.NaN(), Closed: math.NaN(), Mean: math.NaN(), Error: "broke on " + a}
		}
		s.Policies = append(s.Policies, p)
	}
	return s
}

func writeSimulation(t require, s report.Simulation) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.WriteSimulation(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSimulationShowsWhatWasGiven(t *testing.T) {
	page := writeSimulation(t, simulation("alpha", "beta", "gamma"))
	elements(t, page)
	for _, e := range elements(t, page) {
		if slices.Contains([]string{"script", "link", "img", "iframe"}, e.tag) {
			t.Errorf("the page has a <%s>", e.tag)
		}
	}
	text := html.UnescapeString(page)
	for _, want := range []string{
		"Jobs of alpha", "2 January 2026", "--x=beta", "0.900 ± 0.010", "25 % ± 2 %", "broke on alpha", "-10.0 %", "of that gap closed by policy beta",
		"alpha beside beta: 40.0 h; performance 0.50 and 1.20; believed 0.60 and 1.10", "shared a device of gamma", "JCT, h", "time, h", "3 seeds",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"NaN", "Inf", "%!", "http:", "url("} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	if n := strings.Count(page, "<polyline"); n != 4 {
		t.Errorf("%d lines are drawn; want the two policies that ran, in two plots", n)
	}
}

func TestSimulationOfNothingSaysSo(t *testing.T) {
	page := writeSimulation(t, report.Simulation{Bound: math.NaN()})
	elements(t, page)
	for _, want := range []string{"No policy was run", "No job finished", "No job had to wait", "No two jobs ran beside each other"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	// One job, and times of seconds.
	one := simulation("a", "b", "c")
	one.Policies = one.Policies[:1]
	one.Policies[0].JCTs, one.Policies[0].Mean, one.True, one.Believed = []float64{5}, 5, nil, nil
	one.Seeds = 1
	if page := writeSimulation(t, one); !strings.Contains(page, "JCT, s") || !strings.Contains(page, "one seed") || strings.Contains(page, "NaN") {
		t.Error("the page of one short job is wrong")
	}
}

func TestNamesOfASimulationNeverBecomeMarkup(t *testing.T) {
	shape := func(s report.Simulation) []string {
		var out []string
		for _, e := range elements(t, writeSimulation(t, s)) {
			if e.tag != "wbr" {
				out = append(out, fmt.Sprint(e.tag, e.attributes))
			}
		}
		return out
	}
	want := shape(simulation("1a", "2b", "3c"))
	for _, text := range []string{"<script>alert(1)</script>", `"><img src=x>`, "</title><b>", "</svg><b>", "{{.Title}}", "<!--", strings.Repeat("x", 3000), "名前"} {
		if got := shape(simulation("1"+text, "2"+text, "3"+text)); !slices.Equal(got, want) {
			t.Errorf("with names like %q the page has other elements", text)
		}
	}
}

// Pages of many policies and runs stay small enough to send.
func TestSimulationOfManyRunsStaysSmall(t *testing.T) {
	s := simulation("a", "b", "c")
	s.Policies, s.Workloads, s.True, s.Believed = nil, nil, nil, nil
	for i := range 25 {
		s.Workloads = append(s.Workloads, fmt.Sprint("workload-", i))
	}
	for i := range 9 {
		p := report.Simulated{Name: fmt.Sprint("policy-", i), Ratio: 1, Mean: 1e4}
		for k := range 20000 {
			p.JCTs = append(p.JCTs, float64(100+k))
			p.Queue = append(p.Queue, report.QueueStep{From: float64(100 * k), Queued: k % 50})
		}
		for a := range 25 {
			for b := a; b < 25; b++ {
				p.Beside = append(p.Beside, report.BesideHours{A: a, B: b, Hours: float64(1 + a*b)})
			}
		}
		s.Policies = append(s.Policies, p)
	}
	if n := len(writeSimulation(t, s)); n > 1_000_000 {
		t.Errorf("the page has %d bytes", n)
	}
}
