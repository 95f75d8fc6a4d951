package profile

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// process is one command that we started, in a process group of its own.
type process struct {
	what string // "redis server", for errors
	cmd  *exec.Cmd
	done chan struct{}
	err  error // of Wait; read after done
	tail tail
}

// launch is how a command is to be started.
type launch struct {
	what   string
	argv   []string
	dir    string
	env    []string
	user   string
	cgroup *Group
	// line gets every line of stdout and stderr with the time it arrived.
	line func(time.Time, []byte)
}

// joinScript puts itself into cgroups before it becomes the command, so that
// no instruction of the command runs outside its limits.
const joinScript = `n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ > "$1/cgroup.procs" || exit 125; shift; n=$((n-1)); done; exec "$@"`

// servers is where Debian puts them; the PATH of ordinary users lacks it.
const servers = "/usr/sbin:/sbin"

func lookProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil || strings.Contains(name, "/") {
		return path, err
	}
	for dir := range strings.SplitSeq(servers, ":") {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", err
}

func (k *keeper) start(l launch) (*process, error) {
	argv := l.argv
	if l.user != "" && os.Getuid() == 0 {
		argv = append([]string{"setpriv", "--reuid", l.user, "--regid", l.user, "--init-groups", "--"}, argv...)
	}
	if l.cgroup != nil {
		args := []string{"/bin/sh", "-c", joinScript, "sh", fmt.Sprint(len(l.cgroup.Dirs))}
		args = append(args, l.cgroup.Dirs...)
		argv = append(args, argv...)
	}
	program, err := lookProgram(argv[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.what, err)
	}
	cmd := exec.Command(program, argv[1:]...)
	cmd.Dir = l.dir
	cmd.Env = append(append(os.Environ(), "PATH="+os.Getenv("PATH")+":"+servers), l.env...)
	ownGroup(cmd)
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = w, w
	p := &process{what: l.what, cmd: cmd, done: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		_ = r.Close()
		_ = w.Close()
		return nil, fmt.Errorf("%s: %w", l.what, err)
	}
	_ = w.Close()
	k.tell("+group %d", cmd.Process.Pid)
	var read sync.WaitGroup
	read.Go(func() { p.scan(r, l.line) })
	go func() {
		p.err = cmd.Wait()
		// Children may hold the pipe open after the command ended; what they
		// print later is nobody's reading, so a moment is enough.
		end := time.AfterFunc(200*time.Millisecond, func() { _ = r.SetReadDeadline(time.Now()) })
		read.Wait()
		end.Stop()
		_ = r.Close()
		close(p.done)
	}()
	return p, nil
}

func (p *process) scan(r io.Reader, line func(time.Time, []byte)) {
	b := bufio.NewReaderSize(r, 64<<10)
	for {
		text, err := b.ReadSlice('\n')
		if len(text) > 0 {
			now := time.Now()
			p.tail.add(text)
			if line != nil {
				line(now, bytes.TrimRight(text, "\r\n"))
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// stop ends the whole process group and waits for it.
func (p *process) stop(k *keeper) {
	select {
	case <-p.done:
	default:
		endGroup(p.cmd)
		select {
		case <-p.done:
		case <-time.After(150 * time.Millisecond):
		}
	}
	// The leader may be gone while its children live: the group is killed anyway.
	killGroup(p.cmd)
	<-p.done
	k.tell("-group %d", p.cmd.Process.Pid)
}

// died is the error of a process that ended without being asked to.
func (p *process) died() error {
	how := "ended"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s %s; its last output:\n%s", p.what, how, p.tail.text())
}

// run starts a command, waits for its end, and calls a failure an error.
func (k *keeper) run(ctx context.Context, l launch) error {
	p, err := k.start(l)
	if err != nil {
		return err
	}
	defer p.stop(k)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.done:
	}
	if p.err != nil {
		return p.died()
	}
	return nil
}

// tail keeps the last lines of output. Safe for concurrent use.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (t *tail) add(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == 20 {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, strings.TrimRight(string(line), "\r\n"))
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == 0 {
		return "    (none)"
	}
	return "    " + strings.Join(t.lines, "\n    ")
}
