package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/interference"
)

// model fits a model on a file of samples and saves it.
func model(t testing.TB, kind, samples string) string {
	t.Helper()
	var log bytes.Buffer
	f := sourceFlags{samples: samples}
	all, err := f.readSamples(&inputs{}, &log)
	if err != nil {
		t.Fatal(err)
	}
	m, err := interference.Fit(kind, all, interference.Options{PredictedOnly: kind != interference.KindTable})
	if err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	if err := interference.Save(&content, m); err != nil {
		t.Fatal(err)
	}
	return file(t, kind+".cotenant", content.String())
}

func TestPoliciesSeeTheModelAndTheTruthJudges(t *testing.T) {
	linear := model(t, interference.KindLinear, "testdata/samples.jsonl")
	type object struct {
		ValuePredicted *float64 `json:"value_predicted"`
		ValueTrue      *float64 `json:"value_true"`
		BoundOn        string   `json:"bound_on"`
		Bound          *float64
		Share          *float64
		Proven         bool
	}
	plan := func(args ...string) object {
		t.Helper()
		out, errs, code := cotenant(t, append([]string{
			"plan", "services", "--batch", "testdata/batch.csv", "--nodes", "3", "--slots", "3", "--policy", "greedy-search", "-o", "json",
		}, args...)...)
		if code != 0 {
			t.Fatalf("exit %d: %s", code, errs)
		}
		var objects []object
		if err := json.Unmarshal([]byte(out), &objects); err != nil {
			t.Fatal(err)
		}
		o := objects[0]
		if o.ValuePredicted == nil || o.Bound == nil || o.Share == nil || !o.Proven {
			t.Fatalf("%s lacks something", out)
		}
		return o
	}
	alone := plan("--model", linear)
	if alone.ValueTrue != nil || alone.BoundOn != "model" {
		t.Errorf("on a model alone: value_true %v, bound_on %q; want null and model", alone.ValueTrue, alone.BoundOn)
	}
	if got, want := *alone.Share, *alone.ValuePredicted / *alone.Bound; got != want {
		t.Errorf("on a model alone: share %g; want %g", got, want)
	}
	both := plan("--model", linear, "--samples", "testdata/samples.jsonl")
	if both.ValueTrue == nil || *both.ValueTrue == *both.ValuePredicted || both.BoundOn != "truth" {
		t.Errorf("on a model and the truth: %+v", both)
	}
	if got, want := *both.Share, *both.ValueTrue / *both.Bound; got != want {
		t.Errorf("on a model and the truth: share %g; want %g", got, want)
	}
	if *both.ValuePredicted != *alone.ValuePredicted {
		t.Error("the truth changed what the policy saw")
	}
}

// A bare prediction holds no measurements, so there is nothing for the policy
// measured; that is no failure of the default.
func TestMeasuredIsLeftOutWhereNothingWas(t *testing.T) {
	linear := model(t, interference.KindLinear, "testdata/samples.jsonl")
	out, errs, code := cotenant(t, "plan", "services", "--model", linear, "--batch", "testdata/batch.csv", "--nodes", "3", "--slots", "3")
	if code != 0 || strings.Contains(out, "measured") || !strings.Contains(errs, "policy measured is left out") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, out, errs)
	}
}

func TestBadModels(t *testing.T) {
	good := model(t, interference.KindForest, "testdata/samples.jsonl")
	content, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(content)
	flipped[len(flipped)-1] ^= 1
	newer := bytes.Replace(content, []byte(`"format_version":"2"`), []byte(`"format_version":"9"`), 1)
	for name, c := range map[string]struct {
		content []byte
		want    []string
	}{
		"cut off": {content[:len(content)/2], []string{"truncated", "copy it again"}},
		"damaged": {flipped, []string{"checksum", "copy it again"}},
		"empty":   {nil, []string{"not a Cotenant model file", "cotenant fit"}},
		"newer":   {newer, []string{"format_version 9 is newer than 2", "upgrade"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t, "m.cotenant", string(c.content))
			out, errs, code := cotenant(t, "plan", "services", "--model", path, "--batch", "testdata/batch.csv", "--nodes", "3", "--slots", "3")
			if code != exitFailed || out != "" {
				t.Errorf("exit %d, stdout %q; want 1 and nothing", code, out)
			}
			for _, want := range append(c.want, "--model "+path) {
				if !strings.Contains(errs, want) {
					t.Errorf("stderr %q lacks %q", errs, want)
				}
			}
		})
	}
}

