package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
)

// readSamples reads a file of samples, whatever its format, and says on log
// what the reader left out.
func readSamples(in *inputs, log io.Writer, file string) ([]history.Sample, error) {
	data, err := in.read("samples", file)
	if err != nil {
		return nil, err
	}
	return parseSamples(file, data, log)
}

func parseSamples(file string, data []byte, log io.Writer) ([]history.Sample, error) {
	read := formats.ReadJSONL
	if strings.HasSuffix(strings.TrimSuffix(file, ".gz"), ".csv") {
		read = formats.ReadCSV
		if !bytes.Contains(firstLine(data), []byte("colocation")) {
			read = formats.ReadMetisCSV
		}
	}
	samples, report, err := read(bytes.NewReader(data), formats.Options{Name: file})
	for _, w := range report.Warnings {
		fmt.Fprintf(log, "--samples: %s\n", w)
	}
	if err != nil {
		return nil, fmt.Errorf("--samples: %w", err)
	}
	return samples, nil
}

func firstLine(data []byte) []byte {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return line
}

// noFile puts a missing file into words.
func noFile(flag, path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--%s: there is no file %q; check the path", flag, path)
	}
	return fmt.Errorf("--%s: %w", flag, err)
}
