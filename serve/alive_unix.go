//go:build unix

package serve

import (
	"errors"
	"os"
	"syscall"
)

// alive says whether a process runs, another user's too.
func alive(p *os.Process) bool {
	err := p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, os.ErrPermission)
}
