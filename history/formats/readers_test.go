package formats

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/history"
)

// reader is one of the package's readers as the shared tests see it: a golden
// input, and how to put one more record into it.
type reader struct {
	name string
	read func(io.Reader, Options) (any, Report, error)
	opts Options
	// good is the golden input; records of it are read, duplicates equal one.
	good                []byte
	records, duplicates int
	// with adds a record; unit is what errors call one.
	with func(record string) []byte
	unit string
	// plain text: has lines, can have a byte order mark.
	text bool
	// fatal says that a truncated file is an error even when not strict.
	fatal bool
	bad   []badRecord
}

// badRecord is a record that can't be read. Errors about it have each of the
// words in want.
type badRecord struct {
	name, record string
	want         []string
}

func erase[T any](read func(io.Reader, Options) (T, Report, error)) func(io.Reader, Options) (any, Report, error) {
	return func(r io.Reader, o Options) (any, Report, error) {
		got, rep, err := read(r, o)
		return got, rep, err
	}
}

func golden(name string) []byte {
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		panic(err)
	}
	return b
}

// appended adds a line to a golden file.
func appended(name string) func(string) []byte {
	return func(record string) []byte { return append(golden(name), record+"\n"...) }
}

const pairStart = `{"colocation":{"redis":1},"workload":"redis","metric":"rate",`

