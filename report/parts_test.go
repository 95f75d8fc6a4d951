package report

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"pgregory.net/rapid"
)

// 4.5:1 is what WCAG 2 asks of text (success criterion 1.4.3).
func TestTextOnEveryColourCanBeRead(t *testing.T) {
	check := func(what string, c colour) {
		if got := c.contrast(c.ink()); got < 4.5 {
			t.Errorf("%s: text on %s has a contrast of %.2f", what, c, got)
		}
	}
	for i := range len(levels) + 1 {
		check("light", lightRamp.at(i))
		check("dark", darkRamp.at(i))
	}
	for _, c := range workloadColours {
		check("workload", c)
	}
}

// A ramp that runs only one way in lightness on each side of neutral can be
// read in grey, and with every kind of colour blindness.
func TestLightnessRunsOneWayFromNeutral(t *testing.T) {
	for name, r := range map[string]ramp{"light": lightRamp, "dark": darkRamp} {
		towards := 1.0
		if r.middle.luminance() > .5 {
			towards = -1
		}
		for i := neutral; i > 0; i-- {
			if (r.at(i-1).luminance()-r.at(i).luminance())*towards <= 0 {
				t.Errorf("%s: step %d is no further from neutral than step %d", name, i-1, i)
			}
		}
		for i := neutral; i < len(levels); i++ {
			if (r.at(i+1).luminance()-r.at(i).luminance())*towards <= 0 {
				t.Errorf("%s: step %d is no further from neutral than step %d", name, i+1, i)
			}
		}
	}
}

func TestLevelsMeetWithoutGap(t *testing.T) {
	if len(levels) <= neutral || level(1) != neutral || level(math.NaN()) != -1 || level(0) != 0 || level(9) != len(levels) {
		t.Fatalf("level(1) = %d, level(NaN) = %d, level(0) = %d, level(9) = %d", level(1), level(math.NaN()), level(0), level(9))
	}
	for i, end := range levels {
		if level(end) != i+1 || level(math.Nextafter(end, 0)) != i {
			t.Errorf("the end %g of step %d is in the wrong step", end, i)
		}
	}
}

func TestCodesTellWorkloadsApart(t *testing.T) {
	got := codes([]string{"checksum", "isr", "mms", "redis", "scenedetect", "ycsb_a", "ycsb_b", "x", "+"})
	want := []string{"ch", "is", "mm", "re", "sc", "ya", "yb", "07", "08"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringN(0, 4, -1), 0, 60, rapid.ID[string]).Draw(t, "names")
		seen := map[string]bool{}
		for i, c := range codes(names) {
			if n := len([]rune(c)); n != 2 || seen[c] {
				t.Fatalf("%q has the code %q: taken or not two characters", names[i], c)
			}
			seen[c] = true
		}
	})
}

func TestLongNamesBreakAndLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "name")
		whole := ""
		for _, part := range breakable(s) {
			if len([]rune(part)) > longestPart {
				t.Fatalf("%q is never broken", part)
			}
			whole += part
		}
		if want := string([]rune(s)); whole != want {
			t.Fatalf("%q became %q", want, whole)
		}
	})
}

func TestNumbersReadWell(t *testing.T) {
	for _, c := range [][2]string{
		{count(-1234567), "-1\u202f234\u202f567"},
		{count(999), "999"},
		{quantity(81234.5, "x/s"), "81\u202f200\u202fx/s"},
		{quantity(.0123456, ""), "0.0123"},
		{quantity(999.6, ""), "1\u202f000"},
		{quantity(999600, ""), "1\u202fM"},
		{quantity(1e6, ""), "1\u202fM"},
		{quantity(12.94e9, "B/s"), "12.9\u202fGB/s"},
		{quantity(0, ""), "0"},
		{quantity(math.NaN(), "x"), unknown},
		{percent(.98765, 2), "98.77 %"},
		{percent(math.Inf(1), 2), unknown},
		{seconds(0), "< 1 ms"},
		{seconds(.0123), "12 ms"},
		{seconds(.31), "0.31 s"},
		{seconds(61.2), "61 s"},
		{seconds(math.NaN()), unknown},
		{plusMinus(.5, math.NaN(), fixed, 2), "0.50"},
		{plusMinus(.5, .012, fixed, 2), "0.50 ± 0.01"},
		{between(time.Time{}, time.Time{}), ""},
	} {
		if c[0] != c[1] {
			t.Errorf("got %q, want %q", c[0], c[1])
		}
	}
}

func TestMeasureTellsAloneFromTogether(t *testing.T) {
	pair := cluster.Colocation{"a": 1, "b": 1}
	m := Measure([]history.Sample{
		{Colocation: cluster.Colocation{"a": 1}, Workload: "a", Metric: history.Rate, Value: 200, Repeats: 2, Spread: 4},
		{Colocation: pair, Workload: "a", Metric: history.Rate, Value: 100},
		{Colocation: pair, Workload: "b", Metric: history.Rate, Value: 30, Alone: 40},
		{Colocation: pair, Workload: "b", Metric: history.P99, Value: .02, Alone: .01},
		{Scope: history.ScopeDevice, Colocation: pair, Workload: "b", Metric: history.Rate, Value: 1, Alone: 40},
	})
	if m.Cells != 4 || m.Colocations != 2 || m.Repeats != [2]int{1, 2} || m.Spread != .02 || len(m.Classes) != 1 {
		t.Fatalf("%+v", m)
	}
	c := m.Classes[0]
	if c.Workloads[0].Alone != 200 || c.Workloads[1].Alone != 40 || c.Workloads[1].Tail != .01 {
		t.Errorf("alone: %+v", c.Workloads)
	}
	if c.Pairs[0][1].Value != .5 || c.Pairs[1][0].Value != .75 || known(c.Pairs[0][0].Value) || c.Tails[1][0].Value != 2 {
		t.Errorf("pairs: %+v, tails: %+v", c.Pairs, c.Tails)
	}
	if s := c.Sizes; len(s) != 2 || s[0].Colocations != 1 || s[1].Colocations != 1 || s[1].All != (Range{2, .625, .5, .75}) || s[1].ByWorkload[1] != (Range{1, .75, .75, .75}) {
		t.Errorf("sizes: %+v", s)
	}
}
