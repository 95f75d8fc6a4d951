package formats

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

func TestHeaders(t *testing.T) {
	for _, c := range []struct {
		name, text string
		read       func(io.Reader, Options) (any, Report, error)
		want       string
	}{
		{"no value", "colocation,workload,metric\na,a,rate\n", erase(ReadCSV), `has no column "value"`},
		{"other separator", "colocation;workload;metric;value\na;a;rate;1\n", erase(ReadCSV), "separated by commas"},
		{"twice", "colocation,workload,metric,value,value\na,a,rate,1,2\n", erase(ReadCSV), "names two columns"},
		{"no header", "redis,mms+redis,rate,1\n", erase(ReadCSV), "has no column"},
		{"Metis, no pair", "redis,mms\n1,2\n", erase(ReadMetisCSV), "no pair of columns"},
		{"Metis, a number", "1,rps_1\n1,2\n", erase(ReadMetisCSV), "is a number"},
		{"batch, no header", "27,32,12\n29,27,31\n", erase(ReadBatches), "is a number"},
		{"batch, no name", "redis,,mms\n1,2,3\n", erase(ReadBatches), "column 2: workload: empty"},
		{"batch, twice", "redis,redis\n1,2\n", erase(ReadBatches), "names two columns"},
		{"openb, not pods", "sn,cpu_milli,memory_mib,gpu,model\n", erase(ReadOpenbPods), `has no column "name"`},
		{"openb, not nodes", "name,cpu_milli\n", erase(ReadOpenbNodes), `has no column "sn"`},
	} {
		_, _, err := c.read(strings.NewReader(c.text), Options{Name: "t.csv"})
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		mentions(t, c.name+": "+err.Error(), []string{"t.csv", "line 1", c.want})
	}
}

// Fields that a format does not have are named, and an error when strict.
func TestExtraFields(t *testing.T) {
	for _, c := range []struct {
		name, text string
		read       func(io.Reader, Options) (any, Report, error)
	}{
		{"JSON Lines", pairStart + `"value":1,"colour":"red"}` + "\n", erase(ReadJSONL)},
		{"CSV", "colocation,workload,metric,value,colour\na,a,rate,1,red\n", erase(ReadCSV)},
		{"Metis CSV", "redis,rps_redis,colour\n1,1,2\n", erase(ReadMetisCSV)},
		{"openb nodes", "sn,cpu_milli,memory_mib,gpu,model,colour\nn,1,2,0,,red\n", erase(ReadOpenbNodes)},
	} {
		_, rep, err := c.read(strings.NewReader(c.text), Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		mentions(t, strings.Join(rep.Warnings, "\n"), []string{"colour"})
		_, _, err = c.read(strings.NewReader(c.text), Options{Strict: true})
		if err == nil || !strings.Contains(err.Error(), "colour") {
			t.Errorf("%s, strict: %v; want an error about colour", c.name, err)
		}
	}
}

func TestBatchRows(t *testing.T) {
	const text = "redis,mms\n1,2\nx,3\n\n4,0\n"
	b, rep, err := ReadBatches(strings.NewReader(text), Options{Name: "b.csv"})
	if err != nil || rep.Skipped != 1 {
		t.Fatalf("%v, %+v", err, rep)
	}
	for row, want := range map[int]map[string]int{0: {"redis": 1, "mms": 2}, 2: {"redis": 4}} {
		if got, err := b.Row(row); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("row %d: %v, %v; want %v", row, got, err, want)
		}
	}
	for row, want := range map[int]string{1: `b.csv: line 3: redis: "x"`, 3: "b.csv: no row 3; it has 3", -1: "no row -1"} {
		if _, err := b.Row(row); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("row %d: %v; want an error with %q", row, err, want)
		}
	}
}

func TestSplitRow(t *testing.T) {
	for arg, want := range map[string]struct {
		file string
		row  int
		ok   bool
	}{
		"b.csv:3": {"b.csv", 3, true}, "b.csv": {"b.csv", 0, false}, "a:b.csv:12": {"a:b.csv", 12, true},
		`C:\b.csv`: {`C:\b.csv`, 0, false}, "b.csv:": {"b.csv:", 0, false}, ":3": {":3", 0, false},
		"b.csv:-1": {"b.csv:-1", 0, false}, "b.csv:99999999999": {"b.csv:99999999999", 0, false}, "-:0": {"-", 0, true},
	} {
		if file, row, ok := SplitRow(arg); file != want.file || row != want.row || ok != want.ok {
			t.Errorf("%q: %q, %d, %v; want %v", arg, file, row, ok, want)
		}
	}
}

