package tensors

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The layout: 8 bytes with the length of a JSON header, the header, then the
// tensors' bytes, little-endian, in the order of their offsets and without
// gaps. A string map "__metadata__" says what the file is.

// Format tells the files of one kind from all others.
type Format struct {
	// Name is in the metadata as "format".
	Name string
	// Versions are the newest numbers that the program reads, by the metadata
	// key that holds them. They are what Save writes; each counts from 1.
	Versions map[string]int
	// What names such a file in errors ("a model file"), Make says how to get one
	// ("write one with ..."), Again what to do about a bad one ("fit again").
	What, Make, Again string
}

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
	formatKey   = "format"
)

// blank stands for the checksum while it is computed: SHA-256 over the whole
// file with these zeros in its place.
var blank = strings.Repeat("0", 2*sha256.Size)

// Writer gathers tensors in the order in which they are put. The zero Writer
// is ready.
type Writer struct {
	tensors map[string]tensor
	data    []byte
}

func (w *Writer) put(name, dtype string, shape []int, encode func([]byte) []byte) {
	if w.tensors == nil {
		w.tensors = map[string]tensor{}
	}
	from := len(w.data)
	w.data = encode(w.data)
	w.tensors[name] = tensor{dtype, shape, [2]int{from, len(w.data)}}
}

// Floats puts single-precision numbers; shape must multiply to their number.
func (w *Writer) Floats(name string, values []float32, shape ...int) {
	w.put(name, "F32", shape, func(b []byte) []byte {
		for _, v := range values {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return b
	})
}

// Small puts integers of 0 to 65535, in one byte each if they fit, else two.
func (w *Writer) Small(name string, values []int, shape ...int) {
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

// Data is the bytes of all tensors so far. It is shared: do not change it.
func (w *Writer) Data() []byte { return w.data }

// Save writes the file. The names of the format and of the checksum are added
// to the metadata.
func (w *Writer) Save(out io.Writer, f Format, metadata map[string]string) error {
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[formatKey] = f.Name
	for key, newest := range f.Versions {
		metadata[key] = strconv.Itoa(newest)
	}
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
	at := bytes.Index(file, []byte(`"`+checksumKey+`":"`+blank+`"`)) + len(checksumKey) + 4
	hex.Encode(file[at:], sum[:])
	_, err = out.Write(file)
	return err
}
