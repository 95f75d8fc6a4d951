//go:build !linux

package controlplane

import (
	"errors"
	"syscall"
)

// tether leaves the child in our process group, so that Ctrl-C in a terminal
// ends it too: only Linux can tie children to their parent's life.
func tether() *syscall.SysProcAttr { return nil }

func (p *Program) confined() (*syscall.SysProcAttr, error) {
	if p.root != "" || p.user != 0 {
		return nil, errors.New("a container needs Linux")
	}
	return tether(), nil
}
