package formats

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// MaxBatch bounds the tasks of one batch: more is a slip of the keyboard.
const MaxBatch = 1_000_000

// Batches are the rows of a table of task batches.
type Batches struct {
	Workloads []string
	// Rows has the tasks of each workload, a row a batch; nil for a bad row, so
	// that rows keep their numbers.
	Rows [][]int
	name string
	bad  map[int]error
}

// Row is the batch with that number, counted from 0 after the header.
func (b Batches) Row(row int) (map[string]int, error) {
	switch {
	case row < 0 || row >= len(b.Rows):
		return nil, fmt.Errorf("%s: no row %d; it has %d, counted from 0 after the header", b.name, row, len(b.Rows))
	case b.Rows[row] == nil:
		return nil, fmt.Errorf("row %d: %w", row, b.bad[row])
	}
	batch := make(map[string]int, len(b.Workloads))
	for w, n := range b.Rows[row] {
		if n > 0 {
			batch[b.Workloads[w]] = n
		}
	}
	return batch, nil
}

// SplitRow cuts "FILE:row" in two. ok is false where no row is given.
func SplitRow(arg string) (file string, row int, ok bool) {
	at := strings.LastIndexByte(arg, ':')
	if at < 1 || at == len(arg)-1 || strings.Trim(arg[at+1:], "0123456789") != "" {
		return arg, 0, false
	}
	row, _, err := parseCount(arg[at+1:], 1<<31-1)
	if err != nil {
		return arg, 0, false
	}
	return arg[:at], row, true
}

// ReadBatches reads task batches: a CSV with a column a workload and a row a
// batch, each field the number of tasks. A bad row keeps its number, so that
// FILE:row means the same batch with and without it.
func ReadBatches(r io.Reader, o Options) (Batches, Report, error) {
	t, err := openTable(r, o)
	if err != nil {
		return Batches{}, Report{}, err
	}
	if err := checkColumns(t.header); err != nil {
		return Batches{}, t.Report, t.at(t.lines.number, err)
	}
	b := Batches{Workloads: t.header, name: t.Name, bad: map[int]error{}}
	t.onBad = func(err error) {
		b.bad[len(b.Rows)] = err
		b.Rows = append(b.Rows, nil)
	}
	cells := 0
	for {
		more, err := t.next()
		if err != nil {
			return Batches{}, t.Report, err
		}
		if !more {
			break
		}
		row, err := t.batch()
		if err != nil {
			if err := t.bad(t.lines.number, err); err != nil {
				return Batches{}, t.Report, err
			}
			continue
		}
		if cells += len(row); cells > t.MaxSamples {
			return Batches{}, t.Report, t.fatal("%w: more than %d fields; raise the limit if the file is sound", ErrTooLarge, t.MaxSamples)
		}
		t.duplicate(t.raw)
		t.Read++
		b.Rows = append(b.Rows, row)
	}
	report, err := t.done(t.Read, "batches")
	return b, report, err
}

// batch is the current record as numbers of tasks.
func (t *table) batch() ([]int, error) {
	row := make([]int, len(t.header))
	total := 0
	for i, w := range t.header {
		n, missing, err := parseCount(t.fields[i], 1<<53)
		if missing {
			err = errors.New("is no number of tasks; write 0 for none")
		}
		if err != nil {
			return nil, &fieldError{w, t.fields[i], err}
		}
		row[i] = n
		total = min(total+n, 1<<53)
	}
	switch {
	case total == 0:
		return nil, errors.New("a batch without a task")
	case total > MaxBatch:
		return nil, fmt.Errorf("%d tasks; a batch has at most %d", total, MaxBatch)
	}
	return row, nil
}
