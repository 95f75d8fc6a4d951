package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/data"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
)

// exampleTrace draws data/example.trace: 300 jobs of the contention world at
// load 0.9 on 6 servers, seed 1, in the layout of Gavel's traces.
func exampleTrace(t *testing.T) []byte {
	t.Helper()
	w, err := demoWorld()
	if err != nil {
		t.Fatal(err)
	}
	list, err := w.Generate(compare.Load{Jobs: 300, Load: 0.9}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for i := range list {
		workload, workers := ofWorkers(&list[i])
		name, batch, _ := strings.Cut(workload, "/")
		rate, _, ok := w.Alone.Rate(w.Reference(), workload, workers, cluster.SpanNode)
		if !ok {
			t.Fatalf("%s with %d workers has no rate", workload, workers)
		}
		fmt.Fprintf(&b, "%s (batch size %s)\tpython3 train.py --model %s --batch %s\t.\t--steps\t1\t%.0f\t%d\t1\t-1\t%.0f\n",
			name, batch, name, batch, math.Ceil(list[i].Work*rate), workers, list[i].Arrival.Seconds())
	}
	return b.Bytes()
}

func ofWorkers(j *sim.Job) (workload string, workers int) {
	for _, t := range j.Tasks {
		if t.Role == cluster.Worker {
			workload = t.Workload
			workers++
		}
	}
	return workload, workers
}

func TestExampleTraceIsWhatIsDrawn(t *testing.T) {
	want := exampleTrace(t)
	if *update {
		if err := os.WriteFile("../../data/example.trace", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	read := func(text []byte) []formats.TraceJob {
		list, report, err := formats.ReadTrace(bytes.NewReader(text), formats.Options{Strict: true})
		if err != nil || len(report.Warnings) > 0 {
			t.Fatalf("%v: %v", err, report.Warnings)
		}
		return list
	}
	ships, drawn := read(data.Trace), read(want)
	if len(ships) != 300 || len(drawn) != 300 {
		t.Fatalf("%d jobs ship, %d are drawn; want 300", len(ships), len(drawn))
	}
	for i, a := range ships {
		b := drawn[i]
		// Other processors may round the last digit otherwise.
		if a.Workload != b.Workload || a.Workers != b.Workers || math.Abs(a.Steps-b.Steps) > 1 || math.Abs((a.Arrival-b.Arrival).Seconds()) > 1 {
			t.Fatalf("line %d ships as %+v, is drawn as %+v; if the change is meant, run this test with -update", i+1, a, b)
		}
	}
}
