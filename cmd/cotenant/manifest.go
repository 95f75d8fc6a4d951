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

	"github.com/cotenant/cotenant/internal/whole"
)

// manifest says how the files beside it came about.
type manifest struct {
	Command string            `json:"command"`
	Version string            `json:"version"`
	Flags   map[string]string `json:"flags"`
	Seeds   []uint64          `json:"seeds"`
	Inputs  []inputHash       `json:"inputs"`
	Files   []string          `json:"files"`
	// Unfinished is how many runs an interruption left to do.
	Unfinished int `json:"unfinished,omitempty"`
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

const manifestFile = "manifest.json"

// writeRun writes the files into a directory, each whole or not at all, and
// the manifest last: where it is, everything is.
func writeRun(dir string, m manifest, files []outFile) error {
	for _, f := range files {
		m.Files = append(m.Files, f.name)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("--out: manifest: %w", err)
	}
	files = append(files, outFile{manifestFile, append(text, '\n')})

	made, err := makeFolder(dir)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	staged, err := stage(dir, files)
	if err != nil {
		for _, folder := range made {
			_ = os.Remove(folder) // stays if somebody has put a file there
		}
		return fmt.Errorf("--out: %w", err)
	}
	// Of two runs with the same --out, one writes all files, then the other.
	unlock := whole.Lock(dir)
	defer unlock()
	old := filepath.Join(dir, manifestFile)
	if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		discard(staged)
		return fmt.Errorf("--out: %w", whole.Explain(old, err))
	}
	if err := whole.Commit(staged...); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// holdsRun reports whether a run was written into a directory.
func holdsRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, manifestFile))
	return err == nil
}

// makeFolder makes a folder and those above it, and lists what it made, the
// deepest first.
func makeFolder(dir string) (made []string, err error) {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		made = append(made, at)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, whole.Explain(dir, err)
	}
	return made, nil
}

// stage writes all files beside their places, or none.
func stage(dir string, files []outFile) (staged []*whole.Staged, err error) {
	for _, f := range files {
		s, err := whole.Stage(filepath.Join(dir, f.name), func(w io.Writer) error {
			_, err := w.Write(f.data)
			return err
		})
		if err != nil {
			discard(staged)
			return nil, err
		}
		staged = append(staged, s)
	}
	return staged, nil
}

// writeFile writes a file whole or not at all.
func writeFile(path string, data []byte) error {
	staged, err := stage("", []outFile{{path, data}})
	if err != nil {
		return err
	}
	return whole.Commit(staged...)
}

func discard(staged []*whole.Staged) {
	for _, s := range staged {
		s.Discard()
	}
}

// checkRunFolder tells early, before the work, whether --out could be written.
func checkRunFolder(dir string) error {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		switch info, err := os.Stat(at); {
		case err == nil && !info.IsDir():
			return fmt.Errorf("--out %s: %s is a file; name a folder", dir, at)
		case errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at):
			continue
		}
		if err := whole.Probe(filepath.Join(at, manifestFile)); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		return nil
	}
}
