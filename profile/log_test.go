package profile

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// repeat is one repeat of a and b together, as a session writes it.
func repeat(second int) []history.Sample {
	var out []history.Sample
	for _, w := range []string{"a", "b"} {
		for _, m := range []history.Metric{history.P50, history.P99, history.Rate} {
			out = append(out, history.Sample{
				Source: "profile", Scope: history.ScopeNode, Colocation: cluster.Colocation{"a": 1, "b": 1}, Workload: w,
				Start: time.Unix(int64(second), 0).UTC(), End: time.Unix(int64(second)+1, 0).UTC(), Metric: m, Value: float64(second), Repeats: 1,
			})
		}
	}
	return out
}

func lines(t testing.TB, samples []history.Sample) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, s := range samples {
		line, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.Bytes()
}

// Wherever the end of the file is torn, reopening keeps the whole repeats, and
// what is appended next makes a right file.
func TestOpenLogDropsATornRepeat(t *testing.T) {
	first, second := lines(t, repeat(1)), lines(t, repeat(2))
	whole := append(bytes.Clone(first), second...)
	path := filepath.Join(t.TempDir(), "samples.jsonl")
	for cut := 0; cut <= len(whole); cut += 29 {
		if cut+29 > len(whole) {
			cut = len(whole)
		}
		if err := os.WriteFile(path, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		l, err := OpenLog(path)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		kept := []byte{}
		if cut >= len(first) {
			kept = first
		}
		if cut == len(whole) {
			kept = whole
		}
		if (l.Dropped != "") != (len(kept) != cut) {
			t.Errorf("cut at %d: said %q", cut, l.Dropped)
		}
		if err := l.Append(repeat(3)); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := append(bytes.Clone(kept), lines(t, repeat(3))...); !bytes.Equal(got, want) {
			t.Fatalf("cut at %d: the file is\n%s\nwant\n%s", cut, got, want)
		}
	}
}

func TestOpenLogRefusesABrokenMiddle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "samples.jsonl")
	text := string(lines(t, repeat(1))) + "{\"workload\":\n" + string(lines(t, repeat(2)))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := OpenLog(path)
	if err == nil || !strings.Contains(err.Error(), path+": line 7: ") {
		t.Errorf("%v", err)
	}
	if after, _ := os.ReadFile(path); string(after) != text {
		t.Error("the file was changed")
	}
}

// What no interrupted write can have left is not cut off, but refused.
func TestOpenLogKeepsOtherFiles(t *testing.T) {
	other := repeat(1)
	for i := range other {
		other[i].Source = "metis"
	}
	for name, text := range map[string]string{
		"a note":            "don't lose me",
		"samples of others": string(lines(t, other)),
		"one of others":     string(lines(t, other[:1])),
		"a hole":            string(lines(t, repeat(1)[:2])) + string(lines(t, repeat(2))),
		"JSON":              "{\"source\":\"profiler\"",
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenLog(path); err == nil || !strings.Contains(err.Error(), "give another file") {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := os.ReadFile(path); string(after) != text {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

func TestOpenLogDropsZeroBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "samples.jsonl")
	first := lines(t, repeat(1))
	for _, end := range []string{"\x00\x00\x00", `{"source":"profile","sta` + "\x00\x00", `{"sour`} {
		if err := os.WriteFile(path, append(bytes.Clone(first), end...), 0o644); err != nil {
			t.Fatal(err)
		}
		l, err := OpenLog(path)
		if err != nil {
			t.Fatalf("%q: %v", end, err)
		}
		if len(l.Samples()) != 6 || l.Dropped == "" {
			t.Errorf("%q: %d samples, said %q", end, len(l.Samples()), l.Dropped)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenLogIsForOneProfiler(t *testing.T) {
	path := filepath.Join(t.TempDir(), "samples.jsonl")
	l, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := OpenLog(path); err == nil || !strings.Contains(err.Error(), "another profiler") {
		t.Errorf("%v", err)
	}
}

func TestLogCountsRepeatsByClass(t *testing.T) {
	l, err := OpenLog(filepath.Join(t.TempDir(), "samples.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i := range 3 {
		if err := l.Append(repeat(i)); err != nil {
			t.Fatal(err)
		}
	}
	c := cluster.Colocation{"a": 1, "b": 1}
	if n := l.Repeats("", c); n != 3 {
		t.Errorf("%d repeats, want 3", n)
	}
	if n := l.Repeats("other", c); n != 0 {
		t.Errorf("%d repeats on another class", n)
	}
	if n := l.Repeats("", cluster.Colocation{"a": 1}); n != 0 {
		t.Errorf("%d repeats of another co-location", n)
	}
	bad := repeat(9)
	bad[0].Workload = ""
	if err := l.Append(bad); err == nil || len(l.Samples()) != 18 {
		t.Errorf("a wrong sample: %v, %d samples", err, len(l.Samples()))
	}
}

func FuzzParseLog(f *testing.F) {
	f.Add(append(lines(f, repeat(1)), lines(f, repeat(2))...))
	f.Fuzz(func(t *testing.T, data []byte) {
		samples, whole, err := parseLog(data)
		if err != nil {
			return
		}
		again, end, err := parseLog(data[:whole])
		if err != nil || end != whole || len(again) != len(samples) {
			t.Errorf("the kept part reads otherwise: %d samples to %d, then %d to %d, %v", len(samples), whole, len(again), end, err)
		}
	})
}