var readers = []reader{
	{
		name: "samples.jsonl", read: erase(ReadJSONL), good: golden("samples.jsonl"), records: 5,
		with: appended("samples.jsonl"), unit: "line 7", text: true,
		bad: []badRecord{
			{"cut off", `{"colocation":{"redis":1},"wor`, []string{"not JSON"}},
			{"no object", `[1]`, []string{"not a JSON object"}},
			{"not JSON", `redis,1`, []string{"not JSON"}},
			{"not UTF-8", pairStart + "\"value\":1,\"source\":\"\xff\"}", []string{"UTF-8"}},
			{"missing value", pairStart + `"alone":1}`, []string{"value: missing"}},
			{"missing workload", `{"colocation":{"redis":1},"metric":"rate","value":1}`, []string{"workload: missing"}},
			{"missing metric", `{"colocation":{"redis":1},"workload":"redis","value":1}`, []string{"metric: missing"}},
			{"missing colocation", `{"workload":"redis","metric":"rate","value":1}`, []string{"colocation: missing"}},
			{"null value", pairStart + `"value":null}`, []string{"value", "null", "no measurement"}},
			{"NaN value", pairStart + `"value":"NaN"}`, []string{"value", "NaN", "no measurement"}},
			{"bare NaN", pairStart + `"value":NaN}`, []string{"not JSON"}},
			{"infinite", pairStart + `"value":"+Inf"}`, []string{"value", "+Inf", "finite"}},
			{"negative", pairStart + `"value":-1}`, []string{"value", "-1"}},
			{"huge", pairStart + `"value":1e999}`, []string{"value", "1e999", "too large"}},
			{"text for a number", pairStart + `"value":"fast"}`, []string{"value", "fast"}},
			{"hexadecimal", pairStart + `"value":"0x10"}`, []string{"value", "0x10"}},
			{"decimal comma", pairStart + `"value":"0,5"}`, []string{"value", "0,5"}},
			{"list for a number", pairStart + `"value":[1]}`, []string{"value", "[1]"}},
			{"true for a number", pairStart + `"value":true}`, []string{"value", "true"}},
			{"number for a text", `{"colocation":{"redis":1},"workload":7,"metric":"rate","value":1}`, []string{"workload", "7", "not a string"}},
			{"twice", pairStart + `"value":1,"value":2}`, []string{"value", "2", "second time"}},
			{"workload twice", `{"colocation":{"redis":1,"redis":2},"workload":"redis","metric":"rate","value":1}`, []string{"colocation", "twice"}},
			{"half a task", `{"colocation":{"redis":1.5},"workload":"redis","metric":"rate","value":1}`, []string{"colocation", "redis", "1.5", "whole"}},
			{"minus a task", `{"colocation":{"redis":-1},"workload":"redis","metric":"rate","value":1}`, []string{"colocation", "-1", "negative"}},
			{"no count", `{"colocation":{"redis":null},"workload":"redis","metric":"rate","value":1}`, []string{"colocation", "null"}},
			{"a crowd", `{"colocation":{"redis":1e12},"workload":"redis","metric":"rate","value":1}`, []string{"colocation", "1e12", "more than"}},
			{"absent workload", `{"colocation":{"redis":1},"workload":"isr","metric":"rate","value":1}`, []string{"colocation", `"isr"`}},
			{"unknown metric", `{"colocation":{"redis":1},"workload":"redis","metric":"p95","value":1}`, []string{"metric", "p95"}},
			{"no time", pairStart + `"value":1,"start":"yesterday"}`, []string{"start", "yesterday", "RFC 3339"}},
			{"negative repeats", pairStart + `"value":1,"repeats":-3}`, []string{"repeats", "-3"}},
			{"half a batch", pairStart + `"value":1,"batch_size":0.5}`, []string{"batch_size", "0.5"}},
		},
	},
	{
		name: "samples.csv", read: erase(ReadCSV), good: golden("samples.csv"), records: 4,
		with: appended("samples.csv"), unit: "line 7", text: true,
		bad: []badRecord{
			{"too few fields", `redis,redis,rate,1`, []string{"4 fields", "11"}},
			{"too many fields", `redis,redis,rate,1,1,,,,,,,9`, []string{"12 fields"}},
			{"open quote", `"redis,redis,rate,1,1,,,,,,`, []string{"quote"}},
			{"not UTF-8", "redis,redis,rate,1,1,\xff,,,,,", []string{"UTF-8"}},
			{"no value", `redis,redis,rate,,1,,,,,,`, []string{"value", "no measurement"}},
			{"NaN", `redis,redis,rate,nan,1,,,,,,`, []string{"value", "nan", "no measurement"}},
			{"infinite", `redis,redis,rate,Inf,1,,,,,,`, []string{"value", "Inf"}},
			{"negative", `redis,redis,rate,-0.5,1,,,,,,`, []string{"value", "-0.5"}},
			{"huge", `redis,redis,rate,1e400,1,,,,,,`, []string{"value", "1e400", "too large"}},
			{"a unit", `redis,redis,rate,5ms,1,,,,,,`, []string{"value", "5ms"}},
			{"bad co-location", `redis,redis*x,rate,1,1,,,,,,`, []string{"colocation", "redis*x"}},
			{"no co-location", `redis,,rate,1,1,,,,,,`, []string{"colocation", "empty"}},
			{"no workload", `,redis,rate,1,1,,,,,,`, []string{"workload", "empty"}},
			{"no time", `redis,redis,rate,1,1,,02.01.2026,,,,`, []string{"start", "02.01.2026"}},
			{"half a repeat", `redis,redis,rate,1,1,,,1.5,,,`, []string{"repeats", "1.5"}},
		},
	},
	{
		name: "metis.csv", read: erase(ReadMetisCSV), good: golden("metis.csv"), records: 6, duplicates: 1,
		with: appended("metis.csv"), unit: "line 8", text: true,
		bad: []badRecord{
			{"too few fields", `1,0,0,1`, []string{"4 fields", "12"}},
			{"too many fields", `1,0,0,1,,,,,,,,,5`, []string{"13 fields"}},
			{"no tasks", `,0,0,1,,,,,,,,`, []string{"redis", "no number of tasks"}},
			{"half a task", `0.5,0,0,1,,,,,,,,`, []string{"redis", "0.5", "whole"}},
			{"minus a task", `-1,0,0,1,,,,,,,,`, []string{"redis", "-1", "negative"}},
			{"a crowd", `1e15,0,0,1,,,,,,,,`, []string{"redis", "1e+15", "more than"}},
			{"no rate", `1,1,0,1,,,,,,,,`, []string{"rps_mms", "NaN", "no measurement"}},
			{"NaN rate", `1,1,0,1,NaN,,,,,,,`, []string{"rps_mms", "NaN", "no measurement"}},
			{"infinite rate", `1,0,0,inf,,,,,,,,`, []string{"rps_redis", "inf"}},
			{"negative rate", `1,0,0,-0.25,,,,,,,,`, []string{"rps_redis", "-0.25"}},
			{"huge rate", `1,0,0,1e999,,,,,,,,`, []string{"rps_redis", "1e999"}},
			{"negative latency", `1,0,0,1,,,-2,,,,,`, []string{"rt50_redis", "-2"}},
			{"text for latency", `1,0,0,1,,,,,,slow,,`, []string{"rt99_redis", "slow"}},
			{"rate of nobody", `1,0,0,1,0.5,,,,,,,`, []string{"rps_mms", "0.5", "no task"}},
		},
	},
	{
		name: "metis.npz", read: erase(ReadMetisNPZ), opts: Options{Columns: []string{"redis", "mms", "isr"}},
		good: metisNPZ(goldenRows), records: len(goldenRows), duplicates: 1, unit: fmt.Sprint("row ", len(goldenRows)), fatal: true,
		with: func(record string) []byte {
			return metisNPZ(append(goldenRows[:len(goldenRows):len(goldenRows)], record))
		},
		bad: []badRecord{
			{"half a task", "0.5 0 0 0 0/1 - - - -", []string{"redis", "0.5", "whole"}},
			{"minus a task", "-1 0 0 0 0/1 - - - -", []string{"redis", "-1", "negative"}},
			{"a crowd", "1e15 0 0 0 0/1 - - - -", []string{"redis", "1e+15", "more than"}},
			{"NaN tasks", "NaN 0 0 0 0/1 - - - -", []string{"redis", "NaN", "whole"}},
			{"infinite tasks", "Inf 0 0 0 0/1 - - - -", []string{"redis", "+Inf"}},
			{"no rate", "1 1 0 0 0/1 - - - -", []string{"rps_mms", "NaN", "no measurement"}},
			{"infinite rate", "1 0 0 0 0/Inf - - - -", []string{"rps_redis", "+Inf"}},
			{"negative rate", "1 0 0 0 0/-0.25 - - - -", []string{"rps_redis", "-0.25"}},
			{"rate of nobody", "1 0 0 0 0/1 0.5 - - -", []string{"rps_mms", "0.5", "no task"}},
			{"tasks of a nameless column", "1 0 0 2 0/1 - - 1 -", []string{"alloc column 3", "2", "no workload"}},
		},
	},
	{
		name: "batches.csv", read: erase(ReadBatches), good: golden("batches.csv"), records: 3,
		with: appended("batches.csv"), unit: "line 6", text: true,
		bad: []badRecord{
			{"too few fields", `1,2`, []string{"2 fields", "3"}},
			{"too many fields", `1,2,3,4`, []string{"4 fields"}},
			{"nothing", `1,,3`, []string{"mms", "write 0"}},
			{"NaN", `1,NaN,3`, []string{"mms", "NaN"}},
			{"infinite", `1,Infinity,3`, []string{"mms", "Infinity"}},
			{"negative", `1,-2,3`, []string{"mms", "-2", "negative"}},
			{"huge", `1,1e18,3`, []string{"mms", "1e18", "more than"}},
			{"half a task", `1,2.5,3`, []string{"mms", "2.5", "whole"}},
			{"text", `1,many,3`, []string{"mms", "many"}},
			{"no task", `0,0,0`, []string{"without a task"}},
		},
	},
	{
		name: "openb_nodes.csv", read: erase(ReadOpenbNodes), good: golden("openb_nodes.csv"), records: 3,
		with: appended("openb_nodes.csv"), unit: "line 5", text: true,
		bad: []badRecord{
			{"too few fields", `n9,1`, []string{"2 fields", "5"}},
			{"too many fields", `n9,1,2,0,,`, []string{"6 fields"}},
			{"no name", `,1,2,0,`, []string{"sn: missing"}},
			{"the same name", `openb-node-0000,1,2,0,`, []string{"sn", "openb-node-0000", "twice"}},
			{"no CPU", `n9,,2,0,`, []string{"cpu_milli"}},
			{"NaN CPU", `n9,NaN,2,0,`, []string{"cpu_milli", "NaN"}},
			{"infinite memory", `n9,1,Inf,0,`, []string{"memory_mib", "Inf"}},
			{"negative memory", `n9,1,-2,0,`, []string{"memory_mib", "-2"}},
			{"huge memory", `n9,1,1e30,0,`, []string{"memory_mib", "1e30", "more than"}},
			{"a unit", `n9,1,2Gi,0,`, []string{"memory_mib", "2Gi"}},
			{"a forest of GPUs", `n9,1,2,1e9,`, []string{"gpu", "1e9", "more than"}},
		},
	},
	{
		name: "openb_pods.csv", read: erase(ReadOpenbPods), good: golden("openb_pods.csv"), records: 4,
		with: appended("openb_pods.csv"), unit: "line 6", text: true,
		bad: []badRecord{
			{"too few fields", `p9,1`, []string{"2 fields", "11"}},
			{"no name", `,1,2,0,0,,LS,Running,0,1,0`, []string{"name: missing"}},
			{"the same name", `openb-pod-0000,1,2,0,0,,LS,Running,0,1,0`, []string{"name", "openb-pod-0000", "twice"}},
			{"NaN CPU", `p9,NaN,2,0,0,,LS,Running,0,1,0`, []string{"cpu_milli", "NaN"}},
			{"negative memory", `p9,1,-2,0,0,,LS,Running,0,1,0`, []string{"memory_mib", "-2"}},
			{"huge CPU", `p9,1e99,2,0,0,,LS,Running,0,1,0`, []string{"cpu_milli", "1e99"}},
			{"more than a GPU", `p9,1,2,1,1001,,LS,Running,0,1,0`, []string{"gpu_milli", "1001"}},
			{"part of no GPU", `p9,1,2,0,500,,LS,Running,0,1,0`, []string{"gpu_milli", "500", "no GPU"}},
			{"nothing of a GPU", `p9,1,2,1,0,,LS,Running,0,1,0`, []string{"gpu_milli", "num_gpu 1"}},
			{"unknown phase", `p9,1,2,0,0,,LS,Sleeping,0,1,0`, []string{"pod_phase", "Sleeping"}},
			{"infinite time", `p9,1,2,0,0,,LS,Running,0,Inf,0`, []string{"deletion_time", "Inf"}},
			{"huge time", `p9,1,2,0,0,,LS,Running,0,1e12,0`, []string{"deletion_time", "1e12"}},
			{"ends before it begins", `p9,1,2,0,0,,LS,Running,5,4,5`, []string{"deletion_time", "4", "before"}},
			{"scheduled too early", `p9,1,2,0,0,,LS,Running,5,9,4`, []string{"scheduled_time", "4", "before"}},
			{"runs unscheduled", `p9,1,2,0,0,,LS,Running,5,9,`, []string{"scheduled_time", "Running"}},
		},
	},
	{
		name: "gavel.json", read: erase(ReadGavel), good: golden("gavel.json"), records: 19,
		with: inGavel("gavel.json"), unit: "rate 20", text: true, fatal: true, bad: badRates,
	},
	{
		name: "gavel_plain.json", read: erase(ReadGavel), good: golden("gavel_plain.json"), records: 6,
		with: inGavel("gavel_plain.json"), unit: "rate 7", text: true, fatal: true, bad: badRates,
	},
	{
		name: "gavel10.trace", read: erase(ReadGavelTrace), good: golden("gavel10.trace"), records: 4, duplicates: 1,
		with: appended("gavel10.trace"), unit: "line 5", text: true,
		bad: []badRecord{
			{"too few fields", tabs("A3C", "cmd", "-n", "0"), []string{"4 fields", "7 or 10"}},
			{"an extra field", tabs("A3C", "cmd", "/wd", "-n", "0", "5", "1", "1", "-1", "9999", "9"), []string{"11 fields"}},
			{"the other layout", tabs("A3C", "cmd", "-n", "0", "5", "9999", "1"), []string{"7 fields", "10"}},
			{"commas", "A3C,cmd,/wd,-n,0,5,1,1,-1,9999", []string{"1 fields", "tabs"}},
			{"not UTF-8", tabs("A3C", "\xff", "/wd", "-n", "0", "5", "1", "1", "-1", "9999"), []string{"UTF-8"}},
			{"no model", tabs("", "cmd", "/wd", "-n", "0", "5", "1", "1", "-1", "9999"), []string{"job_type", "no model"}},
			{"no batch size", tabs("LM (batch size )", "cmd", "/wd", "-n", "0", "5", "1", "1", "-1", "9999"), []string{"job_type", "batch size"}},
			{"data directory", tabs("A3C", "cmd", "/wd", "-n", "yes", "5", "1", "1", "-1", "9999"), []string{"needs_data_dir", "yes"}},
			{"no steps", tabs("A3C", "cmd", "/wd", "-n", "0", "", "1", "1", "-1", "9999"), []string{"total_steps", "no number"}},
			{"zero steps", tabs("A3C", "cmd", "/wd", "-n", "0", "0", "1", "1", "-1", "9999"), []string{"total_steps", "no work"}},
			{"NaN steps", tabs("A3C", "cmd", "/wd", "-n", "0", "NaN", "1", "1", "-1", "9999"), []string{"total_steps", "NaN"}},
			{"negative steps", tabs("A3C", "cmd", "/wd", "-n", "0", "-5", "1", "1", "-1", "9999"), []string{"total_steps", "-5", "negative"}},
			{"huge steps", tabs("A3C", "cmd", "/wd", "-n", "0", "1e300", "1", "1", "-1", "9999"), []string{"total_steps", "1e300", "more than"}},
			{"no workers", tabs("A3C", "cmd", "/wd", "-n", "0", "5", "0", "1", "-1", "9999"), []string{"scale_factor", "0"}},
			{"half a worker", tabs("A3C", "cmd", "/wd", "-n", "0", "5", "1.5", "1", "-1", "9999"), []string{"scale_factor", "1.5", "whole"}},
			{"an army", tabs("A3C", "cmd", "/wd", "-n", "0", "5", "1e9", "1", "-1", "9999"), []string{"scale_factor", "1e9", "more than"}},
			{"negative weight", tabs("A3C", "cmd", "/wd", "-n", "0", "5", "1", "-1", "-1", "9999"), []string{"priority_weight", "-1"}},
			{"negative SLO", tabs("A3C", "cmd", "/wd", "-n", "0", "5", "1", "1", "-2", "9999"), []string{"SLO", "-2"}},
			{"no arrival", tabs("A3C", "cmd", "/wd", "-n", "0", "5", "1", "1", "-1", ""), []string{"arrival_time", "no time"}},
			{"negative arrival", tabs("A3C", "cmd", "/wd", "-n", "0", "5", "1", "1", "-1", "-3"), []string{"arrival_time", "-3"}},
			{"infinite arrival", tabs("A3C", "cmd", "/wd", "-n", "0", "5", "1", "1", "-1", "Inf"), []string{"arrival_time", "Inf"}},
			{"huge arrival", tabs("A3C", "cmd", "/wd", "-n", "0", "5", "1", "1", "-1", "1e12"), []string{"arrival_time", "1e12"}},
		},
	},
	{
		name: "gavel7.trace", read: erase(ReadGavelTrace), good: golden("gavel7.trace"), records: 3,
		with: appended("gavel7.trace"), unit: "line 4", text: true,
		bad: []badRecord{
			{"a missing field", tabs("A3C", "cmd", "-n", "0", "5", "9999"), []string{"6 fields", "7 or 10"}},
			{"the other layout", tabs("A3C", "cmd", "/wd", "-n", "0", "5", "1", "1", "-1", "9999"), []string{"10 fields", "7"}},
			{"negative arrival", tabs("A3C", "cmd", "-n", "0", "5", "-3", "1"), []string{"arrival_time", "-3"}},
			{"half a worker", tabs("A3C", "cmd", "-n", "0", "5", "9999", "1.5"), []string{"scale_factor", "1.5"}},
		},
	},
	{
		name: "dl2.txt", read: erase(ReadDL2), good: golden("dl2.txt"), records: 4, duplicates: 1,
		with: appended("dl2.txt"), unit: "line 5", text: true, bad: badTuples,
	},
	{
		name: "dl2_samples.txt", read: erase(ReadDL2Samples), good: golden("dl2.txt"), records: 4, duplicates: 1,
		with: appended("dl2.txt"), unit: "line 5", text: true, bad: badTuples,
	},
	{
		name: "openb_jobs.csv", read: erase(ReadOpenbJobs), good: golden("openb_pods.csv"), records: 4,
		with: appended("openb_pods.csv"), unit: "line 6", text: true,
		bad: []badRecord{
			{"too few fields", `p9,1`, []string{"2 fields", "11"}},
			{"negative time", `p9,1,2,0,0,,LS,Running,-1,1,0`, []string{"creation_time", "-1"}},
			{"ends before it begins", `p9,1,2,0,0,,LS,Running,5,4,5`, []string{"deletion_time", "4", "before"}},
		},
	},
	{
		name: "kubernetes.yaml", read: erase(ReadKubernetes), good: golden("kubernetes.yaml"), records: 7,
		with: appendedYAML, unit: "item 8", text: true, fatal: true, bad: badObjects,
	},
}

