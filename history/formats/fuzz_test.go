package formats

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// fuzz feeds a reader with anything. It may refuse, but not panic, not take
// what is no sample, and not report numbers that do not add up.
func fuzz(f *testing.F, name string) {
	var r reader
	for _, c := range readers {
		if c.name == name {
			r = c
		}
	}
	f.Add(r.good)
	f.Add(gzipped(r.good))
	for _, b := range r.bad {
		f.Add(r.with(b.record))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o := r.opts
		o.MaxBytes, o.MaxRecord, o.MaxSamples = 1<<20, 1<<12, 1<<12
		got, rep, err := r.read(bytes.NewReader(data), o)
		o.Strict = true
		strict, srep, serr := r.read(bytes.NewReader(data), o)
		if rep.Read < 0 || rep.Skipped < 0 || rep.Duplicates > rep.Read+rep.Skipped+len(data) {
			t.Fatalf("report %+v", rep)
		}
		if serr == nil && (err != nil || srep.Skipped != 0 || srep.Read != rep.Read) {
			t.Fatalf("strict read %d records, not strict %d (%v)", srep.Read, rep.Read, err)
		}
		if err != nil {
			return
		}
		check(t, got, rep)
		if serr == nil {
			check(t, strict, srep)
		}
	})
}

func check(t *testing.T, got any, rep Report) {
	switch v := got.(type) {
	case []history.Sample:
		if len(v) == 0 || len(rep.Where) != len(v) {
			t.Fatalf("%d samples, %d places, no error", len(v), len(rep.Where))
		}
		for i, s := range v {
			if err := s.Validate(); err != nil {
				t.Fatalf("sample %d: %v", i, err)
			}
		}
		var b bytes.Buffer
		if err := WriteJSONL(&b, v); err != nil {
			t.Fatal(err)
		}
		again, _, err := ReadJSONL(&b, Options{Strict: true})
		if err != nil || len(again) != len(v) {
			t.Fatalf("written and read again: %d of %d samples, %v", len(again), len(v), err)
		}
	case Cluster:
		if _, err := cluster.NewSnapshot(v.Spec); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := WriteCluster(&b, v); err != nil {
			t.Fatal(err)
		}
	case []cluster.Node:
		if _, err := cluster.NewSnapshot(cluster.Spec{Nodes: v}); err != nil {
			t.Fatal(err)
		}
	case []TraceJob:
		names := map[string]bool{}
		for i, j := range v {
			if names[j.Name] || i > 0 && j.Arrival < v[i-1].Arrival || j.Workers < 1 || j.Workers > maxWorkers || !(j.Steps+j.Seconds > 0) {
				t.Fatalf("job %d: %+v", i, j)
			}
			names[j.Name] = true
		}
	case Batches:
		for row := range v.Rows {
			batch, err := v.Row(row)
			if err == nil && cluster.Colocation(batch).Tasks() < 1 {
				t.Fatalf("row %d: %v", row, batch)
			}
		}
	}
}

func FuzzJSONL(f *testing.F)      { fuzz(f, "samples.jsonl") }
func FuzzCSV(f *testing.F)        { fuzz(f, "samples.csv") }
func FuzzMetisCSV(f *testing.F)   { fuzz(f, "metis.csv") }
func FuzzMetisNPZ(f *testing.F)   { fuzz(f, "metis.npz") }
func FuzzBatches(f *testing.F)    { fuzz(f, "batches.csv") }
func FuzzOpenbNodes(f *testing.F) { fuzz(f, "openb_nodes.csv") }
func FuzzOpenbPods(f *testing.F)  { fuzz(f, "openb_pods.csv") }
func FuzzKubernetes(f *testing.F) { fuzz(f, "kubernetes.yaml") }

// FuzzNPY reads arrays outside a zip, whose checksums keep a fuzzer out.
func FuzzNPY(f *testing.F) {
	f.Add(npy("<f8", "(2, 2)", []float64{1, 2, 3, 4}))
	f.Add(npy(">i4", "(1, 3)", []float64{1, 2, 3}))
	f.Add(npy("|O", "(1, 1)", nil))
	f.Add(npyWith(`{"descr": "<u2", "fortran_order": True, "shape": (2, 1)}`, "<u2", []float64{1, 2}))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := readMatrix(bytes.NewReader(data), 1<<20)
		if err == nil && len(m.data) != m.rows*m.columns {
			t.Fatalf("%d items in %d x %d", len(m.data), m.rows, m.columns)
		}
	})
}

// FuzzCluster reads our own JSON, and what looks like it.
func FuzzCluster(f *testing.F) {
	f.Add([]byte(`{"nodes":[{"name":"a","slots":8,"capacity":{"cpu":1000}}],"running":[{"id":"r","workload":"w","node":"a"}]}`))
	f.Add(golden("kubernetes.yaml"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, rep, err := ReadCluster(bytes.NewReader(data), Options{MaxBytes: 1 << 20, MaxRecord: 1 << 12})
		if err == nil {
			check(t, got, rep)
		}
	})
}

func FuzzGavel(f *testing.F)        { fuzz(f, "gavel.json") }
func FuzzGavelTrace10(f *testing.F) { fuzz(f, "gavel10.trace") }
func FuzzGavelTrace7(f *testing.F)  { fuzz(f, "gavel7.trace") }
func FuzzDL2(f *testing.F)          { fuzz(f, "dl2_samples.txt") }
func FuzzOpenbJobs(f *testing.F)    { fuzz(f, "openb_jobs.csv") }

// FuzzPython reads one literal; what it takes in, it takes in when spaced out.
func FuzzPython(f *testing.F) {
	for _, s := range []string{"('A3C', 1)", `["x\'y", (1.5e-3, [nan, -inf]), ()]`, "(((((((((1)))))))))", "('a' 'b')", "(1,,2)", "int('1')"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parsePython(text)
		if err != nil {
			return
		}
		if again, err := parsePython(" \t" + text + " "); err != nil || !reflect.DeepEqual(again, v) {
			t.Fatalf("%q: %v, with space around it %v (%v)", text, v, again, err)
		}
	})
}
