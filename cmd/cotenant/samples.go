package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/history/sqlstore"
)

// readSamples reads a file of samples in any format, or an SQLite store, and
// says on log what was left out.
func (f *sourceFlags) readSamples(in *inputs, log io.Writer) ([]history.Sample, error) {
	data, err := in.read("samples", f.samples)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(data, []byte("SQLite format 3\x00")) {
		return readStore(f.samples)
	}
	o := formats.Options{Name: f.samples, Strict: f.strict, Columns: f.columns}
	samples, report, err := formats.ReadSamples(bytes.NewReader(data), o)
	if err != nil { // which names the first bad record, where that is all there is
		return nil, fmt.Errorf("--samples: %w", err)
	}
	warn(log, "samples", report)
	warnUnfinished(log, f.samples)
	f.raw, f.places = samples, report
	return history.Joined(samples), nil
}

// located adds to an error about certain samples where in the file those are,
// as far as that is known.
func (f *sourceFlags) located(err error) error {
	var about history.Culprits
	if !errors.As(err, &about) {
		return err
	}
	var at []string
	for _, c := range about.Culprits() {
		if i := f.find(c); i >= 0 {
			at = append(at, strconv.Itoa(f.places.Where[i]))
		}
	}
	at = slices.Compact(at)
	switch len(at) {
	case 0:
		return err
	case 1:
		return fmt.Errorf("%s %s: %w", f.places.Unit, at[0], err)
	}
	return fmt.Errorf("%ss %s: %w", f.places.Unit, strings.Join(at, " and "), err)
}

// find is the position among what was read of a sample that has since been
// given its value alone, perhaps, and lost what does not matter to a model; -1
// where it is not there, as when it is the mean of several.
func (f *sourceFlags) find(want history.Sample) int {
	key := want.Colocation.Key()
	like := -1
	for i, s := range f.raw {
		if s.Value != want.Value || s.Workload != want.Workload || s.Class != want.Class || s.Metric != want.Metric || s.Colocation.Key() != key {
			continue
		}
		if s.Alone == want.Alone {
			return i
		}
		if s.Alone == 0 && like < 0 {
			like = i
		}
	}
	return like
}

func readStore(file string) ([]history.Sample, error) {
	store, err := sqlstore.Open(file)
	if err != nil {
		return nil, fmt.Errorf("--samples: %w", err)
	}
	defer store.Close()
	samples, err := store.All()
	if err != nil {
		return nil, fmt.Errorf("--samples: %w", err)
	}
	return history.Joined(samples), nil
}

// warn passes on what a reader left out.
func warn(log io.Writer, flag string, report formats.Report) {
	for _, w := range report.Warnings {
		fmt.Fprintf(log, "--%s: %s\n", flag, w)
	}
}