// goldenRows are the rows of the npz: "tasks/rates", "-" for NaN. The last
// two columns are unused, as in Metis's own files.
var goldenRows = []string{
	"0 0 0 0 0/- - - - -",
	"1 0 0 0 0/1 - - - -",
	"0 1 0 0 0/- 1 - - -",
	"2 1 0 0 0/0.8125 0.92 - - -",
	"1 0 2 0 0/0.9 - 1.05 - -",
	"2 1 0 0 0/0.8125 0.92 - - -",
}

// metisNPZ is the file that NumPy's savez would write of the rows, with the
// latencies as pickled objects.
func metisNPZ(rows []string) []byte {
	var alloc, rps []float64
	for _, r := range rows {
		tasks, rates, _ := strings.Cut(r, "/")
		alloc = append(alloc, floats(tasks)...)
		rps = append(rps, floats(rates)...)
	}
	shape := fmt.Sprintf("(%d, 5)", len(rows))
	return zipped(
		file{"alloc.npy", npy("<f8", shape, alloc)},
		file{"rps.npy", npy("<f8", shape, rps)},
		// Unpickling this would run a program.
		file{"rt_50.npy", append(npy("|O", shape, nil), "cos\nsystem\n(S'echo unpickled'\ntR."...)},
		file{"rt_99.npy", append(npy("|O", shape, nil), "cos\nsystem\n(S'echo unpickled'\ntR."...)},
	)
}

