package formats

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/history"
)

var twoColumns = Options{Name: "t.npz", Columns: []string{"redis", "mms"}}

func readNPZ(files ...file) ([]history.Sample, Report, error) {
	return ReadMetisNPZ(bytes.NewReader(zipped(files...)), twoColumns)
}

// alloc and rates that go together: redis alone, then redis with two mms.
func goodArrays() (alloc, rps file) {
	return file{"alloc.npy", npy("<i8", "(2, 2)", []float64{1, 0, 1, 2})},
		file{"rps.npy", npy("<f8", "(2, 2)", floats("1 - 0.75 0.5"))}
}

func TestNPZTypes(t *testing.T) {
	alloc, rps := goodArrays()
	want, _, err := readNPZ(alloc, rps)
	if err != nil || len(want) != 3 {
		t.Fatalf("%d samples, %v; want 3", len(want), err)
	}
	for _, descr := range []string{"<f8", ">f8", "<f4", ">f4", "<i8", ">i8", "<i4", ">i4", "<u2", ">u2", "|i1"} {
		got, _, err := readNPZ(file{"alloc.npy", npy(descr, "(2, 2)", []float64{1, 0, 1, 2})}, rps)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("alloc of type %s: %v, %v", descr, got, err)
		}
	}
	for name, header := range map[string]string{
		"double quotes":   `{"descr": "<f8", "fortran_order": False, "shape": (2, 2)}`,
		"another order":   `{'shape': (2L, 2L), 'fortran_order': False, 'descr': '<f8'}`,
		"no space":        `{'descr':'<f8','fortran_order':False,'shape':(2,2),}`,
		"a tuple's comma": `{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2,), }`,
	} {
		got, _, err := readNPZ(file{"alloc.npy", npyWith(header, "<f8", []float64{1, 0, 1, 2})}, rps)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	fortran := npyWith("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }", "<f8", []float64{1, 1, 0, 2})
	if got, _, err := readNPZ(file{"alloc.npy", fortran}, rps); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Fortran order: %v, %v", got, err)
	}
}

func TestNPZLatenciesAsNumbers(t *testing.T) {
	alloc, rps := goodArrays()
	got, rep, err := readNPZ(alloc, rps, file{"rt_99.npy", npy("<f8", "(2, 2)", floats("2 - 3 0"))})
	if err != nil {
		t.Fatal(err)
	}
	var p99 []history.Sample
	for _, s := range got {
		if s.Metric == history.P99 {
			p99 = append(p99, s)
		}
	}
	if len(p99) != 2 || p99[1].Value != 3 || p99[1].Alone != 2 {
		t.Errorf("%+v; want two of redis, alone 2", p99)
	}
	mentions(t, strings.Join(rep.Warnings, "\n"), []string{"p99 is 0 throughout for mms"})
}

func TestNPZRefuses(t *testing.T) {
	alloc, rps := goodArrays()
	header := func(text string) file { return file{"alloc.npy", npyWith(text, "<f8", nil)} }
	for name, c := range map[string]struct {
		files []file
		want  string
	}{
		"no alloc":           {[]file{rps}, "no array alloc"},
		"no rps":             {[]file{alloc}, "no array rps"},
		"alloc twice":        {[]file{alloc, alloc, rps}, "there twice"},
		"alloc pickled":      {[]file{{"alloc.npy", npy("|O", "(2, 2)", nil)}, rps}, "pickled"},
		"rps pickled":        {[]file{alloc, {"rps.npy", npy("|O", "(2, 2)", nil)}}, "pickled"},
		"no array":           {[]file{{"alloc.npy", []byte("hello, world")}, rps}, "no .npy array"},
		"empty array":        {[]file{{"alloc.npy", nil}, rps}, "cut off"},
		"cut off":            {[]file{{"alloc.npy", alloc.data[:len(alloc.data)-1]}, rps}, "31 bytes of data"},
		"too long":           {[]file{{"alloc.npy", append(alloc.data, 0)}, rps}, "more data"},
		"three dimensions":   {[]file{{"alloc.npy", npy("<f8", "(2, 2, 1)", []float64{1, 0, 1, 2})}, rps}, "3 dimensions"},
		"one dimension":      {[]file{{"alloc.npy", npy("<f8", "(4,)", []float64{1, 0, 1, 2})}, rps}, "1 dimensions"},
		"other rows":         {[]file{alloc, {"rps.npy", npy("<f8", "(1, 2)", []float64{1, 0})}}, "rps is 1 x 2, where alloc is 2 x 2"},
		"too few columns":    {[]file{{"alloc.npy", npy("<f8", "(2, 1)", []float64{1, 1})}, rps}, "1 columns, where 2 workloads"},
		"text":               {[]file{header("{'descr': '<U8', 'fortran_order': False, 'shape': (2, 2), }"), rps}, `"<U8"`},
		"complex":            {[]file{header("{'descr': '<c16', 'fortran_order': False, 'shape': (2, 2), }"), rps}, `"<c16"`},
		"structured":         {[]file{header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2, 2), }"), rps}, "structured"},
		"a trillion rows":    {[]file{header("{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776, 2), }"), rps}, ErrTooLarge.Error()},
		"more than a number": {[]file{header("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999, 2), }"), rps}, "no size"},
		"a product too far":  {[]file{header("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }"), rps}, ErrTooLarge.Error()},
		"a million claimed":  {[]file{header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 2), }"), rps}, "0 bytes of data"},
		"negative shape":     {[]file{header("{'descr': '<f8', 'fortran_order': False, 'shape': (-2, 2), }"), rps}, "no size"},
		"no shape":           {[]file{header("{'descr': '<f8', 'fortran_order': False}"), rps}, "lacks"},
		"a program":          {[]file{header("__import__('os').system('true')"), rps}, "no Python dict"},
		"unknown key":        {[]file{header("{'descr': '<f8', 'order': 1}"), rps}, "unknown key"},
		"no rows":            {[]file{{"alloc.npy", npy("<f8", "(0, 2)", nil)}, {"rps.npy", npy("<f8", "(0, 2)", nil)}}, ErrEmpty.Error()},
	} {
		_, _, err := readNPZ(c.files...)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "t.npz") {
			t.Errorf("%s: %v; want an error with %q and the file", name, err, c.want)
		}
	}
}

