package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopGrace is how long a program has to end by itself before it is killed.
const stopGrace = 10 * time.Second

// Program is one process of the plane. It can be started again after it was
// stopped or killed, with the same arguments, port and log.
type Program struct {
	name  string
	path  string
	args  []string
	env   []string                    // in place of our own; nil is our own
	root  string                      // its root folder, "" for ours
	user  int                         // whom it runs as, 0 for ourselves
	log   string                      // path; restarts append to it
	ready func(context.Context) error // says nil once it serves

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has been waited for
	wanted bool          // it was started and not stopped: to end is a fault
}

// spawn runs functions on one thread that lives as long as this program: the
// kernel's "kill it when its parent dies" (tether) is tied to the thread
// that started the child, and the runtime may end any other.
var spawn = sync.OnceValue(func() chan<- func() {
	queue := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range queue {
			f()
		}
	}()
	return queue
})

// Start runs the program and waits until it serves; the context limits the
// wait. Where it runs already, it is an error.
func (p *Program) Start(ctx context.Context) error {
	if err := p.start(); err != nil {
		return err
	}
	return p.await(ctx)
}

func (p *Program) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil && !closed(p.exited) {
		return fmt.Errorf("%s: runs already, process %d", p.name, p.cmd.Process.Pid)
	}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	cmd := exec.Command(p.path, p.args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = p.env
	if cmd.SysProcAttr, err = p.confined(); err != nil {
		_ = out.Close()
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	started := make(chan error)
	spawn() <- func() { started <- cmd.Start() }
	err = <-started
	_ = out.Close() // the child holds its own
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	exited := make(chan struct{})
	p.cmd, p.exited, p.wanted = cmd, exited, true
	go func() {
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		close(exited)
	}()
	return nil
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// PID is the process id of the last start; 0 where there was none.
func (p *Program) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

func (p *Program) end(s syscall.Signal, grace time.Duration) error {
	p.mu.Lock()
	cmd, exited := p.cmd, p.exited
	p.wanted = false
	p.mu.Unlock()
	if cmd == nil || closed(exited) {
		return nil
	}
	if err := cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s, process %d: %w", p.name, cmd.Process.Pid, err)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-exited:
		return nil
	case <-timer.C:
	}
	_ = cmd.Process.Kill()
	<-exited
	return nil
}

// Stop asks the program to end, and kills it after ten seconds. What does not
// run is stopped already.
func (p *Program) Stop() error { return p.end(syscall.SIGTERM, stopGrace) }

// Kill ends the program without a chance to tidy up, as kill -9 does.
func (p *Program) Kill() error { return p.end(syscall.SIGKILL, stopGrace) }

// Log is the path of the program's log, which restarts append to.
func (p *Program) Log() string { return p.log }

// Died is why the program ended by itself, and nil while it runs or where it
// was stopped on purpose.
func (p *Program) Died() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || !p.wanted || !closed(p.exited) {
		return nil
	}
	return fmt.Errorf("%s, process %d, ended by itself (%v); the end of its log:\n%s", p.name, p.cmd.Process.Pid, p.cmd.ProcessState, tail(p.log, 15))
}

// tail is the last lines of a file.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(string(bytes.TrimRight(text, "\n")), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}

// await asks until ready says nil, the program has ended, or the context is done.
func (p *Program) await(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := p.ready(once)
		cancel()
		if err == nil {
			return nil
		}
		if dead := p.Died(); dead != nil {
			return dead
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w (last answer: %w); the end of its log:\n%s", p.name, ctx.Err(), err, tail(p.log, 15))
		case <-tick.C:
		}
	}
}
