package tensors

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Reader is a file that was read whole and whose checksum holds.
type Reader struct {
	// Metadata says what the file is, its format and versions included.
	Metadata map[string]string

	format  Format
	tensors map[string]tensor
	data    []byte
	used    map[string]bool
}

// maxFile bounds what Read reads: far above any model, far below memory.
const maxFile = 256 << 20

// ErrForeign is wrapped by Read's error for a file of another kind.
var ErrForeign = errors.New("not a Cotenant file of this kind")

// foreign reads as one sentence and is ErrForeign.
type foreign struct{ f Format }

func (e foreign) Error() string { return "not " + e.f.What + "; " + e.f.Make }
func (e foreign) Is(t error) bool {
	return t == ErrForeign
}

// Read reads a file of a format. Any other file (ErrForeign), a damaged or
// truncated one and one with a newer version are errors that say what to do.
// What the metadata mean beyond format and versions, and which tensors there
// must be, is the caller's to check.
func Read(r io.Reader, f Format) (*Reader, error) {
	file, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(file) > maxFile {
		return nil, fmt.Errorf("larger than %d bytes: %w", maxFile, foreign{f})
	}
	if len(file) < 8 {
		return nil, fmt.Errorf("only %d bytes: %w", len(file), foreign{f})
	}
	n := binary.LittleEndian.Uint64(file)
	if n > 100<<20 || n < 2 || len(file) > 8 && file[8] != '{' {
		return nil, foreign{f}
	}
	if uint64(len(file)-8) < n {
		return nil, fmt.Errorf("truncated: the header has %d bytes, the file only %d after its length; copy it again or %s", n, len(file)-8, f.Again)
	}
	t := &Reader{format: f, data: file[8+n:], tensors: map[string]tensor{}, used: map[string]bool{}}
	if err := t.header(file[8 : 8+n]); err != nil {
		return nil, err
	}
	return t, t.check(file)
}

// Command is what trained a policy, as its metadata tell; otherwise where they
// do not.
func (t *Reader) Command(otherwise string) string {
	var training struct {
		Command string `json:"command"`
	}
	if json.Unmarshal([]byte(t.Metadata["training"]), &training) != nil || training.Command == "" {
		return otherwise
	}
	return training.Command
}

func (t *Reader) header(text []byte) error {
	var header map[string]json.RawMessage
	if err := json.Unmarshal(text, &header); err != nil {
		return fmt.Errorf("header: %w: damaged, or %w", err, foreign{t.format})
	}
	if err := json.Unmarshal(header[metadataKey], &t.Metadata); err != nil || t.Metadata[formatKey] != t.format.Name {
		return foreign{t.format}
	}
	delete(header, metadataKey)
	for _, key := range slices.Sorted(maps.Keys(t.format.Versions)) {
		if err := t.supported(key, t.format.Versions[key]); err != nil {
			return err
		}
	}
	end := 0
	for _, name := range slices.Sorted(maps.Keys(header)) {
		var x tensor
		if err := json.Unmarshal(header[name], &x); err != nil {
			return fmt.Errorf("tensor %q: %w; the file is damaged: copy it again or %s", name, err, t.format.Again)
		}
		t.tensors[name] = x
		end = max(end, x.Offsets[1])
	}
	if end > len(t.data) {
		return fmt.Errorf("truncated: tensors end at byte %d, the file at %d; copy it again or %s", end, len(t.data), t.format.Again)
	}
	return nil
}

// supported refuses files of a version that this program does not know yet.
func (t *Reader) supported(key string, newest int) error {
	v, err := strconv.Atoi(t.Metadata[key])
	switch {
	case err != nil || v < 1:
		return fmt.Errorf("%s %q is not a version; the file is damaged: copy it again or %s", key, t.Metadata[key], t.format.Again)
	case v > newest:
		return fmt.Errorf("%s %d is newer than %d, the newest that this program reads; upgrade it, or %s", key, v, newest, t.format.Again)
	}
	return nil
}

