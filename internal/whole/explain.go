package whole

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Explain says of an error of writing which file it is about and what to do.
// Of nil it returns nil.
func Explain(path string, err error) error {
	if err == nil {
		return nil
	}
	var number syscall.Errno
	if !errors.As(err, &number) {
		return fmt.Errorf("write %s: %w", path, err)
	}
	dir := filepath.Dir(path)
	var why string
	switch {
	case errors.Is(number, syscall.ENOSPC):
		why = "the disk is full; free some room, or name a file on another disk"
	case errors.Is(number, syscall.EDQUOT):
		why = "your share of the disk is used up; free some room, or name a file on another disk"
	case errors.Is(number, syscall.EFBIG):
		why = "larger than a file may be here; raise the limit (ulimit -f), or name a file on another disk"
	case errors.Is(number, syscall.EROFS):
		why = fmt.Sprintf("%s may only be read; name a file elsewhere", dir)
	case errors.Is(number, fs.ErrPermission):
		why = fmt.Sprintf("you may not write in %s; change its permissions, or name a file elsewhere", dir)
	case errors.Is(number, fs.ErrNotExist):
		why = fmt.Sprintf("there is no folder %q; make it first", dir)
	case errors.Is(number, syscall.ENOTDIR):
		why = fmt.Sprintf("%q is not a folder; name another one", notFolder(path))
	case errors.Is(number, syscall.ENAMETOOLONG):
		why = "the name is too long; give a shorter one"
	default:
		return fmt.Errorf("write %s: %w", path, err)
	}
	// The number alone: the rest names a file that nobody knows.
	return fmt.Errorf("write %s: %s: %w", path, why, number)
}

// notFolder is what stands in the way of a path: it, or what it should be in.
func notFolder(path string) string {
	for at := path; ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && !info.IsDir() {
			return at
		}
		if at == filepath.Dir(at) {
			return filepath.Dir(path)
		}
	}
}
