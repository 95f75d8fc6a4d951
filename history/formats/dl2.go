package formats

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// DL2Speed is a line of DL2's speeds: one training job, alone, with
// parameter servers.
type DL2Speed struct {
	// Workload is "resnet-50/32": the model, and the batch size of the job as a
	// whole, which its workers divide.
	Workload  string `json:"workload"`
	BatchSize int    `json:"batch_size"`
	// Sync is MXNet's kind of key-value store ("dist_sync").
	Sync    string `json:"sync"`
	Servers int    `json:"servers"`
	Workers int    `json:"workers"`
	// Speeds are the workers' in samples/s; the file names no unit. CPU use is in
	// threads, by task.
	Speeds    []float64 `json:"speeds"`
	ServerCPU []float64 `json:"server_cpu"`
	WorkerCPU []float64 `json:"worker_cpu"`
	// Line is where it stands in its file.
	Line int `json:"line"`
}

// ReadDL2 reads the speeds that DL2 (TPDS 2021) measured: a Python tuple a
// line, (model, kind of store, batch size, parameter servers, workers, [speed
// by worker], [CPU use by server], [CPU use by worker]). Lines in which a
// worker has speed 0 were not measured, and are left out.
func ReadDL2(r io.Reader, o Options) ([]DL2Speed, Report, error) {
	d, err := readDL2(r, o)
	if err != nil {
		return nil, d.Report, err
	}
	report, err := d.done(len(d.speeds), "speeds")
	if err != nil {
		return nil, report, err
	}
	return d.speeds, report, nil
}

// ReadDL2Samples reads the same as samples of scope rack: a job's workers and
// parameter servers (workload NAME/ps), with the mean speed of a worker.
func ReadDL2Samples(r io.Reader, o Options) ([]history.Sample, Report, error) {
	d, err := readDL2(r, o)
	if err != nil {
		return nil, d.Report, err
	}
	if d.Source == "" {
		d.Source = "dl2"
	}
	for _, v := range d.speeds {
		sum := 0.0
		for _, s := range v.Speeds {
			sum += s
		}
		if err := d.add(v.Line, history.Sample{
			Scope: history.ScopeRack, Colocation: cluster.Colocation{v.Workload: v.Workers, v.Workload + "/ps": v.Servers},
			Workload: v.Workload, Role: cluster.Worker, Workers: v.Workers, BatchSize: v.BatchSize,
			Metric: history.Rate, Value: sum / float64(v.Workers),
		}); err != nil {
			return nil, d.Report, err
		}
	}
	return d.doneSamples()
}

type dl2 struct {
	*reporter
	speeds []DL2Speed
}

func readDL2(r io.Reader, o Options) (*dl2, error) {
	o = o.withDefaults()
	d := &dl2{reporter: newReporter(o, "line")}
	in, err := unpack(r, o)
	if err != nil {
		return d, err
	}
	lines := lineReader{in: in, max: o.MaxRecord}
	still, excluded := 0, 0
	for {
		line, err := lines.next()
		if err == io.EOF {
			break
		}
		if err != nil && !errors.Is(err, errLineTooLong) {
			return d, err
		}
		if err == nil && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var v DL2Speed
		var measured bool
		if err == nil {
			v, measured, err = parseDL2(line)
		}
		if err != nil {
			if err := d.bad(lines.number, err); err != nil {
				return d, err
			}
			continue
		}
		if len(d.speeds) == o.MaxSamples {
			return d, d.fatal("%w: more than %d lines; raise the limit if the file is sound", ErrTooLarge, o.MaxSamples)
		}
		d.duplicate(line)
		d.Read++
		v.Line = lines.number
		switch {
		case o.excludes(v.Workload):
			excluded++
		case !measured:
			still++
		default:
			d.speeds = append(d.speeds, v)
		}
	}
	if lines.open {
		d.warn("the last line has no end; if the file was cut off there, its last value may be too short")
	}
	if still > 0 {
		d.warn("lines in which a worker has speed 0: %d; not measured, left out", still)
	}
	if excluded > 0 {
		d.warn("lines of the excluded %s: %d; left out", strings.Join(o.Exclude, ", "), excluded)
	}
	return d, nil
}

// maxDL2Tasks bounds the tasks of a job in DL2's file, which has each in its
// lists.
const maxDL2Tasks = 10_000

func parseDL2(line []byte) (v DL2Speed, measured bool, err error) {
	if !utf8.Valid(line) {
		return v, false, errors.New("is not UTF-8 text")
	}
	value, err := parsePython(string(line))
	if err != nil {
		return v, false, &fieldError{"tuple", string(line), err}
	}
	f, ok := value.(pyTuple)
	if !ok || len(f) != 8 {
		return v, false, badField("tuple", string(line), "has not the 8 items (model, store, batch size, servers, workers, [speeds], [server CPU], [worker CPU])")
	}
	texts := [2]string{}
	for i, name := range []string{"model", "store"} {
		if texts[i], ok = f[i].(string); !ok {
			return v, false, badField(name, fmt.Sprint(f[i]), "is no text")
		}
	}
	counts := [3]int{}
	for i, name := range []string{"batch size", "servers", "workers"} {
		n, ok := f[i+2].(pyNumber)
		if !ok {
			return v, false, badField(name, fmt.Sprint(f[i+2]), "is no number")
		}
		most := maxDL2Tasks
		if i == 0 {
			most = 1<<31 - 1
		}
		var missing bool
		if counts[i], missing, err = parseCount(string(n), most); err == nil && (missing || counts[i] == 0) {
			err = errors.New("is none")
		}
		if err != nil {
			return v, false, &fieldError{name, string(n), err}
		}
	}
	v = DL2Speed{
		Workload: fmt.Sprintf("%s/%d", strings.ToLower(texts[0]), counts[0]), BatchSize: counts[0], Sync: texts[1],
		Servers: counts[1], Workers: counts[2],
	}
	if err := checkWorkload(v.Workload); err != nil || texts[0] == "" {
		if err == nil {
			err = errors.New("is empty")
		}
		return v, false, &fieldError{"model", texts[0], err}
	}
	for i, list := range []struct {
		name string
		to   *[]float64
		n    int
	}{{"speeds", &v.Speeds, v.Workers}, {"server CPU", &v.ServerCPU, v.Servers}, {"worker CPU", &v.WorkerCPU, v.Workers}} {
		items, ok := f[i+5].(pyTuple)
		if !ok || len(items) != list.n {
			return v, false, badField(list.name, fmt.Sprint(f[i+5]), "is no list of %d numbers", list.n)
		}
		for _, item := range items {
			n, ok := item.(pyNumber)
			if !ok {
				return v, false, badField(list.name, fmt.Sprint(item), "is no number")
			}
			x, err := traceNumber(string(n), maxSteps)
			if err != nil {
				return v, false, &fieldError{list.name, string(n), err}
			}
			*list.to = append(*list.to, x)
		}
	}
	measured = true
	for _, s := range v.Speeds {
		measured = measured && s > 0
	}
	return v, measured, nil
}
