package formats

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

var update = flag.Bool("update", false, "rewrite the golden files with what is read")

func (r reader) try(data []byte, strict bool) (any, Report, error) {
	o := r.opts
	o.Name, o.Strict = r.name, strict
	return r.read(bytes.NewReader(data), o)
}

// each runs a test for every reader.
func each(t *testing.T, f func(t *testing.T, r reader)) {
	for _, r := range readers {
		t.Run(r.name, func(t *testing.T) { f(t, r) })
	}
}

func TestGolden(t *testing.T) {
	each(t, func(t *testing.T, r reader) {
		got, rep, err := r.try(r.good, true)
		if err != nil {
			t.Fatal(err)
		}
		if rep.Read != r.records || rep.Skipped != 0 || rep.Duplicates != r.duplicates {
			t.Errorf("%d read, %d skipped, %d duplicates; want %d, 0, %d", rep.Read, rep.Skipped, rep.Duplicates, r.records, r.duplicates)
		}
		text := readable(t, got, rep)
		path := filepath.Join("testdata", r.name+".golden")
		if *update {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text, want) {
			t.Errorf("read\n%s\nwhere %s has\n%s", text, path, want)
		}
	})
}

// However a file is wrapped or delivered, the same is read.
func TestWrapped(t *testing.T) {
	each(t, func(t *testing.T, r reader) {
		got, rep, err := r.try(r.good, true)
		if err != nil {
			t.Fatal(err)
		}
		want := readable(t, got, rep)
		wrapped := map[string][]byte{"gzip": gzipped(r.good)}
		if r.text {
			bom := append([]byte("\xef\xbb\xbf"), r.good...)
			crlf := bytes.ReplaceAll(r.good, []byte("\n"), []byte("\r\n"))
			wrapped["BOM"], wrapped["CRLF"] = bom, crlf
			wrapped["gzip, BOM and CRLF"] = gzipped(append([]byte("\xef\xbb\xbf"), crlf...))
		}
		for name, data := range wrapped {
			got, rep, err := r.try(data, true)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if text := readable(t, got, rep); !bytes.Equal(text, want) {
				t.Errorf("%s: read\n%s\nwant\n%s", name, text, want)
			}
		}
		o := r.opts
		o.Name = r.name
		got, rep, err = r.read(iotest.OneByteReader(bytes.NewReader(r.good)), o)
		if err != nil {
			t.Errorf("byte by byte: %v", err)
		} else if text := readable(t, got, rep); !bytes.Equal(text, want) {
			t.Errorf("byte by byte: read\n%s\nwant\n%s", text, want)
		}
	})
}

func TestBadRecords(t *testing.T) {
	each(t, func(t *testing.T, r reader) {
		for _, b := range r.bad {
			t.Run(b.name, func(t *testing.T) {
				data := r.with(b.record)
				want := append([]string{r.name, r.unit}, b.want...)
				_, _, err := r.try(data, true)
				var at *RecordError
				if !errors.As(err, &at) {
					t.Fatalf("strict: %v; want an error about a record", err)
				}
				mentions(t, "strict: "+err.Error(), want)

				_, rep, err := r.try(data, false)
				if err != nil {
					t.Fatalf("not strict: %v", err)
				}
				if rep.Read != r.records || rep.Skipped != 1 {
					t.Errorf("%d read, %d skipped; want %d and 1", rep.Read, rep.Skipped, r.records)
				}
				mentions(t, strings.Join(rep.Warnings, "\n"), append(want, "skipped"))
			})
		}
	})
}

func mentions(t *testing.T, text string, words []string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q does not say %q", text, w)
		}
	}
}

// A file that is cut off anywhere is never read as if it were whole: what is
// read is a part of the whole, or an error.
func TestTruncated(t *testing.T) {
	each(t, func(t *testing.T, r reader) {
		zipped := gzipped(r.good)
		for n := 1; n < len(zipped); n += 1 + len(zipped)/97 {
			if _, _, err := r.try(zipped[:n], false); err == nil {
				t.Fatalf("gzip cut off after %d of %d bytes: no error", n, len(zipped))
			}
		}
		for n := 1; n < len(r.good)-1; n += 1 + len(r.good)/211 {
			_, rep, err := r.try(r.good[:n], false)
			if err == nil && rep.Read+rep.Skipped > r.records {
				t.Fatalf("cut off after %d of %d bytes: %d records of %d", n, len(r.good), rep.Read+rep.Skipped, r.records)
			}
			if err != nil && !strings.Contains(err.Error(), r.name) {
				t.Fatalf("cut off after %d bytes: the error does not name the file: %v", n, err)
			}
		}
		if r.text && !r.fatal {
			whole := bytes.TrimRight(r.good, "\n")
			_, rep, err := r.try(whole[:len(whole)-1], true)
			if err == nil && !strings.Contains(strings.Join(rep.Warnings, "\n"), "cut off") && r.name != "samples.jsonl" {
				t.Errorf("a last line without an end: no warning in %q", rep.Warnings)
			}
		}
	})
}

