package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/profile"
)

// tickers is a suite of two shell loops.
const tickers = `name: tickers
measure: {warm_up: 10ms, window: 100ms, repeats: 2, alone_every: 0}
workloads:
  - name: tick
    driver: 'while sleep 0.01; do echo tick; done'
    read:
      rate: {match: ^tick, each: 1}
  - name: tock
    needs: [{program: sleep, package: coreutils}]
    driver: 'while sleep 0.02; do echo tick; done'
    read:
      rate: {match: ^tick, each: 1}
`

func TestProfileMeasuresOnceAndPrints(t *testing.T) {
	suite := file(t, "suite.yaml", tickers)
	record := filepath.Join(t.TempDir(), "samples.jsonl")
	args := []string{"profile", "--suite", suite, "--out", record, "--work", t.TempDir(), "--limits", "off", "-o", "json"}
	out, errs, code := cotenant(t, args...)
	if code != exitDone {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var rows []struct {
		Colocation  map[string]int
		Workload    string
		Repeats     int
		Performance *float64
	}
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	// tick, tock, tick*2, tick+tock (two cells), tock*2.
	if len(rows) != 6 {
		t.Fatalf("%d rows: %s", len(rows), out)
	}
	for _, r := range rows {
		if r.Repeats != 2 || r.Performance == nil || *r.Performance < .3 || *r.Performance > 3 {
			t.Errorf("%+v", r)
		}
	}
	before, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	again, errs, code := cotenant(t, args...)
	after, _ := os.ReadFile(record)
	if code != exitDone || again != out || string(after) != string(before) {
		t.Errorf("a complete record was not left alone: exit %d: %s", code, errs)
	}
	table, _, code := cotenant(t, append(args, "-o", "table")...)
	if code != exitDone || !strings.Contains(table, "COLOCATION") || !strings.Contains(table, "NOISE OF") {
		t.Errorf("exit %d, table:\n%s", code, table)
	}
}

// What an interrupted profile leaves says how it is finished, to whoever reads
// it, and no more once it is.
func TestAnUnfinishedProfileSaysHowToFinishIt(t *testing.T) {
	suite := file(t, "suite.yaml", tickers)
	record := filepath.Join(t.TempDir(), "samples.jsonl")
	args := []string{"profile", "--suite", suite, "--out", record, "--work", t.TempDir(), "--limits", "off"}
	fit := []string{"fit", "--samples", record, "--model", "linear"}
	finish := "cotenant profile --limits=off --out=" + record + " --suite=" + suite
	_, errs, code := cotenant(t, append(args, "--max-duration", "600ms")...)
	if code != exitDone || !strings.Contains(errs, finish) {
		t.Fatalf("paused: exit %d: %s", code, errs)
	}
	if _, errs, _ := cotenant(t, fit...); !strings.Contains(errs, "its profile was stopped before the end") || !strings.Contains(errs, "finish it with: "+finish) {
		t.Errorf("what reads it says %q", errs)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, errs, code := cotenantWith(t, ctx, "", args...); code != exitFailed || !strings.Contains(errs, "cotenant: interrupted; what was finished is on record; go on with: "+finish) {
		t.Errorf("interrupted: exit %d: %s", code, errs)
	}
	// On a machine that others keep busy a window may be too short for a reading;
	// the same command goes on.
	for tries := 1; ; tries++ {
		_, errs, code := cotenant(t, args...)
		if code == exitDone {
			break
		}
		if tries == 10 || !strings.Contains(errs, "no complete reading") {
			t.Fatalf("exit %d: %s", code, errs)
		}
	}
	if _, errs, code := cotenant(t, fit...); code != exitDone || strings.Contains(errs, "stopped before") {
		t.Errorf("finished, what reads it ends with %d and says %q", code, errs)
	}
}

// A cell outside is no success, and no failure where chance explains it.
func TestVerifyExitCodes(t *testing.T) {
	checks := make([]profile.Check, 40)
	for i := range checks {
		checks[i].Within = true
	}
	f := profileFlags{output: "json"}
	for _, c := range []struct {
		outside int
		want    int
	}{{0, exitDone}, {1, exitOutside}, {profile.Allowed(40), exitOutside}, {profile.Allowed(40) + 1, exitFailed}} {
		for i := range c.outside {
			checks[i].Within = false
		}
		err := f.printChecks(io.Discard, checks)
		if got := exitOf(err); got != c.want {
			t.Errorf("%d outside: exit %d (%v); want %d", c.outside, got, err, c.want)
		}
	}
}

// Cells that nothing tells the spread of are neither within nor outside.
func TestUnknownSpreadsAreNotJudged(t *testing.T) {
	checks := []profile.Check{
		{Workload: "a", Recorded: 10, Now: 10, Spread: 1, Tolerance: 2, Repeats: 3, Within: true},
		{Workload: "a", Recorded: 10, Now: 11, Spread: 1, Tolerance: 2, Repeats: 1, Borrowed: true, Within: true},
		{Workload: "b", Recorded: 10, Now: 11, Repeats: 1, Unknown: true},
	}
	var table, rows strings.Builder
	if err := (&profileFlags{output: "table"}).printChecks(&table, checks); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"spread unknown", "(10.0%)", "0 of 2 cells outside; chance allows 1; 1 more could not be judged"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, &table)
		}
	}
	if err := (&profileFlags{output: "json"}).printChecks(&rows, checks); err != nil {
		t.Error(err)
	}
	if n := strings.Count(rows.String(), `"spread":null,"tolerance":null,"within":null`); n != 1 {
		t.Errorf("%d rows without a verdict, want 1:\n%s", n, &rows)
	}
	if err := (&profileFlags{output: "json"}).printChecks(io.Discard, checks[2:]); exitOf(err) != exitFailed || !strings.Contains(err.Error(), "none of 1 cells could be judged") {
		t.Errorf("nothing judged: %v", err)
	}
}

