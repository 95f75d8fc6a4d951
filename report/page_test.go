package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/report"
	"pgregory.net/rapid"
)

// sample is a report about three workloads with the given names, which must
// be in order for two reports to be comparable.
func sample(a, b, c string) report.Data {
	ratio := func(co cluster.Colocation, w string, m history.Metric, v float64) history.Sample {
		return history.Sample{
			Colocation: co, Workload: w, Metric: m, Value: v, Alone: 100, Repeats: 3, Spread: 1,
			Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), End: time.Date(2026, 1, 2, 3, 5, 5, 0, time.UTC),
		}
	}
	ab, aa := cluster.Colocation{a: 1, b: 1}, cluster.Colocation{a: 2}
	abc := cluster.Colocation{a: 1, b: 1, c: 1}
	m := report.Measure([]history.Sample{
		ratio(cluster.Colocation{a: 1}, a, history.Rate, 100), ratio(cluster.Colocation{b: 1}, b, history.Rate, 100),
		ratio(ab, a, history.Rate, 50), ratio(ab, b, history.Rate, 130), ratio(ab, a, history.P99, 300),
		ratio(aa, a, history.Rate, 80), ratio(abc, c, history.Rate, 95),
	})
	m.Source, m.Machine, m.Notes = "a test of "+a, "a machine called "+b, map[string]string{a: "note on " + a}
	nodes := []report.Node{
		{Name: "node-" + a, Slots: 3, Tasks: ab, Performance: map[string]float64{a: .5, b: 1.3}},
		{Name: "node-" + b, Class: "big " + c, Slots: 3, Tasks: abc},
		{Name: "node-" + c, Class: "big " + c, Slots: 3},
	}
	jobs := simulation(a, b, c)
	return report.Data{
		Jobs: &jobs, Title: "Report on " + a, Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Command: "cotenant demo " + a,
		Measured: m, Split: "Half of " + a + ".",
		Models: []report.Model{
			{Kind: "table", Runs: []report.Run{{Mean: math.NaN(), Median: math.NaN(), P95: math.NaN(), Coverage: math.NaN()}}},
			{
				Kind: "kind " + b, Runs: []report.Run{{Train: 3, HeldOut: 2, Mean: .1, Median: .08, P95: .3, Answered: 1, Coverage: .9}, {Seed: 1, Mean: .12, Answered: 1}},
				Points: []report.Point{{ab, a, .5, .6}, {ab, b, 1.3, 1.1}, {abc, c, .95, math.Inf(1)}},
			},
		},
		Plan: report.Plan{
			Batch: map[string]int{a: 2, b: 2, c: 1}, Nodes: 3, Slots: 3, Objective: "mean of " + a, Sees: a, Judge: b,
			Bound: report.Bound{Value: 1.2, Proven: true, Seconds: .2},
			Policies: []report.Policy{
				{Name: "spread", Words: "words on " + c, True: .9, Predicted: 1, Share: .75, Seconds: .001, Held: 1, Nodes: nodes},
				{Name: "policy " + b, True: 1.1, Predicted: 1, Share: .9167, Seconds: 12, Nodes: nodes},
				{Name: "failed", True: math.NaN(), Predicted: math.NaN(), Share: math.NaN(), Error: "cannot place " + a},
			},
		},
	}
}

