//go:build unix

package profile

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Gone reports whether no process has this number.
func Gone(id int) bool { return errors.Is(syscall.Kill(id, 0), syscall.ESRCH) }

// ownGroup gives the program a process group of its own, which endGroup and
// killGroup signal, with all that it started.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func endGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

func kill(id int) { _ = syscall.Kill(id, syscall.SIGKILL) }

// lock fails where another process holds the file.
func lock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
