package balance

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

const measured = "../../../shared/data/lbb/batch-time-4gpu.csv"

func TestReadCurves(t *testing.T) {
	got, err := ReadCurves(strings.NewReader("\xef\xbb\xbfworker,batch,ms\r\na,2,10\r\na,4,20\r\na,4,22\r\nb,1,5\r\n"), "x")
	if err != nil || len(got) != 2 || got[0].Lo != 2 || !slices.Equal(got[0].Ms, []float64{10, 15.5, 21}) {
		t.Errorf("read %+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"":                             "header",
		"worker,batch\n":               `no column "ms"`,
		"worker,batch,ms\n":            "no rows",
		"worker,batch,ms\na,0,1\n":     `line 2: batch: "0"`,
		"worker,batch,ms\na,1,-1\n":    `line 2: ms: "-1"`,
		"worker,batch,ms\na,1,NaN\n":   `line 2: ms: "NaN"`,
		"worker,batch,ms\na,1,1\n,2,3": "line 3: worker",
	} {
		if _, err := ReadCurves(strings.NewReader(text), "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzReadCurves(f *testing.F) {
	f.Add([]byte("worker,batch,ms\na,2,10\na,4,20\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		curves, err := ReadCurves(bytes.NewReader(text), "x")
		for _, c := range curves {
			if err != nil || c.Lo < 1 || len(c.Ms) == 0 {
				t.Errorf("read %+v, %v", c, err)
			}
		}
	})
}

func lbb(t *testing.T) []Curve {
	t.Helper()
	f, err := os.Open(measured)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("../shared/data/lbb/batch-time-4gpu.csv is absent: the measured curves are not tried")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	curves, err := ReadCurves(f, measured)
	if err != nil {
		t.Fatal(err)
	}
	return curves
}

func TestOptimumOfMeasuredCurves(t *testing.T) {
	curves := lbb(t)
	// Found by an independent search.
	for x, want := range map[int]float64{256: 72.28, 128: 38.16} {
		if _, ms, err := Optimal(curves, x); err != nil || ms < want-0.05 || ms > want+0.05 {
			t.Errorf("optimum for %d: %v ms (%v), want %v", x, ms, err, want)
		}
	}
}

func TestOptimalPolicyIsTheOptimum(t *testing.T) {
	curves := []Curve{{"a", 1, []float64{1, 2, 3, 4}}, {"b", 1, []float64{2, 4, 3, 8}}}
	c := Curves{Workers: curves, GlobalBatch: 6, Policy: Best, Iterations: 20, Changes: []Change{{Iteration: 10, Worker: "a", Factor: 2}}}
	r, err := RunCurves(c)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Ms, r.OptimalMs) || r.Ms[0] != 3 || r.Ms[19] != 6 || r.Converged != 0 {
		t.Errorf("ms %v, converged %d", r.Ms, r.Converged)
	}
	for _, bad := range []Curves{
		{Workers: curves, GlobalBatch: 60, Policy: Best},
		{Workers: curves, GlobalBatch: 6, Policy: "magic"},
		{Workers: curves, GlobalBatch: 6, Policy: Best, Noise: -1},
		{Workers: curves, GlobalBatch: 6, Policy: Best, Changes: []Change{{Worker: "c", Factor: 1}}},
		{Workers: curves, GlobalBatch: 6, Policy: Best, Changes: []Change{{Worker: "a"}}},
	} {
		if _, err := RunCurves(bad); err == nil {
			t.Errorf("%+v was run", bad)
		}
	}
}
