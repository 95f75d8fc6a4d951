//go:build unix

package whole

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// Lock keeps other programs from committing to a folder until unlock, so that
// files that belong together come from one of them. It waits a few seconds for
// its turn; where a file system has no locks, there is none.
func Lock(dir string) (unlock func()) {
	f, err := os.Open(dir)
	if err != nil {
		return func() {}
	}
	for range 500 {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return func() { _ = f.Close() }
}
