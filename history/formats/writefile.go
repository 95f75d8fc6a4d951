package formats

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// WriteFile writes path through write, in one step: until all of it is on the
// disk, what was there stays. A path that ends in .gz is packed. "-" is
// standard output; that and pipes and devices are written directly.
func WriteFile(path string, write func(io.Writer) error) (err error) {
	if path == Stdin {
		return packed(os.Stdout, path, write)
	}
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return fmt.Errorf("write %s: is a directory; name a file in it", path)
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(packed(f, path, write), f.Close())
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, err := createBeside(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()           // the error at hand says more
			_ = os.Remove(f.Name()) // likewise
		}
	}()
	if err := packed(f, path, write); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// createBeside creates a new file in path's directory. os.CreateTemp would do,
// but for its permissions: the file becomes path.
func createBeside(path string) (*os.File, error) {
	dir, base := filepath.Split(path)
	for i := 0; ; i++ {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf(".%s.%d-%d", base, os.Getpid(), i)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("write %s: there is no folder %q; make it first", path, filepath.Clean(dir))
		case !errors.Is(err, fs.ErrExist) || i > 100:
			return f, err
		}
	}
}

func packed(w io.Writer, path string, write func(io.Writer) error) error {
	out := bufio.NewWriter(w)
	if !strings.HasSuffix(path, ".gz") {
		if err := write(out); err != nil {
			return err
		}
		return out.Flush()
	}
	z := gzip.NewWriter(out)
	if err := write(z); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return out.Flush()
}
