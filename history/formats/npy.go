package formats

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// npyHeader is what a .npy file says of itself (NumPy's format 1.0 to 3.0).
type npyHeader struct {
	descr   string // "<f8"; "" for a structured type
	fortran bool
	shape   []int
}

// errPickled marks an array of Python objects. Its bytes are a program for
// Python's unpickler; they are not looked at.
var errPickled = errors.New("holds pickled Python objects, which are never read")

// readNPYHeader reads up to the first byte of the data.
func readNPYHeader(r io.Reader) (npyHeader, error) {
	var fixed [8]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return npyHeader{}, truncated(err)
	}
	if string(fixed[:6]) != "\x93NUMPY" {
		return npyHeader{}, fmt.Errorf("is no .npy array: begins with %q", fixed[:6])
	}
	var length int
	switch fixed[6] {
	case 1:
		var b [2]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return npyHeader{}, truncated(err)
		}
		length = int(binary.LittleEndian.Uint16(b[:]))
	case 2, 3:
		var b [4]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return npyHeader{}, truncated(err)
		}
		const most = 1 << 16
		n := binary.LittleEndian.Uint32(b[:])
		if n > most {
			return npyHeader{}, fmt.Errorf("%w: a header of %d bytes", ErrTooLarge, n)
		}
		length = int(n)
	default:
		return npyHeader{}, fmt.Errorf("is of .npy version %d.%d; 1 to 3 are known", fixed[6], fixed[7])
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return npyHeader{}, truncated(err)
	}
	h, err := parseNPYHeader(string(text))
	if err != nil {
		return h, fmt.Errorf("header %s: %w", quoteShort(string(text)), err)
	}
	return h, nil
}

// parseNPYHeader reads the Python literal {'descr': '<f8', 'fortran_order':
// False, 'shape': (3, 4), }.
func parseNPYHeader(text string) (h npyHeader, err error) {
	p := &literal{rest: text}
	if !p.take("{") {
		return h, errors.New("is no Python dict")
	}
	seen := map[string]bool{}
	for !p.take("}") {
		key, ok := p.text()
		if !ok || !p.take(":") {
			return h, errors.New("has no key where one belongs")
		}
		if seen[key] {
			return h, fmt.Errorf("has %q twice", key)
		}
		seen[key] = true
		switch key {
		case "descr":
			if h.descr, ok = p.text(); !ok {
				return h, errors.New("describes a structured type; only arrays of plain numbers are read")
			}
		case "fortran_order":
			switch {
			case p.take("True"):
				h.fortran = true
			case !p.take("False"):
				return h, errors.New("has a fortran_order that is neither True nor False")
			}
		case "shape":
			if h.shape, err = p.tuple(); err != nil {
				return h, err
			}
		default:
			return h, fmt.Errorf("has an unknown key %q", key)
		}
		if !p.take(",") {
			if !p.take("}") {
				return h, errors.New("does not end")
			}
			break
		}
	}
	if !seen["descr"] || !seen["fortran_order"] || !seen["shape"] {
		return h, errors.New("lacks one of descr, fortran_order, shape")
	}
	return h, nil
}

// literal walks over a Python literal.
type literal struct{ rest string }

func (l *literal) take(token string) bool {
	rest := strings.TrimLeft(l.rest, " \t\r\n")
	after, ok := strings.CutPrefix(rest, token)
	if ok {
		l.rest = after
	}
	return ok
}