// A record with one repeat a cell shows what is not known as such.
func TestProfileOfOneRepeat(t *testing.T) {
	const line = `{"source":"profile","start":"2026-01-02T03:04:05Z","end":"2026-01-02T03:04:06Z","colocation":%s,"workload":"a","metric":"rate","value":%g,"repeats":1}`
	samples, _, err := formats.ReadJSONL(strings.NewReader(fmt.Sprintf(line+"\n"+line, `{"a":1}`, 10., `{"a":1,"b":1}`, 10.)), formats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var table, rows strings.Builder
	if err := (&profileFlags{output: "table"}).print(&table, samples); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(table.String(), "0.0%") || strings.Contains(table.String(), "0.000") || strings.Contains(table.String(), "NaN") {
		t.Errorf("an unknown spread is not shown as unknown:\n%s", &table)
	}
	if err := (&profileFlags{output: "json"}).print(&rows, samples); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(rows.String(), `"spread":null,"performance":1,"performance_error":null,"within_noise":null`); n != 2 {
		t.Errorf("%d of 2 rows say that the spread is unknown:\n%s", n, &rows)
	}
}

func TestProfileWrongUse(t *testing.T) {
	suite := file(t, "suite.yaml", tickers)
	bad := file(t, "bad.yaml", strings.Replace(tickers, "driver:", "drivr:", 1))
	missing := file(t, "missing.yaml", strings.Replace(tickers, "program: sleep", "program: no-such-program", 1))
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--workloads", "tick,tack"}, exitWrongUse, `"tack" is not in the suite; it has tick, tock`},
		{[]string{"--workloads", "tick,tick"}, exitWrongUse, `"tick" is given twice`},
		{[]string{"--colocations", "tick*x"}, exitWrongUse, `--colocations: co-location "tick*x"`},
		{[]string{"--colocations", "tick+tack"}, exitWrongUse, `"tack" is not in the suite`},
		{[]string{"--up-to", "0"}, exitWrongUse, "--up-to 0"},
		{[]string{"--choose", "-1"}, exitWrongUse, "--choose -1"},
		{[]string{"--window", "0s"}, exitWrongUse, "--window 0s"},
		{[]string{"--repeats", "0"}, exitWrongUse, "--repeats 0"},
		{[]string{"--limits", "maybe"}, exitWrongUse, "--limits maybe: none of auto, require, off"},
		{[]string{"-o", "xml"}, exitWrongUse, "--output xml"},
		{[]string{"--verify", "3"}, exitFailed, "verify: the record has no co-location"},
		{[]string{"--suite", bad}, exitFailed, "bad.yaml: yaml: unmarshal errors:\n  line 5: field drivr not found"},
		{[]string{"--suite", missing}, exitFailed, "workload tock needs no-such-program; apt-get install coreutils"},
		{[]string{"--suite", "absent.yaml"}, exitFailed, "absent.yaml"},
	} {
		args := append([]string{"profile", "--suite", suite, "--out", filepath.Join(t.TempDir(), "s.jsonl"), "--work", t.TempDir()}, c.args...)
		_, errs, code := cotenant(t, args...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit %d, want %d: %s, want %q", c.args, code, c.code, errs, c.want)
		}
	}
}
