package interference

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/cluster"
)

// The exported file must answer what Predict answers, in a runtime that knows
// nothing of this program.
func TestONNXAgreesWithOnnxruntime(t *testing.T) {
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	if out, err := exec.Command(python, "-c", "import onnxruntime").CombinedOutput(); err != nil {
		t.Skipf("%s has no onnxruntime (pip install onnxruntime; PYTHON=...): %v %s", python, err, bytes.TrimSpace(out))
	}
	for _, kind := range []string{KindLinear, KindNeural} {
		for _, classes := range [][]string{{""}, {"a", "b"}} {
			m, err := Fit(kind, someSamples(classes...), Options{Seed: 2, Steps: 200, PredictedOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			model, notes, err := ExportONNX(m)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "model.onnx")
			if err := os.WriteFile(file, model, 0o600); err != nil {
				t.Fatal(err)
			}
			compareONNX(t, python, file, notes, m, probes)
		}
	}
	m, err := Fit(KindNeural, pairSamples("k80", "v100"), Options{Seed: 2, Steps: 60, PredictedOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if m.(*fitted).core.(*neural).kin == nil {
		t.Fatal("no kin: the test shows nothing of them")
	}
	model, notes, err := ExportONNX(m)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(file, model, 0o600); err != nil {
		t.Fatal(err)
	}
	compareONNX(t, python, file, notes, m, []cluster.Colocation{
		{"cnn/16": 1}, {"cnn/16": 2}, {"cnn/32": 1, "rnn/128": 1}, {"cnn/32": 2, "rnn/128": 3, "vit/16": 1},
	})
}

func compareONNX(t *testing.T, python, file string, notes []byte, m Model, probes []cluster.Colocation) {
	t.Helper()
	var n onnxNotes
	if err := json.Unmarshal(notes, &n); err != nil {
		t.Fatal(err)
	}
	type ask struct {
		Counts [][]int `json:"counts"`
		Class  []int   `json:"class"`
	}
	var a ask
	var rows []int
	for class := range n.Classes {
		for i, c := range probes {
			counts := make([]int, len(n.Workloads))
			known := len(c) > 0
			for w, k := range c {
				at := slices.Index(n.Workloads, w)
				if at < 0 {
					known = false
					continue
				}
				counts[at] = k
			}
			if known {
				a.Counts, a.Class, rows = append(a.Counts, counts), append(a.Class, class), append(rows, i)
			}
		}
	}
	in, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "testdata/run_onnx.py", file)
	cmd.Stdin = bytes.NewReader(in)
	var errs strings.Builder
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", m.Kind(), err, errs.String())
	}
	var got struct{ Ratio, Std [][]float64 }
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for r, i := range rows {
		for o, out := range n.Outputs {
			for _, metric := range metrics {
				if string(metric) != out.Metric || probes[i][out.Workload] == 0 || !out.Known[a.Class[r]] {
					continue
				}
				e := m.Predict(n.Classes[a.Class[r]], metric, probes[i:i+1])[0][slices.Index(probes[i].Workloads(), out.Workload)]
				if abs(e.Value-got.Ratio[r][o]) > 1e-4 || abs(e.Std-got.Std[r][o]) > 1e-4 {
					t.Errorf("%s, %s of %s in %s: %g +- %g here, %g +- %g in onnxruntime", m.Kind(), metric, out.Workload, probes[i].Key(), e.Value, e.Std, got.Ratio[r][o], got.Std[r][o])
				}
				compared++
			}
		}
	}
	if compared < 7 {
		t.Errorf("%s: only %d values were compared", m.Kind(), compared)
	}
}

func TestONNXIsRefusedForTablesAndForests(t *testing.T) {
	for _, kind := range []string{KindTable, KindForest} {
		m, err := Fit(kind, someSamples(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := ExportONNX(m); err == nil || !strings.Contains(err.Error(), "neural or linear") {
			t.Errorf("%s: error is %v", kind, err)
		}
	}
}