func floats(text string) []float64 {
	var out []float64
	for f := range strings.FieldsSeq(text) {
		v := math.NaN()
		if f != "-" {
			if _, err := fmt.Sscan(f, &v); err != nil {
				panic(err)
			}
		}
		out = append(out, v)
	}
	return out
}

// npy is an array file; each item is written as the type descr says.
func npy(descr, shape string, items []float64) []byte {
	return npyWith(fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape), descr, items)
}

func npyWith(header, descr string, items []float64) []byte {
	var b bytes.Buffer
	b.WriteString("\x93NUMPY\x01\x00")
	header += strings.Repeat(" ", 117-min(117, len(header))) + "\n"
	_ = binary.Write(&b, binary.LittleEndian, uint16(len(header))) // a Buffer takes all
	b.WriteString(header)
	for _, v := range items {
		var item any
		switch descr[1:] {
		case "f8":
			item = v
		case "f4":
			item = float32(v)
		case "i8":
			item = int64(v)
		case "i4":
			item = int32(v)
		case "u2":
			item = uint16(v)
		case "i1":
			item = int8(v)
		}
		var order binary.ByteOrder = binary.LittleEndian
		if descr[0] == '>' {
			order = binary.BigEndian
		}
		_ = binary.Write(&b, order, item) // likewise
	}
	return b.Bytes()
}

