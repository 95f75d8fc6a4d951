//go:build unix

package serve

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cotenant/cotenant/internal/whole"
)

// lockFolder keeps a folder from other coordinators until it is closed or the
// process ends, however it does.
func lockFolder(dir string) (io.Closer, error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, whole.Explain(path, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("%s: another coordinator keeps its state there; end it, or name another folder", dir), f.Close())
	}
	return f, nil // where a file system has no locks, there is none
}