func write(t require, d report.Data) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Write(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

type require interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// element is a start tag with the names of its attributes.
type element struct {
	tag        string
	attributes []string
	values     []string
}

// elements parses the page as strictly as HTML allows: tags that are not
// closed in order are an error.
func elements(t require, page string) []element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict = false
	d.AutoClose = append(slices.Clone(xml.HTMLAutoClose), "wbr")
	d.Entity = xml.HTMLEntity
	var open []string
	var out []element
	for {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{tag: token.Name.Local}
			for _, a := range token.Attr {
				e.attributes = append(e.attributes, a.Name.Local)
				e.values = append(e.values, a.Value)
			}
			out = append(out, e)
			if !slices.Contains(d.AutoClose, token.Name.Local) {
				open = append(open, token.Name.Local)
			}
		case xml.EndElement:
			if slices.Contains(d.AutoClose, token.Name.Local) {
				continue // made up by RawToken for <br/> and the like
			}
			if len(open) == 0 || open[len(open)-1] != token.Name.Local {
				t.Fatalf("</%s> closes %v", token.Name.Local, open)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Fatalf("never closed: %v", open)
	}
	return out
}

func TestPageLoadsNothing(t *testing.T) {
	page := write(t, sample("a", "b", "c"))
	for _, e := range elements(t, page) {
		switch e.tag {
		case "script", "link", "img", "iframe", "object", "embed", "image", "use", "base", "form":
			t.Errorf("the page has a <%s>", e.tag)
		}
		for i, a := range e.attributes {
			if a == "src" || a == "srcset" || a == "style" || strings.HasPrefix(a, "on") || a == "href" && !strings.HasPrefix(e.values[i], "#") {
				t.Errorf("<%s %s=%q>", e.tag, a, e.values[i])
			}
		}
	}
	for _, s := range []string{"url(", "@import", "http:", "https:", "ZgotmplZ"} {
		if strings.Contains(page, s) {
			t.Errorf("the page contains %q", s)
		}
	}
}

func TestPageShowsWhatWasGiven(t *testing.T) {
	page := html.UnescapeString(write(t, sample("alpha", "beta", "gamma")))
	for _, s := range []string{
		`id="measured"`, `id="interference"`, `id="models"`, `id="plan"`, `id="placements"`, `id="words"`,
		"a machine called beta", "2 January 2026 03:04–03:05 UTC", "3 measurements a cell", "note on alpha",
		`title="alpha beside beta: performance 0.50 ± 0.01">0.50`, `title="beta beside alpha: performance 1.30 ± 0.01">1.30`,
		`title="alpha beside another alpha: performance 0.80 ± 0.01">0.80`, `title="beta beside another beta: not measured">–`,
		`title="alpha beside beta: p99 / p99 alone 3.00 ± 0.01">3.00`, "3 tasks",
		"silent about what was not measured", "11.0 % ± 1.4 %", "alpha in alpha+beta: measured 0.50, predicted 0.60",
		"5 tasks on 3 nodes of 3 slots", "2 alpha, 2 beta, 1 gamma", "proven: as far as co-locations are known, no placement can do better", "75.00 %", "91.67 %",
		"cannot place alpha", "alpha (performance 0.50), beta (performance 1.30)", "alpha + beta",
		`id="jobs"`, "0.900 ± 0.010", "broke on alpha", "JCT, h", "mean ± standard error over 3 seeds", "says what beta does", "-10.0 %", "lower bound",
		"<b>0.50</b>", "of its speed alone is left to alpha beside beta",
	} {
		if !strings.Contains(page, s) {
			t.Errorf("the page lacks %q", s)
		}
	}
	for _, s := range []string{"NaN", "Inf", "%!", "&lt;nil&gt;"} {
		if strings.Contains(page, s) {
			t.Errorf("the page contains %q", s)
		}
	}
	if best, worst := strings.Index(page, "policy beta"), strings.Index(page, "words on gamma"); best > worst {
		t.Error("the better policy comes after the worse one")
	}
}

func TestEmptySectionsSaySo(t *testing.T) {
	page := write(t, report.Data{})
	elements(t, page)
	for _, s := range []string{"No measurements were given", "No model was fitted", "No task batch was placed", "Co-located workloads"} {
		if !strings.Contains(page, s) {
			t.Errorf("the page lacks %q", s)
		}
	}
	// Jobs are a world of their own, which not every report has.
	for _, s := range []string{`id="jobs"`, "#jobs", "JCT"} {
		if strings.Contains(page, s) {
			t.Errorf("the page without jobs contains %q", s)
		}
	}
}

// Whatever the names hold, the page has the same elements and attributes as
// with harmless ones: nothing in a name becomes markup.
func TestNamesNeverBecomeMarkup(t *testing.T) {
	shape := func(t require, d report.Data) []string {
		var out []string
		for _, e := range elements(t, write(t, d)) {
			if e.tag != "wbr" {
				out = append(out, fmt.Sprint(e.tag, e.attributes))
			}
		}
		return out
	}
	want := shape(t, sample("1a", "2b", "3c"))
	check := func(t require, text string) {
		t.Helper()
		if got := shape(t, sample("1"+text, "2"+text, "3"+text)); !slices.Equal(got, want) {
			t.Fatalf("with names like %q the page has %d elements, want %d", text, len(got), len(want))
		}
	}
	for _, text := range []string{
		"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "</title><b>", "</style><b>", "</svg><b>", "' onload='x", "&lt;b&gt;",
		"javascript:alert(1)", "{{.Title}}", "<!--", "]]>", "\u202etxt.exe", strings.Repeat("x", 5000), "名前", "a\x00b",
	} {
		check(t, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.StringOf(rapid.RuneFrom([]rune(`<>&"'/\={}[]();:-! ab`))).Draw(t, "text"))
	})
}

func TestPageOfManyNodesStaysSmall(t *testing.T) {
	d := report.Data{Plan: report.Plan{Batch: map[string]int{"a": 1, "b": 1}, Nodes: 3000}}
	for p := range 12 {
		policy := report.Policy{Name: fmt.Sprint("p", p), Share: .9}
		for n := range 3000 {
			policy.Nodes = append(policy.Nodes, report.Node{Name: fmt.Sprint("node-", n), Slots: 8, Tasks: cluster.Colocation{"a": 1 + n%4, "b": 1 + n%3}})
		}
		d.Plan.Policies = append(d.Plan.Policies, policy)
	}
	page := write(t, d)
	if !strings.Contains(page, "×250") {
		t.Error("alike nodes are not drawn as one")
	}
	if len(page) > 300_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteReportsWhatFailed(t *testing.T) {
	err := report.Write(broken{}, report.Data{Title: "T"})
	if err == nil || !strings.Contains(err.Error(), `report "T": disk full`) {
		t.Errorf("got %v", err)
	}
}
