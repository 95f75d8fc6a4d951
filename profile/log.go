package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// Log is the record of a session: history.Samples as JSON Lines, appended
// repeat by repeat. One repeat is one write followed by fsync. All lines of a
// repeat share Start.
type Log struct {
	file    *os.File
	samples []history.Sample
	// Dropped says in words what was cut off a torn end; "" if nothing.
	Dropped string
}

// OpenLog opens or creates a record. A last line that was torn, and a last
// repeat that lacks workloads, are cut off; a broken line elsewhere is an error.
func OpenLog(path string) (*Log, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	// Two profilers on one machine would measure each other.
	if err := lock(f); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: another profiler writes to it (%w); wait for it, or give another --out", path, err)
	}
	l := &Log{file: f}
	if err := l.load(path); err != nil {
		_ = f.Close()
		return nil, err
	}
	return l, nil
}

func (l *Log) load(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	samples, whole, err := parseLog(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if whole < len(data) {
		l.Dropped = fmt.Sprintf("%s: dropped %d bytes of an unfinished repeat at its end", path, len(data)-whole)
		if err := l.file.Truncate(int64(whole)); err != nil {
			return fmt.Errorf("record: %w", err)
		}
	}
	if _, err := l.file.Seek(int64(whole), 0); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	l.samples = samples
	return nil
}

// source is what this package writes into Sample.Source.
const source = "profile"

// lineStart is how every line of a record begins.
const lineStart = `{"source":"` + source + `"`

// parseLog reads a record; whole is where its last complete repeat ends. Only
// what an interrupted Append can have left is passed over: a file that is no
// record must not be cut.
func parseLog(data []byte) (samples []history.Sample, whole int, err error) {
	at, number := 0, 0
	from := 0 // where the current repeat begins in samples
	for at < len(data) {
		number++
		length := bytes.IndexByte(data[at:], '\n')
		if length < 0 {
			length = len(data) - at
		}
		line := bytes.TrimSpace(data[at : at+length])
		next := min(len(data), at+length+1)
		if len(line) == 0 {
			at = next
			continue
		}
		s, err := parseLine(line)
		if err != nil {
			if len(bytes.TrimSpace(data[next:])) == 0 && torn(line) {
				break
			}
			return nil, 0, fmt.Errorf("line %d: %w; remove the line, or give another file", number, err)
		}
		if len(samples) > from && !sameRepeat(samples[len(samples)-1], s) {
			if !complete(samples[from:]) {
				return nil, 0, fmt.Errorf("line %d: the repeat before it, of %s, lacks the rate of a workload; remove its lines, or give another file", number, samples[from].Colocation.Key())
			}
			from, whole = len(samples), at
		}
		if next == len(data) && data[len(data)-1] != '\n' {
			break // the line is whole, its end is missing
		}
		samples = append(samples, s)
		at = next
	}
	if complete(samples[from:]) {
		return samples, at, nil
	}
	return samples[:from], whole, nil
}

func parseLine(line []byte) (history.Sample, error) {
	var s history.Sample
	if err := json.Unmarshal(line, &s); err != nil {
		return s, err
	}
	if s.Source != source {
		return s, fmt.Errorf("source %q: the file is no record of cotenant profile", s.Source)
	}
	return s, s.Validate()
}

// torn reports whether a line that can't be read may be the beginning of one
// of ours; a power cut can leave zero bytes in place of its end.
func torn(line []byte) bool {
	line = bytes.TrimRight(line, "\x00")
	n := min(len(line), len(lineStart))
	return string(line[:n]) == lineStart[:n]
}

func sameRepeat(a, b history.Sample) bool {
	return a.Start.Equal(b.Start) && a.Class == b.Class && a.Colocation.Key() == b.Colocation.Key()
}

// complete reports whether a repeat has the rate of all its workloads. The rate
// is the last line that is written of a workload.
func complete(repeat []history.Sample) bool {
	if len(repeat) == 0 {
		return true
	}
	var rates []string
	for _, s := range repeat {
		if s.Metric == history.Rate {
			rates = append(rates, s.Workload)
		}
	}
	slices.Sort(rates)
	return slices.Equal(rates, repeat[0].Colocation.Workloads())
}

// Append writes one repeat and waits until the disk has it.
func (l *Log) Append(repeat []history.Sample) error {
	var b bytes.Buffer
	for _, s := range repeat {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("record: %w", err)
		}
		line, err := json.Marshal(s)
		if err != nil {
			return fmt.Errorf("record: %w", err)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	_, err := l.file.Write(b.Bytes())
	if err = errors.Join(err, l.file.Sync()); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	l.samples = append(l.samples, repeat...)
	return nil
}

// Samples are the raw repeats on record.
func (l *Log) Samples() []history.Sample { return slices.Clone(l.samples) }

// Repeats counts the repeats on record of a co-location on a class.
func (l *Log) Repeats(class string, c cluster.Colocation) int {
	seen := map[time.Time]bool{}
	key := c.Key()
	for _, s := range l.samples {
		if s.Class == class && s.Colocation.Key() == key {
			seen[s.Start] = true
		}
	}
	return len(seen)
}

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }
