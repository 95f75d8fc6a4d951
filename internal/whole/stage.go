package whole

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// File writes one file in one step. Pipes and devices are written directly.
func File(path string, write func(io.Writer) error) error {
	s, err := Stage(path, write)
	if err != nil {
		return err
	}
	return Commit(s)
}

// Staged is a file that is written and not yet in its place.
type Staged struct {
	path string // as the caller names it
	at   string // where it goes: path without symbolic links
	temp string // where it is; "" once it is in its place
}

// Stage writes a file beside its place, to the disk. Pipes and devices, which
// have no such place, are written at once.
func Stage(path string, write func(io.Writer) error) (*Staged, error) {
	s := &Staged{path: path, at: path}
	mode := fs.FileMode(0)
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("write %s: is a directory; name a file in it", path)
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, Explain(path, err)
		}
		return s, Explain(path, errors.Join(buffered(f, write), f.Close()))
	case err == nil:
		mode = info.Mode().Perm()
		if err := writable(path); err != nil {
			return nil, err
		}
		if s.at, err = filepath.EvalSymlinks(path); err != nil {
			return nil, Explain(path, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, Explain(path, err)
	}
	f, err := create(s.at)
	if err != nil {
		return nil, Explain(path, err)
	}
	s.temp = f.Name()
	atWork.Store(s.temp, true)
	err = buffered(f, write)
	if mode != 0 {
		_ = f.Chmod(mode) // not every file system has permissions
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		s.Discard()
		return nil, Explain(path, err)
	}
	return s, nil
}

// Commit puts the files in their places, in the order given, each in one step.
// Where one cannot be put, the rest is discarded.
func Commit(files ...*Staged) error {
	for i, s := range files {
		if s.temp == "" {
			continue
		}
		if err := os.Rename(s.temp, s.at); err != nil {
			for _, left := range files[i:] {
				left.Discard()
			}
			return Explain(s.path, err)
		}
		atWork.Delete(s.temp)
		s.temp = ""
	}
	return nil
}

// Discard removes what is not in its place.
func (s *Staged) Discard() {
	if s != nil && s.temp != "" {
		_ = os.Remove(s.temp) // what failed before says more
		atWork.Delete(s.temp)
		s.temp = ""
	}
}

// Probe tells early whether a file could be written at path, by making an
// empty one beside it for a moment.
func Probe(path string) error {
	if info, err := os.Stat(path); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return nil
	}
	s, err := Stage(path, func(io.Writer) error { return nil })
	s.Discard()
	return err
}

// writable refuses a file that is protected from writing: renaming another
// over it would not ask.
func writable(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("write %s: the file is there and may not be written; change its permissions, or name another: %w", path, fs.ErrPermission)
	}
	if err != nil {
		return Explain(path, err)
	}
	return f.Close()
}

func buffered(w io.Writer, write func(io.Writer) error) error {
	out := bufio.NewWriter(w)
	if err := write(out); err != nil {
		return err
	}
	return out.Flush()
}

// names of what is beside a file: .NAME.PID-N.
func beside(path string) (dir, prefix string) {
	dir, base := filepath.Split(path)
	const most = 200 // file systems allow 255 bytes
	return dir, "." + base[:min(len(base), most)] + "."
}

// create makes a new file beside path. os.CreateTemp would do, but for its
// permissions: the file becomes path.
func create(path string) (f *os.File, err error) {
	err = unused(path, func(name string) error {
		f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		return err
	})
	return f, err
}

// Folder makes a folder beside path, for a file that other files accompany
// while it is written. remove takes it away with all that is in it.
func Folder(path string) (dir string, remove func(), err error) {
	err = unused(path, func(name string) error {
		dir = name
		return os.Mkdir(name, 0o777)
	})
	if err != nil {
		return "", nil, Explain(path, err)
	}
	atWork.Store(dir, true)
	return dir, func() { _ = os.RemoveAll(dir); atWork.Delete(dir) }, nil
}

// atWork has the names of what this process keeps beside files now.
var atWork sync.Map

// Abandon removes all of it, for a process that ends in the midst of writing:
// what is not in its place by now never will be.
func Abandon() {
	atWork.Range(func(name, _ any) bool {
		_ = os.RemoveAll(name.(string)) // whatever stays is swept away later
		return true
	})
}

// unused tries names beside path until one is not taken.
func unused(path string, try func(name string) error) error {
	dir, prefix := beside(path)
	sweep(dir, prefix)
	for i := 0; ; i++ {
		err := try(filepath.Join(dir, fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), i)))
		if !errors.Is(err, fs.ErrExist) || i > 1000 {
			return err
		}
	}
}

// abandoned is how old what is beside a file must be to be nobody's: whoever
// writes changes it more often.
const abandoned = time.Hour

// sweep removes what killed programs left.
func sweep(dir, prefix string) {
	if dir == "" {
		dir = "."
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // whatever it is, the writing will say
	}
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), prefix)
		if !ours || !numbered(rest) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > abandoned {
			_ = os.RemoveAll(filepath.Join(dir, e.Name())) // next time, then
		}
	}
}

// numbered reports whether a text is PID-N.
func numbered(text string) bool {
	pid, n, ok := strings.Cut(text, "-")
	return ok && pid != "" && n != "" && strings.Trim(pid+n, "0123456789") == ""
}
