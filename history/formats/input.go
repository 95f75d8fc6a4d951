package formats

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

// Stdin is the path that stands for standard input.
const Stdin = "-"

// ReadFile opens path ("-" is standard input) and hands it to one of this
// package's readers, with the path as the name in errors.
//
//	samples, report, err := formats.ReadFile("x.jsonl", formats.Options{}, formats.ReadJSONL)
func ReadFile[T any](path string, o Options, read func(io.Reader, Options) (T, Report, error)) (T, Report, error) {
	if path == Stdin {
		o.Name = "standard input"
		return read(os.Stdin, o)
	}
	o.Name = path
	f, err := os.Open(path)
	if err != nil {
		var none T
		return none, Report{}, err // names the operation and the path
	}
	defer f.Close()
	return read(f, o)
}

// unpack strips what may be wrapped around a file (gzip, a UTF-8 byte order
// mark) and bounds how much can be read of it.
func unpack(r io.Reader, o Options) (*bufio.Reader, error) {
	const window = 64 << 10
	br := bufio.NewReaderSize(r, window)
	magic, err := br.Peek(2)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	var in io.Reader = br
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		zr, err := gzip.NewReader(br)
		if err != nil {
			return nil, fmt.Errorf("%s: gzip: %w", o.Name, truncated(err))
		}
		in = zr
	}
	out := bufio.NewReaderSize(&bounded{in: in, left: o.MaxBytes, o: o}, window)
	head, err := out.Peek(3)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.Equal(head, []byte{0xef, 0xbb, 0xbf}):
		_, _ = out.Discard(3) // was peeked
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return nil, fmt.Errorf("%s: is UTF-16 text; save it as UTF-8", o.Name)
	}
	return out, nil
}

// bounded fails, by name, once more than left bytes come out of in.
type bounded struct {
	in   io.Reader
	left int64
	o    Options
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		// Only a file that has more is too large.
		var one [1]byte
		n, err := b.in.Read(one[:])
		if n > 0 {
			return 0, fmt.Errorf("%s: %w: more than %d bytes unpacked; raise the limit if the file is sound", b.o.Name, ErrTooLarge, b.o.MaxBytes)
		}
		return 0, b.named(err)
	}
	n, err := b.in.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, b.named(err)
}

func (b *bounded) named(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return fmt.Errorf("%s: %w", b.o.Name, truncated(err))
}

// truncated adds to an unexpected end what it means.
func truncated(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return fmt.Errorf("the file is cut off or damaged; copy it again: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// lineReader gives the lines of a text without their ends (LF or CRLF),
// numbered from 1, and holds at most one of at most max bytes.
type lineReader struct {
	in     *bufio.Reader
	max    int64
	number int
	buf    []byte
	// open is true after a last line without an end.
	open bool
}

var errLineTooLong = errors.New("line too long")

// next returns the next line, io.EOF after the last, or errLineTooLong, after
// which reading goes on with the line that follows. The line is good until
// the next call.
func (l *lineReader) next() ([]byte, error) {
	l.buf = l.buf[:0]
	long := false
	for {
		part, err := l.in.ReadSlice('\n')
		if int64(len(l.buf)+len(part)) > l.max {
			long = true
			l.buf = l.buf[:0]
		} else if !long {
			l.buf = append(l.buf, part...)
		}
		switch {
		case err == nil:
			l.number++
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && (len(l.buf) > 0 || long):
			l.number++
			l.open = true
		default:
			return nil, err
		}
		if long {
			return nil, fmt.Errorf("%w: more than %d bytes", errLineTooLong, l.max)
		}
		line := bytes.TrimSuffix(l.buf, []byte{'\n'})
		return bytes.TrimSuffix(line, []byte{'\r'}), nil
	}
}

// firstByte skips white space and returns what comes after it, unread; io.EOF
// where nothing does.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		c, err := in.ReadByte()
		switch {
		case err != nil:
			return 0, err
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			continue
		}
		return c, in.UnreadByte()
	}
}
