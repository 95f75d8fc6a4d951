package interference

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
	"strings"
)

// The layout of safetensors: 8 bytes with the length of a JSON header, the
// header, then the tensors' bytes, little-endian, in the order of their
// offsets and without gaps. A string map "__metadata__" says what the file is.

// tensor is one entry of the header.
type tensor struct {
	DType   string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

// Bytes per element of the types in use.
var widths = map[string]int{"U8": 1, "U16": 2, "F32": 4}

const (
	metadataKey = "__metadata__"
	checksumKey = "checksum"
)

// blank stands for the checksum while it is computed: SHA-256 over the whole
// file with these zeros in its place.
var blank = strings.Repeat("0", 2*sha256.Size)

// tensorWriter gathers tensors in the order in which they are put.
type tensorWriter struct {
	tensors map[string]tensor
	data    []byte
}

func (w *tensorWriter) put(name, dtype string, shape []int, encode func([]byte) []byte) {
	if w.tensors == nil {
		w.tensors = map[string]tensor{}
	}
	from := len(w.data)
	w.data = encode(w.data)
	w.tensors[name] = tensor{dtype, shape, [2]int{from, len(w.data)}}
}

func (w *tensorWriter) floats(name string, values []float32, shape ...int) {
	w.put(name, "F32", shape, func(b []byte) []byte {
		for _, v := range values {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return b
	})
}

// small writes non-negative integers in one byte each if they fit, else two.
func (w *tensorWriter) small(name string, values []int, shape ...int) {
	if len(values) == 0 || slices.Max(values) < 1<<8 {
		w.put(name, "U8", shape, func(b []byte) []byte {
			for _, v := range values {
				b = append(b, byte(v))
			}
			return b
		})
		return
	}
	w.put(name, "U16", shape, func(b []byte) []byte {
		for _, v := range values {
			b = binary.LittleEndian.AppendUint16(b, uint16(v))
		}
		return b
	})
}

// writeTo writes the file: the same tensors and metadata give the same bytes.
func (w *tensorWriter) writeTo(out io.Writer, metadata map[string]string) error {
	metadata = maps.Clone(metadata)
	metadata[checksumKey] = blank
	header := map[string]any{metadataKey: metadata}
	for name, t := range w.tensors {
		header[name] = t
	}
	text, err := json.Marshal(header) // sorts its keys
	if err != nil {
		return err
	}
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	file = append(append(file, text...), w.data...)
	sum := sha256.Sum256(file)
	at := bytes.Index(file, []byte(blank))
	hex.Encode(file[at:], sum[:])
	_, err = out.Write(file)
	return err
}

// tensorReader is a parsed file.
type tensorReader struct {
	metadata map[string]string
	tensors  map[string]tensor
	data     []byte
	used     map[string]bool
}

// maxFile bounds what Load reads: far above any model, far below memory.
const maxFile = 256 << 20

var errForeign = errors.New("not a Cotenant model file; write one with `cotenant fit --out FILE`")

func readTensors(r io.Reader) (*tensorReader, []byte, error) {
	file, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, nil, err
	}
	if len(file) > maxFile {
		return nil, nil, fmt.Errorf("larger than %d bytes: %w", maxFile, errForeign)
	}
	if len(file) < 8 {
		return nil, nil, fmt.Errorf("only %d bytes: %w", len(file), errForeign)
	}
	n := binary.LittleEndian.Uint64(file)
	if n > 100<<20 || n < 2 || len(file) > 8 && file[8] != '{' {
		return nil, nil, errForeign
	}
	if uint64(len(file)-8) < n {
		return nil, nil, fmt.Errorf("truncated: the header has %d bytes, the file only %d after its length; copy it again or fit again", n, len(file)-8)
	}
	t := &tensorReader{data: file[8+n:], tensors: map[string]tensor{}, used: map[string]bool{}}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(file[8:8+n], &header); err != nil {
		return nil, nil, fmt.Errorf("header: %w: damaged, or %w", err, errForeign)
	}
	if err := json.Unmarshal(header[metadataKey], &t.metadata); err != nil || t.metadata["format"] != fileFormat {
		return nil, nil, errForeign
	}
	delete(header, metadataKey)
	if err := supported("format_version", t.metadata, fileVersion); err != nil {
		return nil, nil, err
	}
	end := 0
	for _, name := range slices.Sorted(maps.Keys(header)) {
		var x tensor
		if err := json.Unmarshal(header[name], &x); err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w; the file is damaged: copy it again or fit again", name, err)
		}
		t.tensors[name] = x
		end = max(end, x.Offsets[1])
	}
	if end > len(t.data) {
		return nil, nil, fmt.Errorf("truncated: tensors end at byte %d, the file at %d; copy it again or fit again", end, len(t.data))
	}
	return t, file, nil
}

// checkSum holds the file against the checksum in its header.
func (t *tensorReader) checkSum(file []byte) error {
	sum := t.metadata[checksumKey]
	at := bytes.Index(file, []byte(`"`+checksumKey+`":"`+sum+`"`))
	if len(sum) != len(blank) || at < 0 {
		return fmt.Errorf("checksum %q is not a SHA-256; the file is damaged: copy it again or fit again", sum)
	}
	at += len(checksumKey) + 4
	plain := slices.Concat(file[:at], []byte(blank), file[at+len(blank):])
	if got := sha256.Sum256(plain); hex.EncodeToString(got[:]) != sum {
		return fmt.Errorf("checksum is %x, the header says %s; the file is damaged: copy it again or fit again", got, sum)
	}
	return nil
}

// get finds a tensor of a shape; -1 stands for any length.
func (t *tensorReader) get(name string, shape ...int) ([]byte, string, error) {
	x, ok := t.tensors[name]
	if !ok {
		return nil, "", fmt.Errorf("tensor %q is missing; fit again", name)
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
		return nil, "", fmt.Errorf("tensor %q: %s %v at bytes %v; want shape %v; fit again", name, x.DType, x.Shape, x.Offsets, shape)
	}
	return t.data[from:to], x.DType, nil
}

// floats reads finite numbers, or also NaN where gaps are allowed.
func (t *tensorReader) floats(name string, gaps bool, shape ...int) ([]float32, error) {
	raw, dtype, err := t.get(name, shape...)
	if err != nil {
		return nil, err
	}
	if dtype != "F32" {
		return nil, fmt.Errorf("tensor %q: type %s, want F32; fit again", name, dtype)
	}
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		if v := float64(out[i]); math.IsInf(v, 0) || math.IsNaN(v) && !gaps {
			return nil, fmt.Errorf("tensor %q: element %d is %g; fit again", name, i, v)
		}
	}
	return out, nil
}

func (t *tensorReader) small(name string, shape ...int) ([]int, error) {
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
	return nil, fmt.Errorf("tensor %q: type %s, want U8 or U16; fit again", name, dtype)
}

// length of the first dimension of a tensor; 0 where it is missing.
func (t *tensorReader) length(name string) int {
	if x, ok := t.tensors[name]; ok && len(x.Shape) > 0 {
		return x.Shape[0]
	}
	return 0
}