func TestReadSamplesTellsFormatsApart(t *testing.T) {
	for name, want := range map[string]int{"samples.jsonl": 5, "samples.csv": 4, "metis.csv": 22, "metis.npz": 8} {
		data := metisNPZ(goldenRows)
		if name != "metis.npz" {
			data = golden(name)
		}
		for _, d := range [][]byte{data, gzipped(data)} {
			got, _, err := ReadSamples(bytes.NewReader(d), Options{Columns: []string{"redis", "mms", "isr"}, Strict: true})
			if err != nil || len(got) != want {
				t.Errorf("%s: %d samples, %v; want %d", name, len(got), err, want)
			}
		}
	}
	_, _, err := ReadSamples(strings.NewReader("SQLite format 3\x00..."), Options{Name: "h.db"})
	if err == nil || !strings.Contains(err.Error(), "h.db") || !strings.Contains(err.Error(), "SQLite") {
		t.Errorf("a store: %v", err)
	}
}

func TestReadClusterRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown field": {`{"nodes":[{"name":"a","colour":"red"}]}`, "colour"},
		"cut off":       {`{"nodes":[{"name":"a"}`, "cut off"},
		"same name":     {`{"nodes":[{"name":"a"},{"name":"a"}]}`, "listed twice"},
		"two objects":   {`{"nodes":[{"name":"a"}]} {}`, "more than one"},
		"no nodes":      {`{"nodes":[]}`, ErrEmpty.Error()},
	} {
		_, _, err := ReadCluster(strings.NewReader(c.text), Options{Name: "c.json"})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "c.json") {
			t.Errorf("%s: %v; want an error with %q and the file", name, err, c.want)
		}
	}
}

// A source and a class go to samples that have none.
func TestSourceAndClass(t *testing.T) {
	o := Options{Source: "mine", Class: "m5"}
	got, _, err := ReadJSONL(bytes.NewReader(golden("samples.jsonl")), o)
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Source != "profile" || got[0].Class != "c5" || got[1].Source != "mine" || got[1].Class != "m5" {
		t.Errorf("sources and classes %q %q, %q %q", got[0].Source, got[0].Class, got[1].Source, got[1].Class)
	}
}

// anySample draws valid samples, odd names among them.
func anySample(t *rapid.T) history.Sample {
	name := rapid.StringMatching(`[a-zA-Z0-9_./äß"',;:{}=-]([a-z ",:\\]{0,5}[a-z0-9"])?`)
	number := rapid.OneOf(rapid.Float64Range(0, 1e29), rapid.Float64Range(0, 2), rapid.Just(0.0))
	s := history.Sample{
		Source: rapid.OneOf(rapid.Just(""), name).Draw(t, "source"), Class: rapid.OneOf(rapid.Just(""), name).Draw(t, "class"),
		Scope:      rapid.SampledFrom([]history.Scope{"", history.ScopeNode, history.ScopeDevice, history.ScopeRack}).Draw(t, "scope"),
		Colocation: rapid.MapOfN(name, rapid.IntRange(1, 9), 1, 4).Draw(t, "colocation"),
		Role:       rapid.SampledFrom([]cluster.Role{"", cluster.Worker, cluster.Replica}).Draw(t, "role"),
		Job:        rapid.OneOf(rapid.Just(""), name).Draw(t, "job"),
		Span:       rapid.SampledFrom([]cluster.Span{"", cluster.SpanRack}).Draw(t, "span"),
		BatchSize:  rapid.IntRange(0, 1<<20).Draw(t, "batch size"),
		Metric:     rapid.SampledFrom([]history.Metric{history.Rate, history.P50, history.P99}).Draw(t, "metric"),
		Value:      number.Draw(t, "value"), Alone: number.Draw(t, "alone"), Spread: number.Draw(t, "spread"),
		Repeats: rapid.IntRange(0, 9).Draw(t, "repeats"),
	}
	s.Workload = rapid.SampledFrom(s.Colocation.Workloads()).Draw(t, "workload")
	if alone := s.Value * rapid.Float64Range(0.01, 9).Draw(t, "alone"); !s.Colocation.Alone() {
		s.Alone = alone
	}
	if rapid.Bool().Draw(t, "timed") {
		s.Start = time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "start"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
		s.End = s.Start.Add(time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "length")))
	}
	return s
}