// check holds the file against the checksum in its header.
func (t *Reader) check(file []byte) error {
	sum := t.Metadata[checksumKey]
	at := bytes.Index(file, []byte(`"`+checksumKey+`":"`+sum+`"`))
	if len(sum) != len(blank) || at < 0 {
		return fmt.Errorf("checksum %q is not a SHA-256; the file is damaged: copy it again or %s", sum, t.format.Again)
	}
	at += len(checksumKey) + 4
	plain := slices.Concat(file[:at], []byte(blank), file[at+len(blank):])
	if got := sha256.Sum256(plain); hex.EncodeToString(got[:]) != sum {
		return fmt.Errorf("checksum is %x, the header says %s; the file is damaged: copy it again or %s", got, sum, t.format.Again)
	}
	return nil
}

// get finds a tensor of a shape; -1 stands for any length.
func (t *Reader) get(name string, shape ...int) ([]byte, string, error) {
	x, ok := t.tensors[name]
	if !ok {
		return nil, "", fmt.Errorf("tensor %q is missing; %s", name, t.format.Again)
	}
	t.used[name] = true
	bad := len(x.Shape) != len(shape)
	size := widths[x.DType]
	for i := range x.Shape {
		bad = bad || shape[i] >= 0 && x.Shape[i] != shape[i] || x.Shape[i] < 0 || x.Shape[i] > maxFile
		if !bad && size <= maxFile {
			size *= x.Shape[i]
		}
	}
	from, to := x.Offsets[0], x.Offsets[1]
	if bad || size == 0 && widths[x.DType] == 0 || from < 0 || to < from || to > len(t.data) || to-from != size {
		return nil, "", fmt.Errorf("tensor %q: %s %v at bytes %v; want shape %v; %s", name, x.DType, x.Shape, x.Offsets, shape, t.format.Again)
	}
	return t.data[from:to], x.DType, nil
}

// Floats reads finite numbers, or also NaN where gaps are allowed, of a shape
// in which -1 stands for any length.
func (t *Reader) Floats(name string, gaps bool, shape ...int) ([]float32, error) {
	raw, dtype, err := t.get(name, shape...)
	if err != nil {
		return nil, err
	}
	if dtype != "F32" {
		return nil, fmt.Errorf("tensor %q: type %s, want F32; %s", name, dtype, t.format.Again)
	}
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		if v := float64(out[i]); math.IsInf(v, 0) || math.IsNaN(v) && !gaps {
			return nil, fmt.Errorf("tensor %q: element %d is %g; %s", name, i, v, t.format.Again)
		}
	}
	return out, nil
}

// Small reads what Writer.Small wrote.
func (t *Reader) Small(name string, shape ...int) ([]int, error) {
	raw, dtype, err := t.get(name, shape...)
	if err != nil {
		return nil, err
	}
	switch dtype {
	case "U8":
		out := make([]int, len(raw))
		for i, b := range raw {
			out[i] = int(b)
		}
		return out, nil
	case "U16":
		out := make([]int, len(raw)/2)
		for i := range out {
			out[i] = int(binary.LittleEndian.Uint16(raw[2*i:]))
		}
		return out, nil
	}
	return nil, fmt.Errorf("tensor %q: type %s, want U8 or U16; %s", name, dtype, t.format.Again)
}

// Has reports whether there is a tensor of a name.
func (t *Reader) Has(name string) bool {
	_, ok := t.tensors[name]
	return ok
}

// Len is the number of tensors.
func (t *Reader) Len() int { return len(t.tensors) }

// Length is that of the first dimension of a tensor; 0 where it is missing.
func (t *Reader) Length(name string) int {
	if x, ok := t.tensors[name]; ok && len(x.Shape) > 0 {
		return x.Shape[0]
	}
	return 0
}

// Finish is an error where a tensor was not read.
func (t *Reader) Finish() error {
	for _, name := range slices.Sorted(maps.Keys(t.tensors)) {
		if !t.used[name] {
			return fmt.Errorf("tensor %q is none that %s has; %s", name, t.format.What, t.format.Again)
		}
	}
	return nil
}
