package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// inputs reads the files that flags name and remembers their hashes for the
// manifest.
type inputs struct {
	stdin  io.Reader
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
		data, err = io.ReadAll(in.stdin)
	default:
		data, err = os.ReadFile(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--%s: there is no file %q; check the path", flag, path)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	in.note(flag, path, data)
	return data, nil
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
			data, err = io.ReadAll(z)
		}
		if err != nil {
			return nil, fmt.Errorf("--%s: %s: damaged gzip: %w; fetch the file again", flag, path, err)
		}
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), nil
}