func TestNPZColumns(t *testing.T) {
	alloc, rps := goodArrays()
	for _, c := range []struct {
		columns []string
		want    string
	}{
		{nil, "two orders are in use"},
		{[]string{"redis", "redis"}, "second time"},
		{[]string{"redis", ""}, "column 2: workload: empty"},
		{[]string{"1", "2"}, "is a number"},
		{[]string{"a", "b", "c"}, "2 columns, where 3 workloads"},
	} {
		_, _, err := ReadMetisNPZ(bytes.NewReader(zipped(alloc, rps)), Options{Name: "t.npz", Columns: c.columns, Strict: true})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "t.npz") {
			t.Errorf("columns %q: %v; want an error with %q", c.columns, err, c.want)
		}
	}
}

func TestNPZOtherArraysAreNamed(t *testing.T) {
	alloc, rps := goodArrays()
	_, rep, err := readNPZ(alloc, rps, file{"batch_set.npy", npy("<i8", "(1, 2)", []float64{1, 2})}, file{"notes.txt", []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	mentions(t, strings.Join(rep.Warnings, "\n"), []string{"ignored arrays", "batch_set", "notes.txt"})
}

func TestNPZDamagedZip(t *testing.T) {
	alloc, rps := goodArrays()
	whole := zipped(alloc, rps)
	for i := range whole { // every byte, changed: an error or the same kind of result, never a panic
		damaged := bytes.Clone(whole)
		damaged[i] ^= 0x55
		_, _, _ = ReadMetisNPZ(bytes.NewReader(damaged), twoColumns)
	}
	stored := storedZip(t, file{"alloc.npy", alloc.data}, file{"rps.npy", rps.data})
	at := bytes.LastIndex(stored, rps.data) + len(rps.data) - 2
	stored[at] ^= 1 // in the last rate
	if _, _, err := ReadMetisNPZ(bytes.NewReader(stored), twoColumns); !errors.Is(err, zip.ErrChecksum) {
		t.Errorf("a changed byte: %v; want a checksum error", err)
	}
}

func storedZip(t *testing.T, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		w, err := z.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A small file that unpacks to gigabytes costs neither them nor their time.
func TestNPZBomb(t *testing.T) {
	const claimed = 8 << 30
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	w, err := z.Create("alloc.npy")
	if err != nil {
		t.Fatal(err)
	}
	head := npy("<f8", fmt.Sprintf("(%d, 2)", claimed/16), nil)
	block := make([]byte, 1<<20)
	if _, err := w.Write(head); err != nil {
		t.Fatal(err)
	}
	for range 64 {
		if _, err := w.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err = ReadMetisNPZ(bytes.NewReader(b.Bytes()), twoColumns)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v; want ErrTooLarge", err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("took %d MB to refuse it", used>>20)
	}
	o := twoColumns
	o.MaxBytes = 1 << 20
	if _, _, err := ReadMetisNPZ(bytes.NewReader(b.Bytes()), o); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v; want ErrTooLarge", err)
	}
}

func TestMaxSamples(t *testing.T) {
	each(t, func(t *testing.T, r reader) {
		if r.fatal && r.text {
			t.Skip("objects of a cluster are bounded by bytes")
		}
		o := r.opts
		o.Name, o.MaxSamples = r.name, 2
		if _, _, err := r.read(bytes.NewReader(r.good), o); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), r.name) {
			t.Errorf("%v; want ErrTooLarge", err)
		}
	})
}
