package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInputsAreBounded(t *testing.T) {
	dir := t.TempDir()
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	block := make([]byte, 1<<20)
	for range maxText>>20 + 1 {
		if _, err := z.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "rules.yaml.gz")
	if err := os.WriteFile(path, bomb.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	var in inputs
	if _, err := in.text("constraints", path); err == nil || !strings.Contains(err.Error(), "unpacked, more than the most that is read, 16 MiB") {
		t.Errorf("a gzip bomb: %v", err)
	}
	path = filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(path, bytes.Repeat([]byte("a"), maxText+1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := in.text("constraints", path); err == nil || !strings.Contains(err.Error(), "more than the most that is read, 16 MiB") {
		t.Errorf("a text larger than any that is written by hand: %v", err)
	}
	if _, err := in.read("batch", dir); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := readAtMost(strings.NewReader("four"), 3); err == nil {
		t.Error("4 bytes where 3 are allowed: no error")
	}
}
