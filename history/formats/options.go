package formats

import (
	"errors"
	"fmt"
	"hash/maphash"
	"strconv"

	"github.com/cotenant/cotenant/history"
)

// Limits that hold where Options names no other.
const (
	// DefaultMaxBytes bounds a file, unpacked.
	DefaultMaxBytes = 512 << 20
	// DefaultMaxRecord bounds one record: a line, or an object in a list.
	DefaultMaxRecord = 4 << 20
	// DefaultMaxSamples bounds the samples of one file; they are held in memory.
	DefaultMaxSamples = 4 << 20
	// maxCount bounds the tasks of one workload in a cell of a table.
	maxCount = 10_000_000
	// maxWarnings bounds the warnings about single records; the rest is counted.
	maxWarnings = 20
)

// ErrEmpty is wrapped by the error of a reader that found nothing usable.
var ErrEmpty = errors.New("nothing in it")

// ErrTooLarge is wrapped by the error of a reader that met a limit.
var ErrTooLarge = errors.New("larger than allowed")

// Options steer a reader. The zero value reads leniently under the default
// limits.
type Options struct {
	// Name is the file's name in errors; "" is "input".
	Name string
	// Strict fails on the first bad record, and on fields that the format does
	// not have. Otherwise bad records are left out, counted and reported.
	Strict bool
	// Columns names the workloads of the columns of a Metis npz, which doesn't
	// name them itself.
	Columns []string
	// Source and Class are given to samples of formats that carry none.
	Source, Class string
	// Exclude leaves out families of workloads, in the formats of training jobs
	// (Gavel's, DL2's): "recommendation" is all its batch sizes. Upper or lower
	// case.
	Exclude []string
	// Limits; 0 is the default of each.
	MaxBytes, MaxRecord int64
	MaxSamples          int
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "input"
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxRecord <= 0 {
		o.MaxRecord = DefaultMaxRecord
	}
	if o.MaxSamples <= 0 {
		o.MaxSamples = DefaultMaxSamples
	}
	return o
}

// Report says what a reader met.
type Report struct {
	// Read counts the records taken in, Skipped the bad ones left out.
	Read    int `json:"read"`
	Skipped int `json:"skipped"`
	// Duplicates counts records equal to an earlier one, byte by byte. They are
	// taken in all the same, except where a record is a thing (a node, a pod).
	Duplicates int `json:"duplicates"`
	// Warnings say in words what was left out and why.
	Warnings []string `json:"warnings,omitempty"`
	// Where holds the line (or row) of each sample returned; nil for formats
	// that hold no samples. Unit says which of them it is: "line", "row", "item".
	Where []int  `json:"-"`
	Unit  string `json:"-"`
}

// RecordError is a bad record: where it is, and what is wrong with it.
type RecordError struct {
	File string
	// Unit and Number locate the record: "line 12", "row 0", "item 3".
	Unit   string
	Number int
	// Field and Value are what could not be read; both empty where the record is
	// wrong as a whole.
	Field, Value string
	Err          error
}

func (e *RecordError) Error() string {
	where := e.File + ": " + e.Unit + " " + strconv.Itoa(e.Number) + ": "
	switch {
	case e.Field == "":
		return where + e.Err.Error()
	case e.Value == "":
		return where + e.Field + ": " + e.Err.Error()
	}
	return where + e.Field + ": " + quoteShort(e.Value) + " " + e.Err.Error()
}

func (e *RecordError) Unwrap() error { return e.Err }

// fieldError is a RecordError without its place.
type fieldError struct {
	field, value string
	err          error
}

func (e *fieldError) Error() string {
	return e.field + ": " + quoteShort(e.value) + " " + e.err.Error()
}
func (e *fieldError) Unwrap() error { return e.err }

func badField(field, value, format string, args ...any) error {
	return &fieldError{field, value, fmt.Errorf(format, args...)}
}

// quoteShort quotes a value, cut to what fits on a line.
func quoteShort(s string) string {
	const most = 60
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}

// reporter counts what a reader takes in, leaves out and warns of.
type reporter struct {
	Options
	Report
	hidden int   // warnings about records beyond maxWarnings
	first  error // about a bad record
	seen   map[uint64]struct{}
	hash   maphash.Hash
	// samples are those taken in so far; Report.Where goes with them.
	samples []history.Sample
	// onBad, where not nil, is told of each record that was left out.
	onBad func(error)
}

func newReporter(o Options, unit string) *reporter {
	return &reporter{Options: o, Report: Report{Unit: unit}, seen: map[uint64]struct{}{}}
}

// fatal is an error about the file as a whole.
func (r *reporter) fatal(format string, args ...any) error {
	return fmt.Errorf("%s: %w", r.Name, fmt.Errorf(format, args...))
}

// at is err with its place.
func (r *reporter) at(n int, err error) error {
	e := &RecordError{File: r.Name, Unit: r.Unit, Number: n, Err: err}
	var f *fieldError
	if errors.As(err, &f) {
		e.Field, e.Value, e.Err = f.field, f.value, f.err
	}
	return e
}

// bad reports a bad record: as an error that ends the reading when strict,
// as a warning otherwise.
func (r *reporter) bad(n int, err error) error {
	e := r.at(n, err)
	if r.Strict {
		return e
	}
	if r.Skipped++; r.first == nil {
		r.first = e
	}
	if r.onBad != nil {
		r.onBad(e)
	}
	r.warnRecord(e.Error() + " (record skipped)")
	return nil
}

// warnRecord warns about one record; past maxWarnings it only counts.
func (r *reporter) warnRecord(text string) {
	if len(r.Warnings) >= maxWarnings {
		r.hidden++
		return
	}
	r.Warnings = append(r.Warnings, text)
}

// warn warns about the file; there are few of these, and all are kept.
func (r *reporter) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, r.Name+": "+fmt.Sprintf(format, args...))
}

// duplicate counts the record if an equal one was seen, and says so.
func (r *reporter) duplicate(record []byte) bool {
	r.hash.Reset()
	_, _ = r.hash.Write(record) // never fails
	h := r.hash.Sum64()
	if _, twice := r.seen[h]; twice {
		r.Duplicates++
		return true
	}
	r.seen[h] = struct{}{}
	return false
}

// add takes in a sample of record n. It fails where that makes too many.
func (r *reporter) add(n int, s history.Sample) error {
	if len(r.samples) == r.MaxSamples {
		return r.fatal("%w: more than %d samples; raise the limit if the file is sound", ErrTooLarge, r.MaxSamples)
	}
	if s.Source == "" {
		s.Source = r.Source
	}
	if s.Class == "" {
		s.Class = r.Class
	}
	r.samples = append(r.samples, s)
	r.Where = append(r.Where, n)
	return nil
}

// doneSamples closes the report of a reader of samples.
func (r *reporter) doneSamples() ([]history.Sample, Report, error) {
	report, err := r.done(len(r.samples), "samples")
	if err != nil {
		return nil, report, err
	}
	return r.samples, report, nil
}

// done closes the report; what is the plural of what was looked for.
func (r *reporter) done(found int, what string) (Report, error) {
	if r.hidden > 0 {
		r.warn("%d more warnings like these", r.hidden)
	}
	if found > 0 {
		return r.Report, nil
	}
	if r.Skipped > 0 {
		return r.Report, fmt.Errorf("no %s: %w but bad records (%d); the first: %w", what, ErrEmpty, r.Skipped, r.first)
	}
	return r.Report, fmt.Errorf("%s: no %s: %w", r.Name, what, ErrEmpty)
}
