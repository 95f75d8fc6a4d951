package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// The most bytes of an input: as it is on disk, and of a text written by hand
// (rules, workloads) unpacked. Beyond that a name is more likely wrong, such as
// a device or a gzip bomb, than a file is large.
const (
	maxInput = 512 << 20
	maxText  = 16 << 20
)

// inputs reads the files that flags name and remembers their hashes for the
// manifest.
type inputs struct {
	stdin  io.Reader
	ctx    context.Context // of the command, for what is read from a server; nil is the background
	hashes []inputHash
}

type inputHash struct {
	Flag   string `json:"flag"`
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
}

// read returns the content of a file, "-" being stdin, as it is on disk.
func (in *inputs) read(flag, path string) ([]byte, error) {
	var data []byte
	var err error
	switch {
	case path == "":
		return nil, wrongUse("--%s: the file name is empty", flag)
	case path == "-":
		data, err = readAtMost(in.stdin, maxInput)
	default:
		data, err = readFileAtMost(path, maxInput)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--%s: there is no file %q; check the path", flag, path)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %s: %w", flag, path, err)
	}
	if err := checkKind(flag, path, data); err != nil {
		return nil, err
	}
	in.note(flag, path, data)
	return data, nil
}

var errTooLarge = errors.New("more than the most that is read")

func readFileAtMost(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, errors.New("is a folder; name a file in it")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAtMost(f, most)
}

func readAtMost(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%w, %d MiB; name a smaller file", errTooLarge, most>>20)
	}
	return data, err
}

func (in *inputs) note(flag, path string, data []byte) {
	sum := sha256.Sum256(data)
	in.hashes = append(in.hashes, inputHash{flag, path, hex.EncodeToString(sum[:]), len(data)})
}

// text is read for text files: gunzipped, without byte-order mark.
func (in *inputs) text(flag, path string) ([]byte, error) {
	data, err := in.read(flag, path)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bufio.NewReader(bytes.NewReader(data)))
		if err == nil {
			data, err = readAtMost(z, maxText)
		}
		if err != nil {
			if errors.Is(err, errTooLarge) {
				return nil, fmt.Errorf("--%s: %s: unpacked, %w", flag, path, err)
			}
			return nil, fmt.Errorf("--%s: %s: damaged gzip: %w; fetch the file again", flag, path, err)
		}
	}
	if len(data) > maxText {
		return nil, fmt.Errorf("--%s: %s: %w, %d MiB; name a smaller file", flag, path, errTooLarge, maxText>>20)
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), nil
}
