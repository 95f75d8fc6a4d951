package formats

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cotenant/cotenant/history"
)

// ReadMetisNPZ reads Metis's measurements: a zip of the NumPy arrays alloc
// (tasks by workload, a row a co-location) and rps (rates, 1 = alone, NaN
// where alloc is 0), and where they hold plain numbers rt_50 and rt_99
// (latencies in seconds). The file does not name its workloads:
// Options.Columns does, in the order of the arrays' columns; columns beyond
// those must be unused. Rows count from 0.
//
// Arrays of pickled objects are skipped with a warning. Unpickling runs the
// file as a program, so this package has no code for it.
func ReadMetisNPZ(r io.Reader, o Options) ([]history.Sample, Report, error) {
	o = o.withDefaults()
	rep := newReporter(o, "row")
	if len(o.Columns) == 0 {
		return nil, Report{}, rep.fatal("the file doesn't name the workloads of its columns, and two orders are in use; "+
			"give yours, for example %s", "redis,mms,checksum,isr,ycsb_a,ycsb_b,scenedetect")
	}
	m, err := newMetis(rep, o.Columns)
	if err != nil {
		return nil, Report{}, err
	}
	arrays, err := m.arrays(r)
	if err != nil {
		return nil, rep.Report, err
	}
	alloc, rps := arrays["alloc"], arrays["rps"]
	k := len(o.Columns)
	for _, name := range metisArrays {
		a := arrays[name]
		switch {
		case a == nil:
		case a.columns < k:
			return nil, rep.Report, rep.fatal("%s has %d columns, where %d workloads are named: %s", name, a.columns, k, strings.Join(o.Columns, ", "))
		case a.rows != alloc.rows || a.columns != alloc.columns:
			return nil, rep.Report, rep.fatal("%s is %d x %d, where alloc is %d x %d", name, a.rows, a.columns, alloc.rows, alloc.columns)
		}
	}
	var raw []byte
	for i := range alloc.rows {
		if at := slices.IndexFunc(alloc.row(i)[k:], func(v float64) bool { return v != 0 }); at >= 0 {
			if err := m.bad(i, badField(fmt.Sprintf("alloc column %d", k+at), fmt.Sprint(alloc.row(i)[k+at]),
				"has no workload; name it with the other columns")); err != nil {
				return nil, rep.Report, err
			}
			continue
		}
		var latency [2][]float64
		raw = append(raw[:0], alloc.bytes(i)...)
		raw = append(raw, rps.bytes(i)...)
		for j, name := range metisArrays[2:] {
			if a := arrays[name]; a != nil {
				latency[j] = a.row(i)[:k]
				raw = append(raw, a.bytes(i)...)
			}
		}
		if err := m.row(i, raw, alloc.row(i)[:k], rps.row(i)[:k], latency); err != nil {
			return nil, rep.Report, err
		}
	}
	return m.finish()
}

// metisArrays are the arrays that are read; the last two may be missing.
var metisArrays = []string{"alloc", "rps", "rt_50", "rt_99"}

// arrays unpacks the arrays of numbers among metisArrays.
func (m *metis) arrays(r io.Reader) (map[string]*matrix, error) {
	in, err := unpack(r, m.Options)
	if err != nil {
		return nil, err
	}
	file, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	if len(file) == 0 {
		return nil, m.fatal("%w", ErrEmpty)
	}
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, m.fatal("is no whole .npz file: %w", err)
	}
	arrays := map[string]*matrix{}
	seen := map[string]bool{}
	var other []string
	left := m.MaxBytes
	for _, entry := range z.File {
		name := strings.TrimSuffix(entry.Name, ".npy")
		if !slices.Contains(metisArrays, name) {
			other = append(other, quoteShort(name))
			continue
		}
		if seen[name] {
			return nil, m.fatal("array %s is there twice", name)
		}
		seen[name] = true
		a, err := readEntry(entry, left)
		switch {
		case errors.Is(err, errPickled) && name != "alloc" && name != "rps":
			m.warn("array %s %s: skipped", name, errPickled)
		case err != nil:
			return nil, m.fatal("array %s: %w", name, err)
		default:
			arrays[name] = a
			left -= int64(len(a.data)) * int64(8+a.size)
		}
	}
	if len(other) > 0 {
		slices.Sort(other)
		m.warn("ignored arrays that the format does not have: %s", strings.Join(other[:min(len(other), maxWarnings)], ", "))
	}
	for _, name := range metisArrays[:2] {
		if arrays[name] == nil {
			return nil, m.fatal("no array %s in it", name)
		}
	}
	return arrays, nil
}

func readEntry(entry *zip.File, most int64) (*matrix, error) {
	f, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readMatrix(f, most)
}

// bytes are equal for equal rows of one array.
func (m *matrix) bytes(i int) []byte {
	if m.raw == nil {
		return fmt.Append(nil, m.row(i))
	}
	n := m.columns * m.size
	return m.raw[i*n : (i+1)*n]
}
