package formats

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// table reads a CSV with a header line by line. Records are single lines: a
// quote that is not closed spoils its line and not the rest of the file.
type table struct {
	*reporter
	lines  lineReader
	header []string
	column map[string]int
	fields []string
	raw    []byte // the line of the current record
}

// openTable reads the header, which must have the columns in required.
func openTable(r io.Reader, o Options, required ...string) (*table, error) {
	o = o.withDefaults()
	in, err := unpack(r, o)
	if err != nil {
		return nil, err
	}
	t := &table{reporter: newReporter(o, "line"), column: map[string]int{}}
	t.lines = lineReader{in: in, max: o.MaxRecord}
	for len(bytes.TrimSpace(t.raw)) == 0 {
		switch t.raw, err = t.lines.next(); {
		case err == io.EOF:
			return nil, t.fatal("no header: %w", ErrEmpty)
		case err != nil:
			return nil, t.lineError(err)
		}
	}
	header, err := splitCSV(t.raw, nil)
	if err != nil {
		return nil, t.at(t.lines.number, fmt.Errorf("header: %w", err))
	}
	for i, name := range header {
		name = strings.TrimSpace(name)
		if _, twice := t.column[name]; twice {
			return nil, t.at(t.lines.number, badField("header", name, "names two columns"))
		}
		t.column[name] = i
		t.header = append(t.header, name)
	}
	for _, name := range required {
		if _, ok := t.column[name]; !ok {
			return nil, t.at(t.lines.number, badField("header", string(t.raw), "has no column %q; it needs %s, separated by commas",
				name, strings.Join(required, ", ")))
		}
	}
	return t, nil
}

// lineError keeps the name of the file in an error of the input, and adds it
// and the line to one about the line.
func (t *table) lineError(err error) error {
	if errors.Is(err, errLineTooLong) {
		return t.at(t.lines.number, err)
	}
	return err
}

// known warns of columns that are not in names; strict, it fails.
func (t *table) known(names ...string) error {
	var extra []string
	for _, h := range t.header {
		if !slices.Contains(names, h) {
			extra = append(extra, h)
		}
	}
	if len(extra) == 0 {
		return nil
	}
	if t.Strict {
		return t.at(1, badField("header", extra[0], "is not a column of this format; it has %s", strings.Join(names, ", ")))
	}
	t.warn("ignored columns that the format does not have: %s", strings.Join(extra, ", "))
	return nil
}

// next moves to the next record that has as many fields as the header; false
// at the end. Blank lines are no records.
func (t *table) next() (bool, error) {
	for {
		line, err := t.lines.next()
		switch {
		case err == io.EOF:
			if t.lines.open {
				t.warn("the last line has no end; if the file was cut off there, its last value may be too short")
			}
			return false, nil
		case errors.Is(err, errLineTooLong):
			if err := t.bad(t.lines.number, err); err != nil {
				return false, err
			}
			continue
		case err != nil:
			return false, err
		case len(bytes.TrimSpace(line)) == 0:
			continue
		}
		t.raw = line
		t.fields, err = splitCSV(line, t.fields[:0])
		if err == nil && len(t.fields) != len(t.header) {
			err = fmt.Errorf("%d fields, where the header has %d", len(t.fields), len(t.header))
		}
		if err == nil {
			return true, nil
		}
		if err := t.bad(t.lines.number, err); err != nil {
			return false, err
		}
	}
}

// get is the field of the current record under a column; "" without one.
func (t *table) get(column string) string {
	i, ok := t.column[column]
	if !ok {
		return ""
	}
	return strings.TrimSpace(t.fields[i])
}

// splitCSV appends the fields of a line to dst (RFC 4180).
func splitCSV(line []byte, dst []string) ([]string, error) {
	if !utf8.Valid(line) {
		return dst, errors.New("is not UTF-8 text")
	}
	text := string(line)
	if strings.IndexByte(text, '"') < 0 {
		for f := range strings.SplitSeq(text, ",") {
			dst = append(dst, f)
		}
		return dst, nil
	}
	r := csv.NewReader(strings.NewReader(text))
	fields, err := r.Read()
	if err != nil {
		var p *csv.ParseError
		if errors.As(err, &p) {
			return dst, fmt.Errorf("column %d: %w", p.Column, p.Err)
		}
		return dst, err
	}
	return append(dst, fields...), nil
}
