package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// twoCurves is a fast worker and one that is three times slower.
func twoCurves(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("worker,batch,ms\n")
	for x := 1; x <= 90; x++ {
		fmt.Fprintf(&b, "fast,%d,%d\nslow,%d,%d\n", x, 5+x, x, 15+3*x)
	}
	return file(t, "curves.csv", b.String())
}

func TestSimulateBalanceOnCurves(t *testing.T) {
	curves := twoCurves(t)
	out, errs, code := cotenant(t, "simulate", "balance", "--curves", curves, "--global-batch", "40:200:80", "--iterations", "120",
		"--change", "60:fast=x2", "-o", "json")
	if code != exitDone {
		t.Fatalf("exit %d: %s", code, errs)
	}
	if !strings.Contains(errs, "left out 1 ") {
		t.Errorf("200 is out of reach; stderr says %q", errs)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 8 {
		t.Fatalf("%d rows, want 4 policies x 2 batch sizes", len(rows))
	}
	for _, r := range rows {
		for _, field := range []string{"policy", "global_batch", "seed", "iteration_ms", "optimal_ms", "total_ms", "shares", "iterations_to_converge"} {
			if _, ok := r[field]; !ok {
				t.Errorf("%v lacks %s", r, field)
			}
		}
		ms, best := r["iteration_ms"].(float64), r["optimal_ms"].(float64)
		switch r["policy"] {
		case "optimal":
			if ms != best {
				t.Errorf("optimal takes %v, the least is %v", ms, best)
			}
		case "equal":
			if ms < 1.2*best {
				t.Errorf("equal shares take %v, the least is %v", ms, best)
			}
		case "cotenant":
			if ms > 1.05*best {
				t.Errorf("cotenant takes %v, the least is %v", ms, best)
			}
		}
	}
}

func TestSimulateBalanceTrains(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	out, errs, code := cotenant(t, "simulate", "balance", "--workers", "3", "--samples", "3000", "--global-batch", "30", "--out", dir)
	if code != exitDone {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{"bsp", "asp", "ssp", "flexrr", "lb-bsp"} {
		if !strings.Contains(out, "\n"+want+" ") {
			t.Errorf("no line of %s in\n%s", want, out)
		}
	}
	for _, name := range []string{"manifest.json", "runs.csv", "loss.csv"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestSimulateBalanceWrongUse(t *testing.T) {
	curves := twoCurves(t)
	for _, args := range [][]string{
		{"--global-batch", "0"},
		{"--global-batch", "1:2"},
		{"--global-batch", "5:1:1"},
		{"--policy", "magic"},
		{"--kind", "magic"},
		{"--problem", "magic"},
		{"--seeds", "0"},
		{"--change", "1:a=b"},
		{"--curves", curves, "--change", "soon"},
		{"--curves", curves, "--change", "300:a=x2"},
		{"--curves", curves, "--policy", "bsp"},
		{"--curves", curves, "--iterations", "0"},
		{"--curves", curves, "--delay", "-1"},
		{"--curves", curves, "--noise", "NaN"},
		{"--rate", "1e300"},
		{"--rate", "NaN"},
		{"--rate", "0"},
		{"--step", "1e-300"},
		{"--communicate", "Inf"},
		{"--overhead", "-1"},
		{"--staleness", "0"},
		{"-o", "xml"},
	} {
		if _, errs, code := cotenant(t, append([]string{"simulate", "balance"}, args...)...); code != exitWrongUse {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}
	for _, args := range [][]string{
		{"--curves", curves, "--global-batch", "500"},
		{"--curves", curves, "--global-batch", "50", "--change", "5:nobody=x2"},
		{"--curves", curves, "--global-batch", "500:600:50"},
		{"--curves", "nowhere.csv"},
	} {
		if _, errs, code := cotenant(t, append([]string{"simulate", "balance"}, args...)...); code != exitFailed {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}
}

// TestSimulateBalanceRefusesWhatItWouldIgnore gives each flag of one kind of
// run beside the other kind.
func TestSimulateBalanceRefusesWhatItWouldIgnore(t *testing.T) {
	curves := twoCurves(t)
	refused := func(flag, value string, beside ...string) {
		t.Helper()
		_, errs, code := cotenant(t, append([]string{"simulate", "balance", "--" + flag, value}, beside...)...)
		if want := "--" + flag + " " + value + ": "; code != exitWrongUse || !strings.Contains(errs, want) || !strings.Contains(errs, "leave ") {
			t.Errorf("%s %v: exit %d: %q, want %d and %q with a remedy", flag, beside, code, errs, exitWrongUse, want)
		}
	}
	for _, flag := range tracesFlags {
		value := "4"
		switch flag {
		case "traces":
			value = "speeds.csv"
		case "kind":
			value = "static"
		case "problem":
			value = "perceptron"
		case "predictor":
			value = "ema"
		}
		refused(flag, value, "--curves", curves)
	}
	refused("noise", "0.1")
	refused("change", "60:fast=x2")
	refused("iterations", "50")
	refused("delay", "2")
	refused("workers", "4", "--traces", "speeds.csv")
	refused("kind", "static", "--traces", "speeds.csv")

	// All of them at once, and none but them.
	_, errs, _ := cotenant(t, "simulate", "balance", "--curves", curves, "--rate", "0.5", "--workers", "8", "--noise", "0.1")
	for flag, want := range map[string]bool{"--rate 0.5": true, "--workers 8": true, "--noise": false, "--kind": false} {
		if strings.Contains(errs, flag) != want {
			t.Errorf("%s in the error: want %v: %s", flag, want, errs)
		}
	}
}

func TestSimulateBalanceSaysThatARunDiverged(t *testing.T) {
	train := func(rate string) ([]map[string]any, string) {
		t.Helper()
		out, errs, code := cotenant(t, "simulate", "balance", "--workers", "3", "--samples", "3000", "--global-batch", "30", "--rate", rate, "-o", "json")
		if code != exitDone {
			t.Fatalf("exit %d: %s", code, errs)
		}
		var rows []map[string]any
		if err := json.Unmarshal([]byte(out), &rows); err != nil {
			t.Fatal(err)
		}
		return rows, errs
	}
	rows, errs := train("900")
	if !strings.Contains(errs, "5 of 5 runs diverged (bsp, asp, ssp, flexrr, lb-bsp)") || !strings.Contains(errs, "give a lower --rate than 900") {
		t.Errorf("at rate 900 stderr says %q", errs)
	}
	for _, r := range rows {
		if r["to_loss_ms"] != nil {
			t.Errorf("%s diverged, and yet came to a loss in %v ms", r["policy"], r["to_loss_ms"])
		}
	}
	if rows, errs := train("0.5"); strings.Contains(errs, "diverged") || rows[0]["to_loss_ms"] == nil {
		t.Errorf("at rate 0.5: %v, stderr %q", rows[0], errs)
	}
}

// TestSimulateBalanceSaysItsWindows: the legend names the iterations that were
// judged, not those of a long run.
func TestSimulateBalanceSaysItsWindows(t *testing.T) {
	curves := twoCurves(t)
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"FIRST 30 ", "Settled: iterations 100 to 299. Back and after: none, nothing changes."}},
		{[]string{"--iterations", "20"}, []string{"FIRST 20 ", "Settled: iterations 10 to 19."}},
		{[]string{"--iterations", "1"}, []string{"FIRST 1 ", "Settled: iterations 0 to 0."}},
		{
			[]string{"--iterations", "300", "--change", "200:fast=x2"},
			[]string{"Settled: iterations 100 to 199, before any change. Back: 230 to 239, from the 30th after the last one. After: 240 to 299."},
		},
		{
			[]string{"--iterations", "75", "--change", "40:fast=x2"},
			[]string{"Settled: iterations 20 to 39, ", "Back: 70 to 74, ", "After: none, the run is too short."},
		},
		{
			[]string{"--iterations", "60", "--change", "40:fast=x2"},
			[]string{"Back: none, the run is too short, ", "After: none, the run is too short."},
		},
	} {
		out, errs, code := cotenant(t, append([]string{"simulate", "balance", "--curves", curves, "--global-batch", "40", "--policy", "equal,optimal"}, c.args...)...)
		if code != exitDone {
			t.Fatalf("%v: exit %d: %s", c.args, code, errs)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%v: no %q in\n%s", c.args, want, out)
			}
		}
	}
}