// What is written is read again, in both forms.
func TestRoundTrip(t *testing.T) {
	for _, form := range []struct {
		name  string
		write func(io.Writer, []history.Sample) error
		read  func(io.Reader, Options) ([]history.Sample, Report, error)
	}{{"JSON Lines", WriteJSONL, ReadJSONL}, {"CSV", WriteCSV, ReadCSV}} {
		t.Run(form.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				want := rapid.SliceOfN(rapid.Custom(anySample), 1, 5).Draw(t, "samples")
				for _, s := range want {
					if s.Validate() != nil {
						t.Skip("not a sample")
					}
				}
				var b bytes.Buffer
				if err := form.write(&b, want); err != nil {
					t.Fatal(err)
				}
				got, rep, err := form.read(&b, Options{Strict: true})
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got, want) || len(rep.Where) != len(want) {
					t.Fatalf("read\n%+v\nwant\n%+v", got, want)
				}
			})
		})
	}
}

func TestWritersRefuse(t *testing.T) {
	good := history.Sample{Colocation: cluster.Colocation{"a": 1}, Workload: "a", Metric: history.Rate, Value: 1}
	bad := good
	bad.Value = -1
	lines := good
	lines.Source = "two\nlines"
	var b bytes.Buffer
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"JSON Lines":         {WriteJSONL(&b, []history.Sample{good, bad}), "sample 1: value: -1"},
		"CSV":                {WriteCSV(&b, []history.Sample{good, bad}), "sample 1: value: -1"},
		"a CSV of two lines": {WriteCSV(&b, []history.Sample{good, lines}), "sample 1: source"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v; want an error with %q", name, c.err, c.want)
		}
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.txt")
	say := func(text string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	}
	if err := WriteFile(path, say("old")); err != nil {
		t.Fatal(err)
	}
	oops := errors.New("oops")
	err := WriteFile(path, func(w io.Writer) error {
		_ = say(strings.Repeat("new", 1<<16))(w)
		return oops
	})
	if !errors.Is(err, oops) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v; want oops and the path", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("after a failed write the file has %d bytes; want the old ones", len(got))
	}
	if err := WriteFile(path, say("new")); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "new" {
		t.Errorf("the file has %q", got)
	}
	if err := WriteFile(path+".gz", say("packed")); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path + ".gz"); !bytes.Equal(got[:2], []byte{0x1f, 0x8b}) {
		t.Errorf(".gz is not packed: %q", got)
	}
	for name, p := range map[string]string{"a directory": dir, "no directory": filepath.Join(dir, "no", "x")} {
		if err := WriteFile(p, say("x")); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("%d files left (%v); want 2", len(left), err)
	}
}

func TestReadFile(t *testing.T) {
	_, _, err := ReadFile(filepath.Join(t.TempDir(), "none.jsonl"), Options{}, ReadJSONL)
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "none.jsonl") {
		t.Errorf("%v; want the path", err)
	}
	got, _, err := ReadFile(filepath.Join("testdata", "samples.jsonl"), Options{Name: "ignored"}, ReadJSONL)
	if err != nil || len(got) != 5 {
		t.Errorf("%d samples, %v", len(got), err)
	}
}

func TestLongValuesAreCutInErrors(t *testing.T) {
	_, _, err := ReadJSONL(strings.NewReader(pairStart+`"value":"`+strings.Repeat("x", 5000)+`"}`), Options{Strict: true})
	if err == nil || len(err.Error()) > 300 {
		t.Errorf("an error of %d bytes", len(fmt.Sprint(err)))
	}
}

// Latencies alone that contradict each other have no mean that any of them could
// be beside.
func TestMetisLatenciesAloneThatContradict(t *testing.T) {
	text := "mms,isr,rps_mms,rps_isr,rt50_mms,rt50_isr\n1,0,1,,.01,\n1,0,1,,.02,\n1,1,.9,.8,.03,.04\n"
	samples, rep, err := ReadMetisCSV(strings.NewReader(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range samples {
		if err := s.Validate(); err != nil {
			t.Errorf("sample %d: %v", i, err)
		}
		if s.Metric == history.P50 && s.Colocation.Alone() && s.Alone != 0 {
			t.Errorf("%g beside %g alone", s.Value, s.Alone)
		}
	}
	if !strings.Contains(strings.Join(rep.Warnings, "\n"), "can't be beside the mean of those alone: 2") {
		t.Errorf("warnings: %q", rep.Warnings)
	}
}
