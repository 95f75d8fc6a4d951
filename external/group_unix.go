//go:build unix

package external

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps the program out of the terminal's group, so that a Ctrl-C
// reaches it through its policy only.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the program and the processes that it started. The group
// has the program's number as long as a process is in it.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
