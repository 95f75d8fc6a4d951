package whole_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cotenant/cotenant/internal/whole"
)

func say(text string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func TestAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := whole.File(path, say("old")); err != nil {
		t.Fatal(err)
	}
	for number, want := range map[syscall.Errno]string{
		syscall.ENOSPC: "the disk is full", syscall.EDQUOT: "used up", syscall.EFBIG: "ulimit -f", syscall.EROFS: "may only be read", syscall.EACCES: "may not write in",
	} {
		err := whole.File(path, func(w io.Writer) error {
			_ = say(strings.Repeat("new", 1<<16))(w)
			return &fs.PathError{Op: "write", Path: "hidden", Err: number}
		})
		if !errors.Is(err, number) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%v: error %q; want %q and the path", number, err, want)
		}
	}
	if got := content(t, path); got != "old" || names(t, filepath.Dir(path)) != "x" {
		t.Errorf("the file has %q; the folder %s", got, names(t, filepath.Dir(path)))
	}
}

func TestFilesThatBelongTogether(t *testing.T) {
	dir := t.TempDir()
	a, err := whole.Stage(filepath.Join(dir, "a"), say("1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is in its place before it is committed: %v", err)
	}
	b, err := whole.Stage(filepath.Join(dir, "b"), say("2"))
	if err != nil {
		t.Fatal(err)
	}
	unlock := whole.Lock(dir)
	defer unlock()
	if err := whole.Commit(a, b); err != nil || names(t, dir) != "a b" {
		t.Errorf("%v; the folder has %s", err, names(t, dir))
	}
	c, err := whole.Stage(filepath.Join(dir, "c"), say("3"))
	if err != nil {
		t.Fatal(err)
	}
	c.Discard()
	if names(t, dir) != "a b" {
		t.Errorf("discarded, the folder has %s", names(t, dir))
	}
	if _, err = whole.Stage(filepath.Join(dir, "d"), say("4")); err != nil {
		t.Fatal(err)
	}
	if whole.Abandon(); names(t, dir) != "a b" {
		t.Errorf("abandoned, the folder has %s", names(t, dir))
	}
}

func TestWhereAFileCannotBe(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := whole.File(file, say("x")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:                                    "is a directory",
		filepath.Join(dir, "no", "x"):          "there is no folder",
		filepath.Join(file, "x"):               "is not a folder",
		filepath.Join(dir, long("n")):          "too long",
		filepath.Join(dir, "x\x00y"):           "invalid argument",
		filepath.Join(dir, "no") + "/":         "there is no folder",
		filepath.Join(file, "..", "no") + "/y": "there is no",
	} {
		for _, err := range []error{whole.Probe(path), whole.File(path, say("y"))} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.40q: %v; want an error with %q", path, err, want)
			}
		}
	}
	if whole.Probe(file) != nil || whole.Probe(filepath.Join(dir, "fresh")) != nil || content(t, file) != "x" || names(t, dir) != "file" {
		t.Errorf("probing changed the folder: %s", names(t, dir))
	}
}

// The folder that cannot be made names the file in its way, not the folder that
// this is in.
func TestExplainNamesWhatIsInTheWay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := whole.File(file, say("x")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "a"), filepath.Join(file, "a", "b")} {
		err := whole.Explain(path, os.MkdirAll(path, 0o755))
		if want := fmt.Sprintf("%q is not a folder", file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", path, err, want)
		}
	}
}

func long(s string) string { return strings.Repeat(s, 300) }

// A link stays a link, and a file keeps its permissions.
func TestWhatWasThere(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if err := whole.File(link, say("x")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(file)
	if err != nil || info.Mode() != 0o600 || content(t, file) != "x" {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is no link any more: %v", err)
	}
}

// What a killed program left is removed once it is old, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{".x.12-0", ".x.13-1", ".x.notes", ".y.12-0", ".x.99-0"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if name != ".x.99-0" {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := whole.File(filepath.Join(dir, "x"), say("")); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); got != ".x.99-0 .x.notes .y.12-0 x" {
		t.Errorf("left: %s", got)
	}
}