func (l *literal) text() (string, bool) {
	for _, quote := range []string{"'", `"`} {
		if !l.take(quote) {
			continue
		}
		s, rest, ok := strings.Cut(l.rest, quote)
		l.rest = rest
		return s, ok && !strings.Contains(s, `\`)
	}
	return "", false
}

func (l *literal) tuple() ([]int, error) {
	if !l.take("(") {
		return nil, errors.New("has a shape that is no tuple")
	}
	shape := []int{}
	for !l.take(")") {
		rest := strings.TrimLeft(l.rest, " ")
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:digits])
		if err != nil {
			return nil, fmt.Errorf("has a shape with %s, which is no size", quoteShort(rest[:min(len(rest), max(digits, 8))]))
		}
		shape = append(shape, n)
		l.rest = strings.TrimPrefix(rest[digits:], "L") // Python 2 wrote 3L
		if !l.take(",") {
			if !l.take(")") {
				return nil, errors.New("has a shape that does not end")
			}
			break
		}
	}
	return shape, nil
}

// matrix is a two-dimensional array of numbers.
type matrix struct {
	rows, columns int
	data          []float64 // row by row
	// raw are the bytes of each row as they stood; nil for Fortran order.
	raw  []byte
	size int // bytes an item
}

func (m *matrix) row(i int) []float64 { return m.data[i*m.columns : (i+1)*m.columns] }

// readMatrix reads an array that must be two-dimensional, of integers or
// floats, and not larger than most bytes. It reads to the end of r.
func readMatrix(r io.Reader, most int64) (*matrix, error) {
	h, err := readNPYHeader(r)
	if err != nil {
		return nil, err
	}
	size, decode, err := itemDecoder(h.descr)
	if err != nil {
		return nil, err
	}
	if len(h.shape) != 2 {
		return nil, fmt.Errorf("has %d dimensions, shape %v; 2 are needed", len(h.shape), h.shape)
	}
	m := &matrix{rows: h.shape[0], columns: h.shape[1], size: size}
	// Unpacked to float64 and raw: 8 bytes an item and its own.
	limit := most / int64(8+size)
	if m.columns > 0 && int64(m.rows) > limit/int64(m.columns) || m.rows > 1<<30 || m.columns > 1<<20 {
		return nil, fmt.Errorf("%w: shape %v takes more than %d bytes; raise the limit if the file is sound", ErrTooLarge, h.shape, most)
	}
	items := m.rows * m.columns
	// What is there decides how much is allocated, not what the header claims.
	raw, err := io.ReadAll(io.LimitReader(r, int64(items)*int64(size)))
	if err != nil {
		return nil, truncated(err)
	}
	if len(raw) < items*size {
		return nil, fmt.Errorf("has %d bytes of data, where shape %v needs %d: %w", len(raw), h.shape, items*size, truncated(io.ErrUnexpectedEOF))
	}
	var extra [1]byte
	switch n, err := io.ReadFull(r, extra[:]); { // also makes zip check its checksum
	case n > 0:
		return nil, fmt.Errorf("has more data than shape %v needs", h.shape)
	case err != io.EOF:
		return nil, err
	}
	m.data = make([]float64, items)
	if !h.fortran {
		m.raw = raw
		for i := range m.data {
			m.data[i] = decode(raw[i*size:])
		}
		return m, nil
	}
	for c := range m.columns {
		for i := range m.rows {
			m.data[i*m.columns+c] = decode(raw[(c*m.rows+i)*size:])
		}
	}
	return m, nil
}

// itemDecoder is how an item of a NumPy type becomes a float64. 64-bit
// integers past 2^53 lose digits; no count is that large.
func itemDecoder(descr string) (size int, decode func([]byte) float64, err error) {
	if descr == "|O" || descr == "O" {
		return 0, nil, errPickled
	}
	if len(descr) != 3 || !strings.Contains("<>|=", descr[:1]) {
		return 0, nil, fmt.Errorf("is of type %q; only integers and floats are read", descr)
	}
	var order binary.ByteOrder = binary.LittleEndian
	if descr[0] == '>' {
		order = binary.BigEndian
	}
	switch descr[1:] {
	case "i1":
		return 1, func(b []byte) float64 { return float64(int8(b[0])) }, nil
	case "i2":
		return 2, func(b []byte) float64 { return float64(int16(order.Uint16(b))) }, nil
	case "i4":
		return 4, func(b []byte) float64 { return float64(int32(order.Uint32(b))) }, nil
	case "i8":
		return 8, func(b []byte) float64 { return float64(int64(order.Uint64(b))) }, nil
	case "u1":
		return 1, func(b []byte) float64 { return float64(b[0]) }, nil
	case "u2":
		return 2, func(b []byte) float64 { return float64(order.Uint16(b)) }, nil
	case "u4":
		return 4, func(b []byte) float64 { return float64(order.Uint32(b)) }, nil
	case "u8":
		return 8, func(b []byte) float64 { return float64(order.Uint64(b)) }, nil
	case "f4":
		return 4, func(b []byte) float64 { return float64(math.Float32frombits(order.Uint32(b))) }, nil
	case "f8":
		return 8, func(b []byte) float64 { return math.Float64frombits(order.Uint64(b)) }, nil
	}
	return 0, nil, fmt.Errorf("is of type %q; only integers and floats are read", descr)
}
