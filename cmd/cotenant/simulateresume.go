package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// keptRun is a run that an earlier, interrupted command finished.
type keptRun struct {
	row     servicesRow
	moments [][]string // lines of moments.csv
}

// kept is what --out holds of an earlier run.
type kept struct {
	runs  map[runKey]*servicesRun // the finished ones, of the same command
	other bool                    // of another command, or finished: an interruption leaves it as it is
}

// readKept takes up the finished runs that an interrupted run of the same
// command, on the same input, left in dir.
func (d *dynamic) readKept(dir string, now manifest, log io.Writer) (kept, error) {
	k := kept{runs: map[runKey]*servicesRun{}}
	if dir == "" {
		return k, nil
	}
	text, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	var then manifest
	if err == nil {
		err = json.Unmarshal(text, &then)
	}
	if err != nil || then.Unfinished == 0 || !now.same(then) {
		k.other = true
		if then.Unfinished > 0 {
			fmt.Fprintf(log, "--out %s: holds an interrupted run with other flags, input or version, which is not gone on with\n", dir)
		}
		return k, nil
	}
	if err := d.readRuns(dir, k.runs); err != nil {
		return k, fmt.Errorf("--out %s: the interrupted run in it cannot be gone on with: %w; move it away, or name another folder", dir, err)
	}
	fmt.Fprintf(log, "%d of %d runs are taken from %s, where they were interrupted\n", len(k.runs), len(d.specs)*len(d.seeds), dir)
	return k, nil
}

// same reports whether two commands come to the same results, wherever they
// write them.
func (m manifest) same(o manifest) bool {
	flags := func(m manifest) map[string]string {
		f := maps.Clone(m.Flags)
		delete(f, "out")
		delete(f, "output")
		return f
	}
	content := func(a, b inputHash) bool { return a.Flag == b.Flag && a.SHA256 == b.SHA256 }
	return m.Command == o.Command && m.Version == o.Version && maps.Equal(flags(m), flags(o)) && slices.EqualFunc(m.Inputs, o.Inputs, content)
}

// readRuns reads what servicesFiles wrote. A run that failed is left out: it is
// tried again.
func (d *dynamic) readRuns(dir string, runs map[runKey]*servicesRun) error {
	var header []string
	err := eachLine(filepath.Join(dir, "runs.csv"), func(first, cells []string) error {
		header = first
		row, err := d.parseRow(header, cells)
		if err == nil && row.Error == "" {
			runs[runKey{row.Policy, row.Seed}] = &servicesRun{policy: row.Policy, seed: row.Seed, seconds: float64(row.SecondsPlacing), kept: &keptRun{row: row}}
		}
		return err
	})
	if err != nil {
		return err
	}
	// Of both files a line begins with the policy and the seed.
	of := func(cells []string) *servicesRun {
		seed, _ := strconv.ParseUint(cells[1], 10, 64)
		return runs[runKey{cells[0], seed}]
	}
	err = eachLine(filepath.Join(dir, "moments.csv"), func(_, cells []string) error {
		if r := of(cells); r != nil {
			r.kept.moments = append(r.kept.moments, cells)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return eachLine(filepath.Join(dir, "decisions.csv"), func(_, cells []string) error {
		r := of(cells)
		if r == nil {
			return nil
		}
		lines := csv.NewWriter(&r.decisions)
		err := lines.Write(cells)
		lines.Flush()
		return err
	})
}

// parseRow reads a line of runs.csv, whose columns have the names of the JSON's
// fields.
func (d *dynamic) parseRow(header, cells []string) (servicesRow, error) {
	var b bytes.Buffer
	for i, name := range header {
		value := cells[i]
		switch {
		case name == "policy" || name == "bound_on" || name == "error":
			text, err := marshal(value)
			if err != nil {
				return servicesRow{}, err
			}
			value = string(text)
		case value == "":
			value = "null"
		}
		fmt.Fprintf(&b, ",%q:%s", name, value)
	}
	// A null leaves a number as it is: none.
	row := d.emptyRow()
	if err := json.Unmarshal(append(bytes.Replace(b.Bytes(), []byte(","), []byte("{"), 1), '}'), &row); err != nil {
		return row, fmt.Errorf("runs.csv: %w", err)
	}
	if d.config.Objective.Traffic != 0 && row.Traffic == nil {
		row.Traffic = ptr(math.NaN())
	}
	return row, nil
}

// eachLine calls f for every line of a CSV file, with its header.
func eachLine(path string, f func(header, cells []string) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := csv.NewReader(file)
	header, err := lines.Read()
	if err == nil && len(header) < 2 {
		err = errors.New("no such table")
	}
	for err == nil {
		var cells []string
		if cells, err = lines.Read(); err == nil {
			err = f(header, cells)
		}
	}
	if errors.Is(err, io.EOF) && header != nil {
		return nil
	}
	return fmt.Errorf("%s: %w", filepath.Base(path), err)
}
