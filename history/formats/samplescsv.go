package formats

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// ReadCSV reads samples from a table: a line a sample, with the columns of
// the JSON form in any order, and the co-location as "mms*2+redis". The
// columns colocation, workload, metric and value must be there.
func ReadCSV(r io.Reader, o Options) ([]history.Sample, Report, error) {
	t, err := openTable(r, o, requiredFields...)
	if err != nil {
		return nil, Report{}, err
	}
	if err := t.known(sampleFields...); err != nil {
		return nil, t.Report, err
	}
	p := sampleParser{names: map[string]string{}, colocations: map[string]cluster.Colocation{}}
	for {
		more, err := t.next()
		if err != nil {
			return nil, t.Report, err
		}
		if !more {
			break
		}
		s, err := p.row(t)
		if err != nil {
			if err := t.bad(t.lines.number, err); err != nil {
				return nil, t.Report, err
			}
			continue
		}
		t.duplicate(t.raw)
		t.Read++
		if err := t.add(t.lines.number, s); err != nil {
			return nil, t.Report, err
		}
	}
	return t.doneSamples()
}

func (p *sampleParser) row(t *table) (history.Sample, error) {
	var s history.Sample
	for _, field := range sampleFields {
		text := t.get(field)
		if field == "colocation" {
			c, ok := p.colocations[text]
			if !ok {
				var err error
				if c, err = cluster.ParseColocation(text); err != nil {
					return s, &fieldError{field, text, fmt.Errorf("is none like mms*2+redis: %w", err)}
				}
				p.colocations[text] = c
			}
			s.Colocation = c
			continue
		}
		if err := setField(&s, field, p.text(field, []byte(text))); err != nil {
			return s, &fieldError{field, text, err}
		}
	}
	return s, s.Validate()
}

// WriteCSV writes samples as ReadCSV reads them, with all columns. It fails
// on the first sample that is invalid or holds a text of several lines.
func WriteCSV(w io.Writer, samples []history.Sample) error {
	out := csv.NewWriter(w)
	if err := out.Write(sampleFields); err != nil {
		return err
	}
	for i, s := range samples {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("sample %d: %w", i, err)
		}
		row := []string{
			s.Source, stamp(s.Start), stamp(s.End), s.Class, string(s.Scope), s.Colocation.Key(), s.Workload,
			string(s.Role), s.Job, string(s.Span), optional(float64(s.Workers)), optional(float64(s.BatchSize)), string(s.Metric),
			strconv.FormatFloat(s.Value, 'g', -1, 64), optional(s.Alone), optional(float64(s.Repeats)), optional(s.Spread),
		}
		if at := slices.IndexFunc(row, func(f string) bool {
			return strings.ContainsFunc(f, unicode.IsControl) || f != strings.TrimSpace(f)
		}); at >= 0 {
			return fmt.Errorf("sample %d: %s: %q %w", i, sampleFields[at], row[at],
				errors.New("does not survive a CSV (control characters, or spaces at an end); write JSON Lines"))
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// optional leaves a field empty that 0 says nothing in.
func optional(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
