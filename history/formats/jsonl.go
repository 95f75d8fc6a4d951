package formats

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// ReadJSONL reads our own samples: one JSON object a line, as
// history.Sample marshals. Samples of the same co-location share one map:
// don't change it.
func ReadJSONL(r io.Reader, o Options) ([]history.Sample, Report, error) {
	o = o.withDefaults()
	in, err := unpack(r, o)
	if err != nil {
		return nil, Report{}, err
	}
	rep := newReporter(o, "line")
	lines := lineReader{in: in, max: o.MaxRecord}
	p := sampleParser{names: map[string]string{}, colocations: map[string]cluster.Colocation{}, ignored: map[string]bool{}}
	for {
		line, err := lines.next()
		if err == io.EOF {
			break
		}
		if err != nil && !errors.Is(err, errLineTooLong) {
			return nil, rep.Report, err
		}
		if err == nil && strings.TrimSpace(string(line)) == "" {
			continue
		}
		var s history.Sample
		if err == nil {
			s, err = p.parse(line, o.Strict)
		}
		if err != nil {
			if err := rep.bad(lines.number, err); err != nil {
				return nil, rep.Report, err
			}
			continue
		}
		rep.duplicate(line)
		rep.Read++
		if err := rep.add(lines.number, s); err != nil {
			return nil, rep.Report, err
		}
	}
	if len(p.ignored) > 0 {
		rep.warn("ignored fields that the format does not have: %s", strings.Join(sortedKeys(p.ignored), ", "))
	}
	return rep.doneSamples()
}

// sampleParser shares equal names and co-locations between samples.
type sampleParser struct {
	names       map[string]string
	colocations map[string]cluster.Colocation
	ignored     map[string]bool
}

func (p *sampleParser) share(b []byte) string {
	if got, ok := p.names[string(b)]; ok {
		return got
	}
	s := string(b)
	p.names[s] = s
	return s
}

// text is a field's text as setField takes it: names are shared, numbers, of
// which no two need be equal, are not.
func (p *sampleParser) text(field string, b []byte) string {
	if isNumber(field) {
		return string(b)
	}
	return p.share(b)
}

func isNumber(field string) bool {
	switch field {
	case "workers", "batch_size", "value", "alone", "repeats", "spread":
		return true
	}
	return false
}

// sampleFields are the names of history.Sample's JSON form, which are the
// columns of the CSV form too.
var sampleFields = []string{
	"source", "start", "end", "class", "scope", "colocation", "workload", "role", "job", "span",
	"workers", "batch_size", "metric", "value", "alone", "repeats", "spread",
}

// requiredFields are those that a sample can't be without.
var requiredFields = []string{"colocation", "workload", "metric", "value"}

func fieldIndex(name []byte) int {
	for i, f := range sampleFields {
		if string(name) == f {
			return i
		}
	}
	return -1
}

func (p *sampleParser) parse(line []byte, strict bool) (history.Sample, error) {
	var s history.Sample
	var seen [17]bool // by position in sampleFields
	err := eachField(line, func(name, value []byte) error {
		at := fieldIndex(name)
		if at < 0 {
			if strict {
				return badField(string(name), string(value), "is in a field that the format does not have")
			}
			if len(p.ignored) < maxWarnings {
				p.ignored[string(name)] = true
			}
			return nil
		}
		field := sampleFields[at]
		if seen[at] {
			return badField(field, string(value), "comes a second time")
		}
		seen[at] = true
		if field == "colocation" {
			c, err := p.colocation(value)
			s.Colocation = c
			return err
		}
		read := jsonString
		if isNumber(field) {
			read = jsonText
		}
		text, err := read(value)
		if err == nil {
			err = setField(&s, field, p.text(field, text))
		}
		if err != nil {
			return &fieldError{field, string(value), err}
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	for _, name := range requiredFields {
		if !seen[fieldIndex([]byte(name))] {
			return s, fmt.Errorf("%s: missing", name)
		}
	}
	return s, s.Validate()
}

func (p *sampleParser) colocation(value []byte) (cluster.Colocation, error) {
	if c, ok := p.colocations[string(value)]; ok {
		return c, nil
	}
	c := cluster.Colocation{}
	err := eachField(value, func(name, count []byte) error {
		if _, twice := c[string(name)]; twice {
			return fmt.Errorf("names %q twice", name)
		}
		text, err := jsonText(count)
		if err != nil {
			return err
		}
		n, missing, err := parseCount(string(text), maxCount)
		if missing {
			err = errors.New("is no count")
		}
		if err != nil {
			return fmt.Errorf("has for %q %s, which %w", name, quoteShort(string(count)), err)
		}
		c[p.share(name)] = n
		return nil
	})
	if err != nil {
		return nil, &fieldError{"colocation", string(value), err}
	}
	p.colocations[string(value)] = c
	return c, nil
}

// setField gives a field, co-location aside, its value from its text. Both
// forms of the file, JSON Lines and CSV, come through here.
func setField(s *history.Sample, field, text string) (err error) {
	number := func(v *float64) {
		var missing bool
		if *v, missing, err = parseNumber(text); missing && field == "value" {
			err = errors.New("is no measurement")
		}
	}
	count := func(n *int) { *n, _, err = parseCount(text, 1<<31-1) }
	stamp := func(t *time.Time) {
		if text != "" {
			if *t, err = time.Parse(time.RFC3339Nano, text); err != nil {
				err = errors.New("is not a time like 2026-01-02T15:04:05Z (RFC 3339)")
			}
		}
	}
	switch field {
	case "source":
		s.Source = text
	case "start":
		stamp(&s.Start)
	case "end":
		stamp(&s.End)
	case "class":
		s.Class = text
	case "scope":
		s.Scope = history.Scope(text)
	case "workload":
		s.Workload = text
	case "role":
		s.Role = cluster.Role(text)
	case "job":
		s.Job = text
	case "span":
		s.Span = cluster.Span(text)
	case "workers":
		count(&s.Workers)
	case "batch_size":
		count(&s.BatchSize)
	case "metric":
		s.Metric = history.Metric(text)
	case "value":
		number(&s.Value)
	case "alone":
		number(&s.Alone)
	case "repeats":
		count(&s.Repeats)
	case "spread":
		number(&s.Spread)
	}
	return err
}

// WriteJSONL writes samples as ReadJSONL reads them. It fails on the first
// invalid sample, by its position.
func WriteJSONL(w io.Writer, samples []history.Sample) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for i, s := range samples {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("sample %d: %w", i, err)
		}
		if err := enc.Encode(s); err != nil {
			return fmt.Errorf("sample %d: %w", i, err)
		}
	}
	return out.Flush()
}
