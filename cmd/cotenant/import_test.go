package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/history/sqlstore"
)

// testFile is a golden input of history/formats.
func testFile(name string) string {
	return filepath.Join("..", "..", "history", "formats", "testdata", name)
}

// importing runs `cotenant import` with args.
func importing(t *testing.T, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	out, errs, code = cotenantWith(t, t.Context(), stdin, append([]string{"import"}, args...)...)
	return code, out, errs
}

func imported(t *testing.T, args ...string) []importRow {
	t.Helper()
	code, out, errs := importing(t, "", append(args, "-o", "json")...)
	if code != exitDone {
		t.Fatalf("import %q: exit %d: %s", args, code, errs)
	}
	var rows []importRow
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatalf("import %q: %v in %s", args, err, out)
	}
	return rows
}

func TestImportSamplesIntoEachForm(t *testing.T) {
	dir := t.TempDir()
	var want []byte
	for _, name := range []string{"x.jsonl", "x.jsonl.gz", "x.csv", "x.db"} {
		out := filepath.Join(dir, name)
		row := imported(t, "metis-csv", testFile("metis.csv"), "--class", "m5", "--out", out)[0]
		if row.Read != 6 || row.Duplicates != 1 || *row.Samples != 22 || *row.Cells != 16 || *row.Clashes != 0 || row.Out != out {
			t.Errorf("%s: %+v; want 6 rows, 1 duplicate, 22 samples of 16 cells", name, row)
		}
		if len(row.Workloads) != 3 || len(row.Classes) != 1 || row.Classes[0] != "m5" {
			t.Errorf("%s: workloads %v, classes %v", name, row.Workloads, row.Classes)
		}
		var got bytes.Buffer
		if name == "x.db" {
			store, err := sqlstore.Open(out)
			if err != nil {
				t.Fatal(err)
			}
			samples, err := store.All()
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			if err := formats.WriteJSONL(&got, samples); err != nil {
				t.Fatal(err)
			}
		} else {
			samples, _, err := formats.ReadFile(out, formats.Options{Strict: true}, formats.ReadSamples)
			if err != nil {
				t.Fatal(err)
			}
			if err := formats.WriteJSONL(&got, samples); err != nil {
				t.Fatal(err)
			}
		}
		if want == nil {
			want = got.Bytes()
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s holds\n%s\nwant\n%s", name, got.Bytes(), want)
		}
	}
	imported(t, "jsonl", filepath.Join(dir, "x.jsonl"), "--out", filepath.Join(dir, "x.db")) // a store is appended to
	store, err := sqlstore.Open(filepath.Join(dir, "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if all, err := store.All(); err != nil || len(all) != 44 {
		t.Errorf("%d samples (%v) after two imports; want 44", len(all), err)
	}
}

func TestImportToStdout(t *testing.T) {
	table, err := os.ReadFile(testFile("metis.csv"))
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs := importing(t, string(table), "metis-csv", "-", "--merge", "--out", "-")
	if code != exitDone {
		t.Fatalf("exit %d: %s", code, errs)
	}
	samples, _, err := formats.ReadJSONL(strings.NewReader(out), formats.Options{Strict: true})
	if err != nil || len(samples) != 16 {
		t.Errorf("%d samples (%v); want one a cell, 16", len(samples), err)
	}
	if !strings.Contains(errs, "CONTRADICTIONS") || !strings.Contains(errs, "standard input: p50 is 0 throughout for isr") {
		t.Errorf("stderr lacks the table or a warning:\n%s", errs)
	}
}

// The raw repeats of a profile are joined: their differences are its noise,
// and its alone-runs give the value alone.
func TestImportRepeats(t *testing.T) {
	const timed = `{"start":"2026-01-02T03:04:05Z","end":"2026-01-02T03:04:06Z","workload":"a","metric":"rate",`
	raw := file(t, "raw.jsonl", timed+`"colocation":{"a":1},"value":10}`+"\n"+timed+`"colocation":{"a":2},"value":4}`+"\n"+timed+`"colocation":{"a":2},"value":8}`+"\n")
	code, out, errs := importing(t, "", "jsonl", raw, "--strict", "--merge", "--out", "-")
	if code != exitDone || strings.Contains(errs, "contradict each other") {
		t.Fatalf("exit %d: %s", code, errs)
	}
	samples, _, err := formats.ReadJSONL(strings.NewReader(out), formats.Options{})
	if err != nil || len(samples) != 2 || samples[1].Value != 6 || samples[1].Alone != 10 || samples[1].Repeats != 2 {
		t.Errorf("%+v (%v); want 6 of 10, from 2 repeats", samples, err)
	}
}

func TestImportCluster(t *testing.T) {
	out := filepath.Join(t.TempDir(), "c.json")
	row := imported(t, "kubernetes", testFile("kubernetes.yaml"), "--out", out)[0]
	if *row.Nodes != 2 || *row.Devices != 4 || *row.Running != 1 || *row.Pending != 3 || len(row.Workloads) != 3 {
		t.Errorf("%+v; want 2 nodes, 4 devices, 1 running, 3 pending, 3 workloads", row)
	}
	c, _, err := formats.ReadFile(out, formats.Options{}, formats.ReadCluster)
	if err != nil || len(c.Nodes) != 2 || len(c.Pending) != 2 {
		t.Errorf("%d nodes, %d groups (%v) in the file", len(c.Nodes), len(c.Pending), err)
	}
	rows := imported(t, "openb", testFile("openb_nodes.csv"), testFile("openb_pods.csv"), "--out", out)
	if len(rows) != 2 || *rows[0].Nodes != 3 || *rows[0].Devices != 3 || *rows[1].Pods != 4 {
		t.Errorf("%+v; want 3 nodes, 3 devices, 4 pods", rows)
	}
	imported(t, "openb", testFile("openb_nodes.csv"), "--out", out)
	if c, _, err := formats.ReadFile(out, formats.Options{}, formats.ReadCluster); err != nil || len(c.Nodes) != 3 {
		t.Errorf("%d nodes (%v) in the file; want 3", len(c.Nodes), err)
	}
}

func TestImportFails(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const cell = `{"colocation":{"a":1},"workload":"a","metric":"rate","value":`
	clash := put("clash.jsonl", cell+"1}\n"+cell+"5}\n")
	bad := put("bad.jsonl", cell+"1}\n"+cell+"-5}\n")
	empty := put("empty.jsonl", "")
	only := put("only.csv", "redis,rps_redis\n-1,1\n")
	db := put("x.db", "this is no store")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{}, exitWrongUse, "needs one of"},
		{[]string{"metiss"}, exitWrongUse, `knows no "metiss"`},
		{[]string{"jsonl"}, exitWrongUse, "arg"},
		{[]string{"metis", "x.npz"}, exitWrongUse, "--columns is missing"},
		{[]string{"jsonl", bad, "-o", "xml"}, exitWrongUse, "xml"},
		{[]string{"jsonl", bad, "--out", filepath.Join(dir, "x.txt")}, exitWrongUse, "x.txt"},
		{[]string{"jsonl", bad, "--max-size", "big"}, exitWrongUse, "--max-size big"},
		{[]string{"jsonl", bad, "--max-size", "10"}, exitFailed, "larger than allowed"},
		{[]string{"jsonl", filepath.Join(dir, "none.jsonl")}, exitFailed, "there is no file"},
		{[]string{"jsonl", empty}, exitFailed, "empty.jsonl: no samples: nothing in it"},
		{[]string{"jsonl", bad, "--strict"}, exitFailed, "bad.jsonl: line 2: value: -5"},
		{[]string{"jsonl", clash, "--strict"}, exitFailed, "clash.jsonl: lines 1 and 2 contradict"},
		{[]string{"metis-csv", only}, exitFailed, "bad records"},
		{[]string{"jsonl", clash, "--out", db}, exitFailed, "not an SQLite file"},
		{[]string{"kubernetes", bad}, exitFailed, "nodes and pods"},
	} {
		out := filepath.Join(dir, "out.jsonl")
		args := c.args
		if len(args) > 1 && !strings.Contains(strings.Join(args, " "), "--out") {
			args = append(append([]string{}, args...), "--out", out)
		}
		code, _, errs := importing(t, "", args...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("import %q: exit %d, %s; want %d and %q", c.args, code, errs, c.code, c.want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("import %q failed and left a file", c.args)
		}
	}
	code, out, errs := importing(t, "", "jsonl", clash)
	if code != exitDone || !strings.Contains(errs, "lines 1 and 2 contradict each other: rate of a in a") || !strings.Contains(out, "CONTRADICTIONS") {
		t.Errorf("a contradiction: exit %d, %s %s; want it named", code, out, errs)
	}
	// What is hardly the file is told of last; what is mostly the file is not.
	const little = "hardly.jsonl: only 1 of 3 records were taken in, the other 2 are bad"
	hardly := put("hardly.jsonl", cell+"1}\n"+cell+"-5}\n"+cell+"-6}\n")
	if code, _, errs := importing(t, "", "jsonl", hardly); code != exitDone || !strings.Contains(errs[strings.LastIndex(strings.TrimSpace(errs), "\n")+1:], little) {
		t.Errorf("exit %d, and the last line of %q is not %q", code, errs, little)
	}
	if code, _, errs := importing(t, "", "jsonl", bad); code != exitDone || strings.Contains(errs, "only 1 of 2") {
		t.Errorf("half of the file: exit %d, %s", code, errs)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestImportJobs(t *testing.T) {
	row := imported(t, "gavel", testFile("gavel.json"))[0]
	if row.Read != 19 || *row.Samples != 16 || strings.Join(row.Classes, " ") != "k80 v100" || len(row.Workloads) != 5 {
		t.Errorf("gavel: %+v; want 16 samples of 19 rates, of k80 and v100", row)
	}
	recommends := file(t, "r.json", `{"v100": {"A3C": {"null": 7, "Recommendation (batch size 512)": [1, 2]}, "Recommendation (batch size 512)": {"null": 23}}}`)
	if row := imported(t, "gavel", recommends)[0]; *row.Samples != 1 || !strings.Contains(strings.Join(row.Warnings, ""), "excluded recommendation: 2") {
		t.Errorf("without --exclude: %+v; want Recommendation left out", row)
	}
	if row := imported(t, "gavel", recommends, "--exclude", "")[0]; *row.Samples != 4 {
		t.Errorf("with --exclude '': %+v; want all", row)
	}
	if row := imported(t, "dl2", testFile("dl2.txt"), "--class", "gtx1080ti")[0]; *row.Samples != 3 || row.Duplicates != 1 || row.Classes[0] != "gtx1080ti" {
		t.Errorf("dl2: %+v; want 3 samples", row)
	}
}
