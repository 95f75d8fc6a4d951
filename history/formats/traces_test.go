package formats

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

func traceLine(model, steps, workers, arrival string) string {
	return tabs(model, "cmd", "-n", "0", steps, arrival, workers) + "\n"
}

// Jobs come in order of arrival; a job that does not is put in its place, or
// ends a strict reading.
func TestTraceOutOfOrder(t *testing.T) {
	text := traceLine("A3C", "5", "1", "10") + traceLine("CycleGAN", "5", "1", "4.5") + traceLine("A3C", "6", "1", "10")
	jobs, rep, err := ReadGavelTrace(strings.NewReader(text), Options{Name: "x.trace"})
	if err != nil || len(jobs) != 3 || jobs[0].Workload != "cyclegan" || jobs[1].Name != "job-1" || jobs[2].Name != "job-3" {
		t.Fatalf("%v, %v", jobs, err)
	}
	mentions(t, strings.Join(rep.Warnings, "\n"), []string{"arrive before one above them: 1", "order of arrival"})
	_, _, err = ReadGavelTrace(strings.NewReader(text), Options{Name: "x.trace", Strict: true})
	if err == nil {
		t.Fatal("strict: no error")
	}
	mentions(t, err.Error(), []string{"x.trace: line 2: arrival_time", `"4.5"`, "before", "10"})
}

func TestTraceExcludes(t *testing.T) {
	text := traceLine("Recommendation (batch size 512)", "5", "1", "1") + traceLine("A3C", "5", "1", "2")
	jobs, rep, err := ReadGavelTrace(strings.NewReader(text), Options{Exclude: []string{"recommendation"}})
	if err != nil || len(jobs) != 1 || jobs[0].Name != "job-2" || rep.Read != 2 {
		t.Fatalf("%v, %+v, %v", jobs, rep, err)
	}
	mentions(t, strings.Join(rep.Warnings, "\n"), []string{"excluded recommendation: 1"})
	_, _, err = ReadGavelTrace(strings.NewReader(text), Options{Exclude: []string{"RECOMMENDATION", "a3c"}})
	if !errors.Is(err, ErrEmpty) {
		t.Errorf("all excluded: %v; want ErrEmpty", err)
	}
}

func TestRunnable(t *testing.T) {
	rates := history.NewAloneRates([]history.Sample{
		{Class: "v100", Colocation: cluster.Colocation{"a3c": 1}, Workload: "a3c", Metric: history.Rate, Value: 7},
		{Class: "k80", Colocation: cluster.Colocation{"cyclegan": 1}, Workload: "cyclegan", Metric: history.Rate, Value: 0.5},
	})
	job := func(line int, name, workload string, workers int) TraceJob {
		return TraceJob{Name: name, Workload: workload, Workers: workers, Devices: 1, Steps: 70, Line: line}
	}
	good := []TraceJob{job(1, "a", "a3c", 4), job(2, "b", "a3c", 1), {Name: "c", Workload: "openb", Workers: 1, Devices: 2, Seconds: 5, Line: 3}}
	c := Runnable{Rates: rates, Classes: []string{"v100"}, Devices: 4}
	kept, rep, err := c.Check(good, Options{Name: "x.trace", Strict: true})
	if err != nil || len(kept) != 3 || rep.Read != 3 {
		t.Fatalf("%d kept, %+v, %v", len(kept), rep, err)
	}
	for _, bad := range []struct {
		job  TraceJob
		want []string
	}{
		{job(9, "d", "a3c", 5), []string{"workers", `"5"`, "need 5 devices", "4 tasks"}},
		{job(9, "d", "a3c", maxWorkers), []string{"workers", "need 100000 devices"}},
		{job(9, "d", "vgg", 1), []string{"workload", `"vgg"`, "no rate on v100"}},
		{job(9, "d", "cyclegan", 1), []string{"workload", `"cyclegan"`, "no rate on v100"}}, // only on k80
		{job(9, "a", "a3c", 1), []string{"name", `"a"`, "job above"}},
		{TraceJob{Name: "d", Workload: "openb", Workers: 1, Line: 9}, []string{"seconds", "no work"}},
	} {
		jobs := append(slices.Clone(good), bad.job)
		want := append([]string{"x.trace: line 9: "}, bad.want...)
		if _, _, err := c.Check(jobs, Options{Name: "x.trace", Strict: true}); err == nil {
			t.Errorf("strict: no error about %+v", bad.job)
		} else {
			mentions(t, err.Error(), want)
		}
		kept, rep, err := c.Check(jobs, Options{Name: "x.trace"})
		if err != nil || len(kept) != 3 || rep.Read != 3 || rep.Skipped != 1 {
			t.Errorf("%d kept, %+v, %v", len(kept), rep, err)
		}
		mentions(t, strings.Join(rep.Warnings, "\n"), append(want, "skipped"))
	}
	if _, _, err := (Runnable{Rates: rates}).Check(good, Options{}); err != nil {
		t.Errorf("only the job that names its seconds can run: %v", err)
	}
	if _, _, err := c.Check([]TraceJob{job(1, "a", "vgg", 1)}, Options{Name: "x.trace"}); !errors.Is(err, ErrEmpty) {
		t.Errorf("nothing that can run: %v; want ErrEmpty", err)
	}
}

