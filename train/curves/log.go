package curves

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/cotenant/cotenant/internal/whole"
)

// LinesFile is the name of the JSON Lines in the folder of a Log.
const LinesFile = "scalars.jsonl"

// Scalar is a value at a step of training.
type Scalar struct {
	Tag   string // such as validation/spread: TensorBoard groups by what is before the slash
	Value float64
}

func (s Scalar) finite() bool { return !math.IsNaN(s.Value) && !math.IsInf(s.Value, 0) }

// Log writes the curves of one run. Its files are good to read at any time;
// one that was cut off in a line or record loses that one.
type Log struct {
	dir           string
	lines, events *os.File
}

// Open begins a log in a folder, which it makes, or goes on with one from a
// step: what the lines say of that step and later is dropped.
func Open(dir string, from int, at time.Time) (*Log, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("curves: %w", whole.Explain(dir, err))
	}
	path := filepath.Join(dir, LinesFile)
	if err := cut(path, from); err != nil {
		return nil, fmt.Errorf("curves: %w", err)
	}
	l := &Log{dir: dir}
	var err error
	if l.lines, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o644); err != nil {
		return nil, fmt.Errorf("curves: %w", whole.Explain(path, err))
	}
	// Readers take files of a run in the order of their names.
	for n := 0; l.events == nil; n++ {
		path = filepath.Join(dir, fmt.Sprintf("events.out.tfevents.%010d.cotenant.%d", at.Unix(), n))
		l.events, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(fmt.Errorf("curves: %w", whole.Explain(path, err)), l.Close())
		}
	}
	first := header(at)
	if from > 0 {
		first = append(first, restart(at, from)...)
	}
	if _, err := l.events.Write(first); err != nil {
		return nil, errors.Join(fmt.Errorf("curves: %w", whole.Explain(path, err)), l.Close())
	}
	return l, nil
}

// cut makes a file of lines hold those of the steps before from, whole lines
// only.
func cut(path string, from int) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", path, err)
	}
	var kept []byte
	for line := range bytes.Lines(old) {
		var at struct {
			Step int `json:"step"`
		}
		if json.Unmarshal(line, &at) == nil && bytes.HasSuffix(line, []byte("\n")) && at.Step < from {
			kept = append(kept, line...)
		}
	}
	return whole.File(path, func(w io.Writer) error {
		_, err := w.Write(kept)
		return err
	})
}

// Add writes the scalars of a step. In the lines a value that is not finite is
// null; in the events it is left out.
func (l *Log) Add(step int, at time.Time, values []Scalar) error {
	line, err := jsonLine(step, at, values)
	if err == nil {
		_, err = l.lines.Write(line)
	}
	if err != nil {
		return fmt.Errorf("curves: %w", whole.Explain(l.lines.Name(), err))
	}
	if _, err := l.events.Write(scalars(at, step, values)); err != nil {
		return fmt.Errorf("curves: %w", whole.Explain(l.events.Name(), err))
	}
	return nil
}

// jsonLine is an object of the step, the time and the values, in their order.
func jsonLine(step int, at time.Time, values []Scalar) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"step":%d,"time":%q`, step, at.UTC().Format(time.RFC3339Nano))
	for _, s := range values {
		tag, err := json.Marshal(s.Tag)
		if err != nil {
			return nil, err
		}
		value := []byte("null")
		if s.finite() {
			if value, err = json.Marshal(s.Value); err != nil {
				return nil, err
			}
		}
		fmt.Fprintf(&b, ",%s:%s", tag, value)
	}
	b.WriteString("}\n")
	return b.Bytes(), nil
}

// Close ends the log.
func (l *Log) Close() error {
	var err error
	for _, f := range []*os.File{l.lines, l.events} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}