func TestNothingToRead(t *testing.T) {
	each(t, func(t *testing.T, r reader) {
		for name, data := range map[string]string{"empty": "", "empty gzip": string(gzipped(nil)), "white space": " \n\r\n\n", "BOM": "\xef\xbb\xbf"} {
			_, _, err := r.try([]byte(data), false)
			if err == nil || !strings.Contains(err.Error(), r.name) {
				t.Errorf("%s: %v; want an error that names the file", name, err)
			}
			if r.text && !errors.Is(err, ErrEmpty) {
				t.Errorf("%s: %v; want ErrEmpty", name, err)
			}
		}
		if !r.text {
			return
		}
		if _, _, err := r.try([]byte("\xff\xfes\x00n\x00"), false); err == nil || !strings.Contains(err.Error(), "UTF-16") {
			t.Errorf("UTF-16: %v", err)
		}
	})
}

func TestLimits(t *testing.T) {
	each(t, func(t *testing.T, r reader) {
		o := r.opts
		o.Name = r.name
		for _, data := range [][]byte{r.good, gzipped(r.good)} {
			o.MaxBytes = int64(len(r.good) - 1)
			if _, _, err := r.read(bytes.NewReader(data), o); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), r.name) {
				t.Errorf("one byte more than allowed: %v; want ErrTooLarge", err)
			}
			o.MaxBytes = int64(len(r.good))
			if r.text {
				if _, _, err := r.read(bytes.NewReader(data), o); err != nil {
					t.Errorf("as many bytes as allowed: %v", err)
				}
			}
		}
		// A line without end costs no more memory than a record may.
		if r.text {
			o.MaxBytes, o.MaxRecord = 1<<26, 1<<16
			endless := io.MultiReader(bytes.NewReader(r.good), io.LimitReader(zeros{}, 1<<24))
			if r.fatal {
				if _, _, err := r.read(endless, o); err == nil || !strings.Contains(err.Error(), "too long") {
					t.Errorf("an endless line: %v", err)
				}
				return
			}
			_, rep, err := r.read(endless, o)
			if err != nil || rep.Skipped != 1 || !strings.Contains(strings.Join(rep.Warnings, "\n"), "too long") {
				t.Errorf("an endless line: %v, %+v; want it skipped", err, rep)
			}
		}
	})
}

// zeros is text without a line's end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// An error of the disk or the network is no end of file.
func TestBrokenInput(t *testing.T) {
	each(t, func(t *testing.T, r reader) {
		o := r.opts
		o.Name = r.name
		broken := errors.New("the cable is out")
		for _, n := range []int{0, 1, len(r.good) / 2, len(r.good)} {
			_, _, err := r.read(io.MultiReader(bytes.NewReader(r.good[:n]), iotest.ErrReader(broken)), o)
			if !errors.Is(err, broken) || !strings.Contains(err.Error(), r.name) {
				t.Errorf("after %d bytes: %v", n, err)
			}
		}
	})
}

// Warnings about records are bounded; the rest is counted.
func TestManyBadRecords(t *testing.T) {
	each(t, func(t *testing.T, r reader) {
		if !r.text || r.fatal {
			return
		}
		data := append([]byte(nil), r.good...)
		for range 1000 {
			data = append(data, "oops\n"...)
		}
		_, rep, err := r.try(data, false)
		if err != nil || rep.Skipped != 1000 {
			t.Fatalf("%v, %d skipped; want 1000", err, rep.Skipped)
		}
		if len(rep.Warnings) > maxWarnings+10 || !strings.Contains(strings.Join(rep.Warnings, "\n"), "980 more") {
			t.Errorf("%d warnings: %q", len(rep.Warnings), rep.Warnings[len(rep.Warnings)-1])
		}
	})
}