func TestTraceJob(t *testing.T) {
	rates := history.NewAloneRates([]history.Sample{
		{Class: "v100", Colocation: cluster.Colocation{"a3c": 1}, Workload: "a3c", Metric: history.Rate, Value: 7},
	})
	j := TraceJob{Name: "j", Workload: "a3c", Workers: 2, Devices: 1, Steps: 70, Arrival: 3 * time.Second, Weight: 2.5}
	if s, scaled, ok := j.Work(rates, "v100"); s != 5 || !scaled || !ok {
		t.Errorf("work %g s, scaled %v, %v; want 70 steps at 2 x 7 a second", s, scaled, ok)
	}
	if _, _, ok := j.Work(rates, "k80"); ok {
		t.Error("work on a class without rates")
	}
	if s, scaled, ok := (TraceJob{Seconds: 9}).Work(rates, "k80"); s != 9 || scaled || !ok {
		t.Errorf("work of a trace in seconds: %g %v %v", s, scaled, ok)
	}
	got := j.Job()
	if len(got.Tasks) != 2 || got.Tasks[1].ID != "j/worker-1" || got.Tasks[0].Role != cluster.Worker || got.Priority != 2 || got.Arrival != j.Arrival {
		t.Errorf("job %+v", got)
	}
}

// Files are told apart by their content.
func TestTellsFormatsApart(t *testing.T) {
	for name, want := range map[string]string{"gavel.json": "gavel", "gavel_plain.json": "gavel", "dl2.txt": "dl2", "samples.jsonl": ""} {
		samples, _, err := ReadSamples(strings.NewReader(string(golden(name))), Options{})
		if err != nil || want != "" && samples[0].Source != want {
			t.Errorf("%s: %v, source %q; want %q", name, err, samples[0].Source, want)
		}
	}
	for name, want := range map[string]string{"gavel10.trace": "job-1", "gavel7.trace": "job-1", "openb_pods.csv": "openb-pod-0000"} {
		jobs, _, err := ReadTrace(strings.NewReader(string(golden(name))), Options{})
		if err != nil || jobs[0].Name != want {
			t.Errorf("%s: %v, %v", name, err, jobs)
		}
	}
}

// A file of the version before Sample.Workers still reads, and so does what
// the readers here write.
func TestWorkersAreOptional(t *testing.T) {
	const old = `{"colocation":{"redis":1},"workload":"redis","metric":"rate","value":5}`
	got, _, err := ReadJSONL(strings.NewReader(old), Options{Strict: true})
	if err != nil || got[0].Workers != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	got[0].Workers, got[0].Span = 4, cluster.SpanApart
	for _, c := range []struct {
		name  string
		write func(io.Writer, []history.Sample) error
	}{{"x.jsonl", WriteJSONL}, {"x.csv", WriteCSV}} {
		path := filepath.Join(t.TempDir(), c.name)
		if err := WriteFile(path, func(w io.Writer) error { return c.write(w, got) }); err != nil {
			t.Fatal(err)
		}
		again, _, err := ReadFile(path, Options{Strict: true}, ReadSamples)
		if err != nil || again[0].Workers != 4 || again[0].Span != cluster.SpanApart {
			t.Errorf("%s: %+v, %v", c.name, again, err)
		}
		text, _ := os.ReadFile(path)
		t.Log(string(text))
	}
	for _, bad := range []string{"-1", "1.5", `"many"`, "1e12"} {
		_, _, err := ReadJSONL(strings.NewReader(strings.Replace(old, "}", `},"workers":`+bad, 1)), Options{Strict: true})
		if err == nil || !strings.Contains(err.Error(), "workers") {
			t.Errorf("workers %s: %v", bad, err)
		}
	}
}

// What the readers say of Gavel's files that history then needs.
func TestGavelBecomesRatesAndMisfits(t *testing.T) {
	samples, _, err := ReadGavel(strings.NewReader(string(golden("gavel.json"))), Options{})
	if err != nil {
		t.Fatal(err)
	}
	fit, misfits := history.SplitMisfits(samples)
	if misfits.Len() != 2 || !misfits.Has("v100", "resnet-50/32+transformer/256") || !misfits.Has("k80", "a3c+cyclegan") || len(samples)-len(fit) != 3 {
		t.Errorf("%d misfits, %d of %d samples left", misfits.Len(), len(fit), len(samples))
	}
	rates := history.NewAloneRates(fit)
	if r, scaled, _ := rates.Rate("v100", "resnet-50/32", 4, cluster.SpanNode); r != 21 || !scaled {
		t.Errorf("the rate of 0 of 4 workers became %g, scaled %v; want twice that of 2", r, scaled)
	}
	only, rep, err := ReadGavel(strings.NewReader(string(golden("gavel.json"))), Options{Exclude: []string{"ResNet-50"}})
	if err != nil || len(only) == 0 {
		t.Fatal(err)
	}
	mentions(t, strings.Join(rep.Warnings, "\n"), []string{"excluded ResNet-50: "})
	for _, s := range only {
		if strings.Contains(s.Colocation.Key(), "resnet-50") {
			t.Errorf("excluded, and there: %+v", s)
		}
	}
}
