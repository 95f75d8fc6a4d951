package profile

import (
	"bytes"
	"math"
	"os"
	"testing"
	"time"

	"github.com/cotenant/cotenant/history"
)

// shipped is the suite that ships.
func shipped(t testing.TB) *Suite {
	t.Helper()
	s, err := LoadSuite("suite/suite.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The recorded outputs in testdata are the programs' own; every line is taken
// to arrive 100 ms after the one before.
func TestShippedSuiteReadsRealOutput(t *testing.T) {
	for _, c := range []struct {
		workload string
		want     map[history.Metric]float64
	}{
		{"redis", map[history.Metric]float64{history.Rate: 3 / (1/24691.36 + 1/24096.39 + 1/22988.51), history.P50: 597e-6 / 3, history.P99: 1621e-6 / 3}},
		{"memcached", map[history.Metric]float64{history.Rate: (29795.3 + 19104.6) / 2, history.P50: (.0002293 + .0002565) / 2, history.P99: (.0008497 + .0039234) / 2}},
		{"nginx", map[history.Metric]float64{history.Rate: 7061.91, history.P50: 624e-6, history.P99: 6.7e-3}},
		{"postgres", map[history.Metric]float64{history.Rate: 10, history.P50: 1599e-6, history.P99: 1973e-6}},
		{"stream", map[history.Metric]float64{history.Rate: (9524.48 + 10757.53) / 2 * (1 << 20)}},
		{"allreduce", map[history.Metric]float64{history.Rate: 10}},
		{"zstd", map[history.Metric]float64{history.Rate: 10 * (4 << 20)}},
	} {
		t.Run(c.workload, func(t *testing.T) {
			text, err := os.ReadFile("testdata/" + c.workload + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			w, err := shipped(t).Workload(c.workload)
			if err != nil {
				t.Fatal(err)
			}
			r := &reader{read: &w.Read}
			begin := time.Unix(1e9, 0)
			at := begin
			for line := range bytes.Lines(text) {
				at = at.Add(100 * time.Millisecond)
				r.line(at, bytes.TrimRight(line, "\r\n"))
			}
			got, ok := r.window(begin, at)
			if !ok || len(got) != len(c.want) {
				t.Fatalf("read %v, %v", got, ok)
			}
			for m, v := range c.want {
				if math.Abs(got[m]/v-1) > 1e-9 {
					t.Errorf("%s: %g, want %g", m, got[m], v)
				}
			}
		})
	}
}

func TestWindowCountsBetweenLines(t *testing.T) {
	read := &Read{Rate: Pattern{Match: "^x", Each: 5}}
	if e := read.compile(); e != nil {
		t.Fatal(e)
	}
	begin := time.Unix(1e9, 0)
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	r := &reader{read: read}
	for _, ms := range []int{100, 300, 500, 700, 900} {
		r.line(at(ms), []byte("x"))
	}
	for _, c := range []struct {
		from, to int
		want     float64
		ok       bool
	}{
		{350, 950, 3 * 5 / .6, true}, // the clock starts at the line of 300 ms
		{300, 950, 3 * 5 / .6, true}, // a line at the edge belongs to the window before
		{0, 950, 4 * 5 / .8, true},   // no line before: the first starts the clock
		{0, 150, 0, false},           // one line alone has no duration
		{910, 2000, 0, false},        // none at all
		{750, 910, 5 / .2, true},     // one inside, one before
	} {
		got, ok := r.window(at(c.from), at(c.to))
		if ok != c.ok || math.Abs(got[history.Rate]-c.want) > 1e-6 {
			t.Errorf("(%d, %d]: %g, %v; want %g, %v", c.from, c.to, got[history.Rate], ok, c.want, c.ok)
		}
	}
}

func TestValueReadsUnits(t *testing.T) {
	p := Pattern{Match: `^t (\S+?)(us|ms|s|parsec)?$`}
	if e := (&Read{Rate: p}).compile(); e != nil {
		t.Fatal(e)
	}
	r := Read{Rate: p}
	if e := r.compile(); e != nil {
		t.Fatal(e)
	}
	for text, want := range map[string]float64{
		"t 5us": 5e-6, "t 5ms": 5e-3, "t 5s": 5, "t 5": 5, "t 1e3s": 1000,
		"t -5s": -1, "t NaNs": -1, "t Infs": -1, "t 5parsec": -1, "t words": -1, "u 5": -1,
	} {
		v, ok := r.Rate.value([]byte(text))
		if ok != (want >= 0) || ok && math.Abs(v-want) > 1e-12 {
			t.Errorf("%q: %g, %v", text, v, ok)
		}
	}
}

func FuzzReader(f *testing.F) {
	for _, name := range []string{"redis", "memcached", "nginx", "postgres", "stream"} {
		text, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	s := shipped(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		for i := range s.Workloads {
			r := &reader{read: &s.Workloads[i].Read}
			begin := time.Unix(1e9, 0)
			at := begin
			for line := range bytes.Lines(text) {
				at = at.Add(time.Millisecond)
				r.line(at, line)
			}
			got, ok := r.window(begin, at)
			if !ok {
				continue
			}
			for m, v := range got {
				if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%s: %s is %g", s.Workloads[i].Name, m, v)
				}
			}
		}
	})
}
