//go:build !linux

package controlplane

import "syscall"

// tether leaves the child in our process group, so that Ctrl-C in a terminal
// ends it too: only Linux can tie children to their parent's life.
func tether() *syscall.SysProcAttr { return nil }