type file struct {
	name string
	data []byte
}

func zipped(files ...file) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		w, err := z.Create(f.name)
		if err == nil {
			_, err = w.Write(f.data)
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(data)
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic(err)
	}
	return b.Bytes()
}

// readable is a result as a golden file shows it: the report, then a record a
// line.
func readable(t *testing.T, got any, rep Report) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(rep); err != nil {
		t.Fatal(err)
	}
	if samples, ok := got.([]history.Sample); ok {
		if err := WriteJSONL(&b, samples); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	if err := enc.Encode(got); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tabs(fields ...string) string { return strings.Join(fields, "\t") }

// inGavel puts a record, "key: value" of the worker type "x", at the end of a
// golden file.
func inGavel(name string) func(string) []byte {
	return func(record string) []byte {
		whole := strings.TrimSpace(string(golden(name)))
		return []byte(strings.TrimSuffix(whole, "}") + ", \"x\": {" + record + "}}\n")
	}
}

// badRates are entries of Gavel's throughputs that can't be read.
var badRates = []badRecord{
	{"no tuple", `"('A3C', 1": {"null": 1}`, []string{"x", "('A3C', 1", "ends too early"}},
	{"a triple", `"('A3C', 1, 2)": {"null": 1}`, []string{"('A3C', 1, 2)", "no pair"}},
	{"swapped", `"(1, 'A3C')": {"null": 1}`, []string{"(1, 'A3C')", "no pair"}},
	{"a call", `"('A3C', int(1))": {"null": 1}`, []string{"int(1)", "where a tuple"}},
	{"no workers", `"('A3C', 0)": {"null": 1}`, []string{"('A3C', 0)", "workers"}},
	{"half a worker", `"('A3C', 1.5)": {"null": 1}`, []string{"1.5", "whole"}},
	{"an army", `"('A3C', 1000000000)": {"null": 1}`, []string{"1000000000", "more than"}},
	{"no name", `"('', 1)": {"null": 1}`, []string{"('', 1)", "no model"}},
	{"only a batch size", `" (batch size 32)": {"null": 1}`, []string{"(batch size 32)", "no model"}},
	{"no batch size", `"('LM (batch size x)', 1)": {"null": 1}`, []string{"batch size", `x`}},
	{"no object", `"A3C": [1]`, []string{"A3C", "not a JSON object"}},
	{"negative", `"A3C": {"null": -1}`, []string{"x: A3C: null", "-1", "negative"}},
	{"null", `"A3C": {"null": null}`, []string{"x: A3C: null", "no rate"}},
	{"NaN text", `"A3C": {"null": "NaN"}`, []string{"x: A3C: null", "NaN", "no rate"}},
	{"infinite", `"A3C": {"null": "Inf"}`, []string{"x: A3C: null", "Inf"}},
	{"huge", `"A3C": {"null": 1e999}`, []string{"x: A3C: null", "1e999", "too large"}},
	{"a list alone", `"A3C": {"null": [1, 2]}`, []string{"x: A3C: null", "[1, 2]"}},
	{"one of a pair", `"A3C": {"CycleGAN": [1]}`, []string{"x: A3C: CycleGAN", "[1]", "no pair"}},
	{"three of a pair", `"A3C": {"CycleGAN": [1, 2, 3]}`, []string{"x: A3C: CycleGAN", "no pair"}},
	{"a number for a pair", `"A3C": {"CycleGAN": 5}`, []string{"x: A3C: CycleGAN", "5", "no pair"}},
	{"half a misfit", `"A3C": {"CycleGAN": [0.0, 2.0]}`, []string{"x: A3C: CycleGAN", "one rate of 0"}},
	{"negative pair", `"A3C": {"CycleGAN": [-1, 2]}`, []string{"x: A3C: CycleGAN", "negative"}},
	{"bad partner", `"A3C": {"('CycleGAN')": [1, 2]}`, []string{"x: A3C: ('CycleGAN')", "key"}},
}

// badTuples are lines of DL2's speeds that can't be read.
var badTuples = []badRecord{
	{"cut off", `('vgg-16', 'dist_sync', 32, 1, 1, [1.5], [1.0]`, []string{"tuple", "ends too early"}},
	{"a missing item", `('vgg-16', 'dist_sync', 32, 1, 1, [1.5], [1.0])`, []string{"tuple", "8 items"}},
	{"an extra item", `('vgg-16', 'dist_sync', 32, 1, 1, [1.5], [1.0], [0.5], 1)`, []string{"tuple", "8 items"}},
	{"more after it", `('vgg-16', 'dist_sync', 32, 1, 1, [1.5], [1.0], [0.5]) + 1`, []string{"tuple", "after its end"}},
	{"a call", `__import__('os').system('true')`, []string{"tuple", "__import__", "where a tuple"}},
	{"a name", `('vgg-16', dist_sync, 32, 1, 1, [1.5], [1.0], [0.5])`, []string{"tuple", "dist_sync"}},
	{"not UTF-8", "('\xff', 'dist_sync', 32, 1, 1, [1.5], [1.0], [0.5])", []string{"UTF-8"}},
	{"deep", strings.Repeat("(", 1000), []string{"tuple", "deeper"}},
	{"number for the model", `(16, 'dist_sync', 32, 1, 1, [1.5], [1.0], [0.5])`, []string{"model", "16", "no text"}},
	{"no model", `('', 'dist_sync', 32, 1, 1, [1.5], [1.0], [0.5])`, []string{"model"}},
	{"no batch size", `('vgg-16', 'dist_sync', 0, 1, 1, [1.5], [1.0], [0.5])`, []string{"batch size", "0"}},
	{"half a server", `('vgg-16', 'dist_sync', 32, 1.5, 1, [1.5], [1.0], [0.5])`, []string{"servers", "1.5", "whole"}},
	{"negative workers", `('vgg-16', 'dist_sync', 32, 1, -1, [1.5], [1.0], [0.5])`, []string{"workers", "-1", "negative"}},
	{"an army", `('vgg-16', 'dist_sync', 32, 1, 1e9, [1.5], [1.0], [0.5])`, []string{"workers", "1e9", "more than"}},
	{"too few speeds", `('vgg-16', 'dist_sync', 32, 1, 2, [1.5], [1.0], [0.5, 0.5])`, []string{"speeds", "list of 2"}},
	{"too many of CPU", `('vgg-16', 'dist_sync', 32, 1, 1, [1.5], [1.0, 1.0], [0.5])`, []string{"server CPU", "list of 1"}},
	{"no list", `('vgg-16', 'dist_sync', 32, 1, 1, 1.5, [1.0], [0.5])`, []string{"speeds", "1.5", "list of 1"}},
	{"text for a speed", `('vgg-16', 'dist_sync', 32, 1, 1, ['fast'], [1.0], [0.5])`, []string{"speeds", "fast", "no number"}},
	{"negative speed", `('vgg-16', 'dist_sync', 32, 1, 1, [-1.5], [1.0], [0.5])`, []string{"speeds", "-1.5", "negative"}},
	{"NaN speed", `('vgg-16', 'dist_sync', 32, 1, 1, [nan], [1.0], [0.5])`, []string{"speeds", "nan", "no number"}},
	{"infinite speed", `('vgg-16', 'dist_sync', 32, 1, 1, [inf], [1.0], [0.5])`, []string{"speeds", "inf"}},
	{"huge speed", `('vgg-16', 'dist_sync', 32, 1, 1, [1e300], [1.0], [0.5])`, []string{"speeds", "1e300", "more than"}},
	{"too huge speed", `('vgg-16', 'dist_sync', 32, 1, 1, [1e999], [1.0], [0.5])`, []string{"speeds", "1e999", "too large"}},
}
