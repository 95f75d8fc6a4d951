package tensors

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
)

var format = Format{
	Name: "cotenant-test", Versions: map[string]int{"format_version": 2, "encoder_version": 3},
	What: "a test file", Make: "make one", Again: "make it again",
}

func file(t *testing.T, w *Writer, metadata map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := w.Save(&b, format, metadata); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// tricky metadata and names look like the checksum's place.
func tricky() (*Writer, map[string]string) {
	var w Writer
	w.Floats("checksum", []float32{1, float32(math.Copysign(0, -1)), float32(math.NaN())}, 3)
	w.Small("bytes", []int{0, 255}, 2)
	w.Small("words", []int{1, 65535}, 1, 2)
	w.Small("none", nil, 0)
	return &w, map[string]string{"a": blank, "notes": `"checksum":"` + blank + `"`}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	w, metadata := tricky()
	one := file(t, w, metadata)
	if !bytes.Equal(one, file(t, w, metadata)) {
		t.Error("written twice, the bytes differ")
	}
	if _, ok := metadata["format"]; ok {
		t.Error("the caller's metadata were changed")
	}
	r, err := Read(bytes.NewReader(one), format)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"a": blank, "notes": metadata["notes"], "format": "cotenant-test", "format_version": "2", "encoder_version": "3",
	} {
		if got := r.Metadata[key]; got != want {
			t.Errorf("metadata %s is %q, want %q", key, got, want)
		}
	}
	if _, err := r.Floats("checksum", false, 3); err == nil || !strings.Contains(err.Error(), "element 2 is NaN") {
		t.Errorf("a gap where none may be: %v", err)
	}
	v, err := r.Floats("checksum", true, -1)
	if err != nil || v[0] != 1 || !math.Signbit(float64(v[1])) || !math.IsNaN(float64(v[2])) {
		t.Errorf("floats are %v, %v", v, err)
	}
	for name, want := range map[string][]int{"bytes": {0, 255}, "words": {1, 65535}, "none": {}} {
		shape := []int{len(want)}
		if name == "words" {
			shape = []int{1, 2}
		}
		if err := r.Finish(); err == nil {
			t.Errorf("before %s was read, nothing is left over", name)
		}
		got, err := r.Small(name, shape...)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s is %v, %v; want %v", name, got, err, want)
		}
	}
	if err := r.Finish(); err != nil {
		t.Error(err)
	}
	if _, err := r.Small("words", 2); err == nil || !strings.Contains(err.Error(), "want shape [2]") {
		t.Errorf("a wrong shape: %v", err)
	}
	if _, err := r.Floats("missing", false, 2); err == nil || !strings.Contains(err.Error(), `"missing" is missing; make it again`) {
		t.Errorf("a missing tensor: %v", err)
	}
}

func TestEveryDamageIsSeen(t *testing.T) {
	w, metadata := tricky()
	good := file(t, w, metadata)
	for n := range good {
		if _, err := Read(bytes.NewReader(good[:n]), format); err == nil {
			t.Fatalf("cut to %d of %d bytes, it is read", n, len(good))
		}
		bad := bytes.Clone(good)
		bad[n] ^= 1
		if _, err := Read(bytes.NewReader(bad), format); err == nil {
			t.Fatalf("with a bit of byte %d turned, it is read", n)
		}
	}
	if _, err := Read(bytes.NewReader(append(bytes.Clone(good), 0)), format); err == nil {
		t.Error("with a byte more, it is read")
	}
	older := format
	older.Versions = map[string]int{"format_version": 1, "encoder_version": 3}
	if _, err := Read(bytes.NewReader(good), older); err == nil || !strings.Contains(err.Error(), "format_version 2 is newer than 1") {
		t.Errorf("a newer file: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	var w Writer
	w.Floats("x", []float32{1, 2}, 2)
	var b bytes.Buffer
	if err := w.Save(&b, format, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := Read(bytes.NewReader(file), format)
		if err != nil {
			return
		}
		for name := range r.tensors { // must not panic
			_, _ = r.Floats(name, true, -1)
			_, _ = r.Small(name, -1, -1)
		}
	})
}
