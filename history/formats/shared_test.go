package formats

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/history"
)

// metisColumns is the column order of the files in ../shared/data/metis.
var metisColumns = []string{"redis", "mms", "checksum", "isr", "ycsb_a", "ycsb_b", "scenedetect"}

// sharedData reads a file of the measured data that lies beside the
// repository, or skips.
func sharedData(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "data", name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("../shared/data/%s is absent: nothing to read", name)
	}
	return path
}

func readShared[T any](t testing.TB, name string, o Options, read func(io.Reader, Options) (T, Report, error)) (T, Report) {
	t.Helper()
	got, rep, err := ReadFile(sharedData(t, name), o, read)
	if err != nil {
		t.Fatal(err)
	}
	return got, rep
}

// The npz and its plain rewrite, which keeps six digits, are the same samples.
func TestMetisNPZAndCSVAgree(t *testing.T) {
	npz, nrep := readShared(t, "metis/colocation-6435.npz", Options{Columns: metisColumns, Strict: true}, ReadMetisNPZ)
	csv, crep := readShared(t, "metis/colocation-6435.csv", Options{Strict: true}, ReadMetisCSV)
	if nrep.Read != 6435 || crep.Read != 6435 || nrep.Skipped+crep.Skipped+nrep.Duplicates+crep.Duplicates != 0 {
		t.Errorf("reports %+v and %+v; want 6435 rows each, none skipped", nrep, crep)
	}
	var rates []history.Sample
	latency := map[string]int{}
	for _, s := range csv {
		if s.Metric == history.Rate {
			rates = append(rates, s)
		} else {
			latency[string(s.Metric)+" "+s.Workload]++
			if s.Alone == 0 {
				t.Fatalf("no value alone: %+v", s)
			}
		}
	}
	if len(rates) != len(npz) {
		t.Fatalf("%d rates in the CSV, %d in the npz", len(rates), len(npz))
	}
	for i, s := range npz {
		if math.Abs(s.Value-rates[i].Value) > 1e-5*s.Value {
			t.Fatalf("sample %d: %g in the npz, %g in the CSV", i, s.Value, rates[i].Value)
		}
		s.Value = rates[i].Value
		if !reflect.DeepEqual(s, rates[i]) {
			t.Fatalf("sample %d: %+v in the npz, %+v in the CSV", i, s, rates[i])
		}
	}
	if len(latency) != 10 || latency["p99 isr"] != 0 || latency["p50 ycsb_a"] != 0 {
		t.Errorf("latencies of %v; want two metrics of 5 workloads", latency)
	}
	warnings := strings.Join(append(nrep.Warnings, crep.Warnings...), "\n")
	for _, want := range []string{"rt_50 holds pickled", "rt_99 holds pickled", "p50 is 0 throughout for isr, ycsb_a", "p99 is 0 throughout", "rows without a task: 1"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("no warning %q in:\n%s", want, warnings)
		}
	}
}

func TestMetisSmallerFiles(t *testing.T) {
	_, rep := readShared(t, "metis/colocation-2008-median.npz", Options{Columns: metisColumns, Strict: true}, ReadMetisNPZ)
	if rep.Read != 2008 || rep.Duplicates != 684 {
		t.Errorf("%d rows, %d duplicates; want 2008 and 684", rep.Read, rep.Duplicates)
	}
	samples, rep := readShared(t, "metis/colocation-322.npz", Options{Columns: metisColumns, Strict: true}, ReadMetisNPZ)
	if rep.Read != 322 {
		t.Errorf("%d rows; want 322", rep.Read)
	}
	if got := history.Summarise(samples); len(got.Contradictions) != 0 || got.Duplicates == 0 {
		t.Errorf("%d contradictions, %d duplicates; want none and some", len(got.Contradictions), got.Duplicates)
	}
}

func TestBatchesOfMetis(t *testing.T) {
	b, rep := readShared(t, "metis/batches-200.csv", Options{Strict: true}, ReadBatches)
	if rep.Read != 20 || len(rep.Warnings) != 0 {
		t.Errorf("report %+v; want 20 rows", rep)
	}
	row, err := b.Row(0)
	want := map[string]int{"redis": 27, "mms": 32, "checksum": 12, "isr": 37, "ycsb_a": 30, "ycsb_b": 34, "scenedetect": 28}
	if err != nil || !reflect.DeepEqual(row, want) {
		t.Errorf("row 0: %v (%v); want %v", row, err, want)
	}
}

func TestOpenbTrace(t *testing.T) {
	nodes, rep := readShared(t, "openb/openb_node_list_gpu_node.csv", Options{Strict: true}, ReadOpenbNodes)
	gpus := 0
	for _, n := range nodes {
		gpus += len(n.Devices)
	}
	if rep.Read != 1213 || gpus != 6212 {
		t.Errorf("%d nodes, %d devices; want 1213 and 6212", rep.Read, gpus)
	}
	pods, rep := readShared(t, "openb/openb_pod_list_default.csv", Options{Strict: true}, ReadOpenbPods)
	if len(pods) != 8152 || rep.Duplicates != 0 {
		t.Errorf("%d pods, %+v; want 8152", len(pods), rep)
	}
	t.Log(rep.Warnings)
}

// Reading the largest table is to be done well within 0.3 s.
func BenchmarkMetisNPZ(b *testing.B) {
	path := sharedData(b, "metis/colocation-6435.npz")
	for b.Loop() {
		if _, _, err := ReadFile(path, Options{Columns: metisColumns}, ReadMetisNPZ); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMetisCSV(b *testing.B) {
	path := sharedData(b, "metis/colocation-6435.csv")
	for b.Loop() {
		if _, _, err := ReadFile(path, Options{}, ReadMetisCSV); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkJSONL(b *testing.B) {
	samples, _ := readShared(b, "metis/colocation-6435.csv", Options{}, ReadMetisCSV)
	path := filepath.Join(b.TempDir(), "x.jsonl")
	if err := WriteFile(path, func(w io.Writer) error { return WriteJSONL(w, samples) }); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	start := time.Now()
	for b.Loop() {
		if _, _, err := ReadFile(path, Options{}, ReadJSONL); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(samples)*b.N)/time.Since(start).Seconds(), "samples/s")
}
