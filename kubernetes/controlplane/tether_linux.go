package controlplane

import "syscall"

// tether has the kernel end the child when the thread that started it, and so
// this program, dies: no test that crashes leaves a control plane behind. The
// child is in a process group of its own, so that Ctrl-C in a terminal reaches
// us alone and the programs end in an order that leaves none retrying.
func tether() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// confined is tether, within the program's own root and as its own user.
func (p *Program) confined() (*syscall.SysProcAttr, error) {
	a := tether()
	a.Chroot = p.root
	if p.user != 0 {
		id := uint32(p.user)
		a.Credential = &syscall.Credential{Uid: id, Gid: id}
	}
	return a, nil
}
