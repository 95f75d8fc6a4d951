package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cotenant/cotenant/history/formats"
)

// manifest says how the files beside it came about.
type manifest struct {
	Command string            `json:"command"`
	Version string            `json:"version"`
	Flags   map[string]string `json:"flags"`
	Seeds   []uint64          `json:"seeds"`
	Inputs  []inputHash       `json:"inputs"`
	Files   []string          `json:"files"`
}

func newManifest(cmd *cobra.Command, seeds []uint64, in *inputs) manifest {
	m := manifest{Command: cmd.CommandPath(), Version: version(), Flags: map[string]string{}, Seeds: seeds, Inputs: in.hashes}
	cmd.Flags().Visit(func(f *pflag.Flag) { m.Flags[f.Name] = f.Value.String() })
	return m
}

// outFile is a file to write into --out.
type outFile struct {
	name string
	data []byte
}

func csvFile(name string, header []string, rows [][]string) (outFile, error) {
	var b bytes.Buffer
	if err := writeCSV(&b, header, rows); err != nil {
		return outFile{}, fmt.Errorf("%s: %w", name, err)
	}
	return outFile{name, b.Bytes()}, nil
}

// writeRun writes the files into a directory, each whole or not at all, and
// the manifest last: where it is, everything is.
func writeRun(dir string, m manifest, files []outFile) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if err := os.Remove(filepath.Join(dir, "manifest.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--out: %w", err)
	}
	for _, f := range files {
		m.Files = append(m.Files, f.name)
		if err := writeFile(filepath.Join(dir, f.name), f.data); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("--out: manifest: %w", err)
	}
	if err := writeFile(filepath.Join(dir, "manifest.json"), append(text, '\n')); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// writeFile writes a file whole or not at all.
func writeFile(path string, data []byte) error {
	return formats.WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
