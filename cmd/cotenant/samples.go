package main

import (
	"bytes"
	"fmt"
	"io"

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
	warn(log, "samples", report)
	warnUnfinished(log, f.samples)
	if err != nil {
		return nil, fmt.Errorf("--samples: %w", err)
	}
	return history.Joined(samples), nil
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