func TestAModelOfOtherWorkloads(t *testing.T) {
	samples := file(t, "other.jsonl", `{"colocation":{"redis":1},"workload":"redis","metric":"rate","value":1,"alone":1}
{"colocation":{"redis":2},"workload":"redis","metric":"rate","value":0.9,"alone":1}
`)
	path := model(t, interference.KindTable, samples)
	_, errs, code := cotenant(t, "plan", "services", "--model", path, "--samples", "testdata/samples.jsonl", "--batch", "testdata/batch.csv", "--nodes", "3")
	if code != exitFailed {
		t.Errorf("exit %d; want 1", code)
	}
	for _, want := range []string{"cache (column 1)", "model " + path, ".cotenant: redis;", "fitted on other workloads", "fit one"} {
		if !strings.Contains(errs, want) {
			t.Errorf("stderr %q lacks %q", errs, want)
		}
	}
}

func TestAModelSaysHowManyWereMeasuredTogether(t *testing.T) {
	path := model(t, interference.KindLinear, "testdata/samples.jsonl") // up to 3
	batch := file(t, "b.csv", "cache,train,web\n4,4,2\n")
	_, errs, code := cotenant(t, "plan", "services", "--model", path, "--batch", batch, "--nodes", "3")
	if code != exitFailed || !strings.Contains(errs, "10 tasks") || !strings.Contains(errs, "9 free slots") {
		t.Errorf("exit %d, stderr %q", code, errs)
	}
	if _, errs, code := cotenant(t, "plan", "services", "--model", path, "--batch", batch, "--nodes", "3", "--slots", "4"); code != exitDone {
		t.Errorf("with --slots: exit %d, stderr %q", code, errs)
	}
}

func TestWhatShipsIsTheDefault(t *testing.T) {
	batch := file(t, "b.csv", "redis,nginx,stream\n3,3,2\n")
	out, errs, code := cotenant(t, "plan", "services", "--batch", batch, "--nodes", "3", "--policy", "greedy,bound", "-o", "csv")
	if code != 0 || strings.Count(out, "truth,true") != 2 {
		t.Errorf("exit %d, stdout %q, stderr %q", code, out, errs)
	}
}

// A snapshot of a cluster: pods that wait are placed beside those that run.
func TestPlanOnASnapshot(t *testing.T) {
	snapshot := file(t, "cluster.json", `{"kind":"List","items":[
 {"kind":"Node","metadata":{"name":"n1","labels":{"node.kubernetes.io/instance-type":"m5"}},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"10"}}},
 {"kind":"Node","metadata":{"name":"n2","labels":{"node.kubernetes.io/instance-type":"m5"}},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"10"}}},
 {"kind":"Pod","metadata":{"name":"train-1","namespace":"a","labels":{"cotenant.dev/workload":"train"}},"spec":{"nodeName":"n1","containers":[{"image":"x","resources":{"requests":{"cpu":"1"}}}]},"status":{"phase":"Running"}},
 {"kind":"Pod","metadata":{"name":"dns","namespace":"a","labels":{"cotenant.dev/workload":"dns"}},"spec":{"nodeName":"n2","containers":[{"image":"x","resources":{"requests":{"cpu":"1"}}}]},"status":{"phase":"Running"}},
 {"kind":"Pod","metadata":{"name":"train-2","namespace":"a","labels":{"cotenant.dev/workload":"train"}},"spec":{"containers":[{"image":"x","resources":{"requests":{"cpu":"1"}}}]},"status":{"phase":"Pending"}}]}`)
	out, errs, code := cotenant(t, "plan", "services", "--samples", "testdata/samples.jsonl", "--cluster", snapshot, "--policy", "greedy,bound", "-o", "json")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	if want := `"placement":[{"node":"n1","colocation":{"train":1}},{"node":"n2","colocation":{"train":1}}]`; strings.Count(out, want) != 2 {
		t.Errorf("stdout %s lacks %s twice", out, want)
	}
	for _, want := range []string{`nodes of "m5" are taken to be alike`, "nobody measured", "dns"} {
		if !strings.Contains(errs, want) {
			t.Errorf("stderr %q lacks %q", errs, want)
		}
	}
	out, _, _ = cotenant(t, "plan", "services", "--samples", "testdata/samples.jsonl", "--cluster", snapshot, "--policy", "greedy")
	if want := "mean performance (1 = alone) of 1 task and 1 that runs on 2 nodes, higher"; !strings.Contains(out, want) {
		t.Errorf("stdout %s lacks %q", out, want)
	}
	batch := filepath.Join("testdata", "batch.csv")
	_, errs, code = cotenant(t, "plan", "services", "--samples", "testdata/samples.jsonl", "--cluster", snapshot, "--batch", batch, "--slots", "3", "--policy", "greedy", "-o", "json")
	if code != exitFailed || !strings.Contains(errs, "7 tasks, but the 2 nodes") || !strings.Contains(errs, "5 free slots (1 more are taken by running tasks)") {
		t.Errorf("exit %d, stderr %q", code, errs)
	}
}
