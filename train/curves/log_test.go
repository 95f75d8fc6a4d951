package curves

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// all reads both files of a log back.
func all(t *testing.T, dir string) (lines []map[string]any, points []point) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, LinesFile))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		lines = append(lines, v)
	}
	files, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		points = readEvents(t, b, points)
	}
	return lines, points
}

func write(t *testing.T, dir string, from, to int, value float64) {
	t.Helper()
	at := time.Unix(1700000000, 0)
	l, err := Open(dir, from, at)
	if err != nil {
		t.Fatal(err)
	}
	for step := from; step < to; step++ {
		if err := l.Add(step, at, []Scalar{{"a/b", value}, {"a/\"c\"", math.Inf(1)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// A run that goes on from step 3 takes back what it had said of 3 and later,
// also a line that was cut off.
func TestGoOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	write(t, dir, 0, 6, 1)
	f, err := os.OpenFile(filepath.Join(dir, LinesFile), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"step":2,"a/`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, dir, 3, 5, 2)
	lines, points := all(t, dir)
	if len(lines) != 5 || len(points) != 5 {
		t.Fatalf("%d lines and %d points, want 5: %v, %v", len(lines), len(points), lines, points)
	}
	for step, line := range lines {
		want := 1.0
		if step >= 3 {
			want = 2
		}
		if line["step"] != float64(step) || line["a/b"] != want || line[`a/"c"`] != nil || line["time"] != "2023-11-14T22:13:20Z" {
			t.Errorf("line %d is %v", step, line)
		}
		if points[step] != (point{step, "a/b", float32(want)}) {
			t.Errorf("point %d is %v", step, points[step])
		}
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, 0, time.Unix(0, 0)); err == nil || !strings.Contains(err.Error(), "not a folder") {
		t.Errorf("%v; want an error that names a file which is no folder", err)
	}
	if os.Geteuid() != 0 {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(filepath.Join(dir, "x"), 0, time.Unix(0, 0)); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%v; want one of permissions", err)
		}
	}
}
