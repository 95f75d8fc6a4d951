package formats

import (
	"io"
	"math"
	"slices"

	"github.com/cotenant/cotenant/history"
)

// ReadMetisCSV reads the plain form of Metis's table: for each workload W a
// column W with the number of tasks and a column rps_W with the rate (1 =
// alone), and where they were measured rt50_W and rt99_W with the latencies
// in seconds. A latency of 0 is not a measurement. Columns come in any order;
// an empty field or NaN is no value.
func ReadMetisCSV(r io.Reader, o Options) ([]history.Sample, Report, error) {
	t, err := openTable(r, o)
	if err != nil {
		return nil, Report{}, err
	}
	workloads, known := t.metisWorkloads()
	if len(workloads) == 0 {
		return nil, t.Report, t.at(t.lines.number, badField("header", string(t.raw),
			"has no pair of columns W and rps_W; is it another format?"))
	}
	if err := checkColumns(workloads); err != nil {
		return nil, t.Report, t.at(t.lines.number, err)
	}
	if err := t.known(known...); err != nil {
		return nil, t.Report, err
	}
	m, err := newMetis(t.reporter, workloads)
	if err != nil {
		return nil, t.Report, err
	}
	cells := t.metisCells(workloads)
	var values [4][]float64
	for i := range cells {
		if slices.ContainsFunc(cells[i], func(at int) bool { return at >= 0 }) {
			values[i] = make([]float64, len(workloads))
		}
	}
	for {
		more, err := t.next()
		if err != nil {
			return nil, t.Report, err
		}
		if !more {
			return m.finish()
		}
		if err := t.metisValues(cells, values); err != nil {
			if err := t.bad(t.lines.number, err); err != nil {
				return nil, t.Report, err
			}
			continue
		}
		if err := m.row(t.lines.number, t.raw, values[0], values[1], [2][]float64{values[2], values[3]}); err != nil {
			return nil, t.Report, err
		}
	}
}

// metisWorkloads are the names W that have a column rps_W, in the order of
// their own columns, and all columns that belong to them.
func (t *table) metisWorkloads() (workloads, known []string) {
	for _, h := range t.header {
		if _, ok := t.column["rps_"+h]; !ok {
			continue
		}
		workloads = append(workloads, h)
		known = append(known, h, "rps_"+h, "rt50_"+h, "rt99_"+h)
	}
	return workloads, known
}

// metisPrefixes are those of the columns of a workload: tasks, rate, latencies.
var metisPrefixes = [4]string{"", "rps_", "rt50_", "rt99_"}

// metisCells are the positions of each workload's columns; -1 where it has
// none.
func (t *table) metisCells(workloads []string) (cells [4][]int) {
	for i, prefix := range metisPrefixes {
		for _, w := range workloads {
			at, ok := t.column[prefix+w]
			if !ok {
				at = -1
			}
			cells[i] = append(cells[i], at)
		}
	}
	return cells
}

// metisValues fills in the values of the current record; NaN is none.
func (t *table) metisValues(cells [4][]int, values [4][]float64) error {
	for i := range values {
		for w := range values[i] {
			values[i][w] = math.NaN()
			at := cells[i][w]
			if at < 0 {
				continue
			}
			v, missing, err := parseNumber(t.fields[at])
			switch {
			case err != nil:
				return &fieldError{t.header[at], t.fields[at], err}
			case !missing:
				values[i][w] = v
			case i == 0:
				return badField(t.header[at], t.fields[at], "is no number of tasks")
			}
		}
	}
	return nil
}
