package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/history/prometheus"
)

// partial keeps what was read of a long import beside its output, a line a part,
// so that it goes on where it was broken off.
type partial struct {
	path  string // "" keeps nothing
	file  *os.File
	span  prometheus.Span
	parts []partRead
}

type partialHead struct {
	Fingerprint string    `json:"fingerprint"`
	From        time.Time `json:"from"`
	To          time.Time `json:"to"`
}

type partRead struct {
	Samples  []history.Sample  `json:"samples"`
	Counts   prometheus.Counts `json:"counts"`
	Warnings []string          `json:"warnings"`
}

// fingerprint tells imports apart: parts of another are not gone on with.
func (f *prometheusFlags) fingerprint(c prometheus.Config, text []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%q %q %q %q %v %v %v", text, c.Server, f.since, f.from, f.to, c.Step, c.Window, c.Settle)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// openPartial takes up what an earlier run of the same import kept, with its
// span; the last line may be cut off.
func openPartial(out, fingerprint string, span prometheus.Span) (*partial, error) {
	p := &partial{span: span}
	if out == "" || out == formats.Stdin {
		return p, nil
	}
	p.path = out + ".partial"
	text, err := os.ReadFile(p.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("what was read before: %w; move it away", err)
	}
	whole := int64(p.take(text, fingerprint))
	if p.file, err = os.OpenFile(p.path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	if err := p.file.Truncate(whole); err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	if _, err := p.file.Seek(whole, 0); err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	if whole > 0 {
		return p, nil
	}
	return p, p.line(partialHead{fingerprint, p.span.From, p.span.To})
}

// take takes in the whole lines of a file that is of this import, and returns
// how many bytes they are.
func (p *partial) take(text []byte, fingerprint string) (whole int) {
	lines := bufio.NewScanner(bytes.NewReader(text[:bytes.LastIndexByte(text, '\n')+1]))
	lines.Buffer(nil, len(text)+1)
	var head partialHead
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &head) != nil || head.Fingerprint != fingerprint {
		return 0
	}
	p.span = prometheus.Span{From: head.From, To: head.To}
	whole = len(lines.Bytes()) + 1
	for lines.Scan() {
		var part partRead
		if json.Unmarshal(lines.Bytes(), &part) != nil {
			return whole
		}
		p.parts = append(p.parts, part)
		whole += len(lines.Bytes()) + 1
	}
	return whole
}

// part is the i-th part, where it is kept.
func (p *partial) part(i int) (partRead, bool) {
	if i < len(p.parts) {
		return p.parts[i], true
	}
	return partRead{}, false
}

func (p *partial) add(part partRead) error {
	p.parts = append(p.parts, part)
	return p.line(part)
}

func (p *partial) line(v any) error {
	if p.file == nil {
		return nil
	}
	text, err := marshal(v)
	if err != nil {
		return err
	}
	if _, err := p.file.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("--out: %s: %w", p.path, err)
	}
	return nil
}

// broken is the error of an import that was interrupted.
func (p *partial) broken() error {
	if p.file == nil || len(p.parts) == 0 {
		p.remove()
		return stopped("nothing was written")
	}
	return stopped("%d parts are in %s; the same command goes on from there", len(p.parts), p.path)
}

func (p *partial) close() {
	if p.file != nil {
		_ = p.file.Close() // what it holds was written, or add said so
	}
}

func (p *partial) remove() {
	p.close()
	if p.path != "" {
		os.Remove(p.path)
	}
}
