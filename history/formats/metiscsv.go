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
	if err := t.known(known...); err != nil {
		return nil, t.Report, err
	}
	m, err := newMetis(t.reporter, workloads)
	if err != nil {
		return nil, t.Report, err
	}
	k := len(workloads)
	columns := [4]string{"", "rps_", "rt50_", "rt99_"}
	var values [4][]float64
	for i, prefix := range columns {
		if slices.ContainsFunc(workloads, func(w string) bool { _, ok := t.column[prefix+w]; return ok }) {
			values[i] = make([]float64, k)
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
		if err := t.metisValues(workloads, columns, values); err != nil {
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

// metisValues fills in the values of the current record; NaN is none.
func (t *table) metisValues(workloads []string, columns [4]string, values [4][]float64) error {
	for i, prefix := range columns {
		for w := range values[i] {
			field := prefix + workloads[w]
			text := t.get(field)
			v, missing, err := parseNumber(text)
			switch {
			case err != nil:
				return &fieldError{field, text, err}
			case missing && i == 0:
				return badField(field, text, "is no number of tasks")
			case missing:
				v = math.NaN()
			}
			values[i][w] = v
		}
	}
	return nil
}
