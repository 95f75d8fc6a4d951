package external

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
	"unicode"
)

// grace is how long a program may take to end by itself after its input is
// closed.
const grace = time.Second

// tailBytes is how much of a program's standard error is kept for errors.
const tailBytes = 2 << 10

// process is a running program with its lines.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan lineOrError
	stop  chan struct{} // closed when nobody reads lines any more
	done  chan struct{} // closed when the program has ended
	state error         // how it ended; good once done is closed
	tail  *tail
	once  sync.Once
}

type lineOrError struct {
	text []byte
	err  error
}

func start(argv []string, o Options) (*process, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = o.Dir
	ownGroup(cmd)
	// A grandchild that keeps the output open must not keep Wait waiting.
	cmd.WaitDelay = grace
	p := &process{cmd: cmd, lines: make(chan lineOrError), stop: make(chan struct{}), done: make(chan struct{}), tail: &tail{}}
	cmd.Stderr = p.tail
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("cannot start: %w", err)
	}
	r, w := io.Pipe()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w; give the path of an executable program (./NAME in this directory), or its interpreter before it", argv[0], err)
	}
	go func() {
		p.state = cmd.Wait()
		// Right away: later the number may be another's.
		killGroup(cmd)
		close(p.done)
		_ = w.Close()
	}()
	go p.readLines(r, o.MaxLine)
	return p, nil
}

func (p *process) readLines(r *io.PipeReader, most int) {
	defer r.Close()
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		var l lineOrError
		l.text, l.err = readLine(in, most)
		select {
		case p.lines <- l:
		case <-p.stop:
			return
		}
		if l.err != nil {
			return
		}
	}
}

func readLine(in *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > most:
			return nil, fmt.Errorf("wrote a line of more than %d bytes", most)
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(strings.TrimSpace(string(line))) > 0:
			return nil, fmt.Errorf("ended in the middle of a line: %s", shown(line))
		default:
			return nil, err
		}
	}
}

// line is the next line of the program.
func (p *process) line(ctx context.Context) ([]byte, error) {
	select {
	case l := <-p.lines:
		if errors.Is(l.err, io.EOF) {
			<-p.done
			switch {
			case p.state == nil:
				return nil, errors.New("the program ended (exit status 0) without deciding; it must answer every request until its input ends")
			case errors.Is(p.state, exec.ErrWaitDelay):
				return nil, fmt.Errorf("the program ended (exit status 0) without deciding, but a process that it had started kept its output open, and was killed %s later; "+
					"the program must stay until its input ends: in a shell script, start what decides with exec and without &", grace)
			}
			return nil, fmt.Errorf("the program ended without deciding: %w", p.state)
		}
		return l.text, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// write sends a line; a program that does not read must not block the caller.
func (p *process) write(ctx context.Context, line []byte) error {
	failed := make(chan error, 1)
	go func() {
		_, err := p.in.Write(line)
		failed <- err
	}()
	select {
	case err := <-failed:
		if err != nil {
			// It ended: how it did says more than a broken pipe.
			if _, ended := p.line(ctx); ended != nil {
				return ended
			}
			return fmt.Errorf("the program closed its input: %w", err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end closes the program's input and waits for it to go.
func (p *process) end() {
	p.in.Close()
	p.once.Do(func() { close(p.stop) })
	select {
	case <-p.done:
	case <-time.After(grace):
	}
	p.kill()
}

// kill ends the program and what is left of its group, and waits until it is
// gone.
func (p *process) kill() {
	p.once.Do(func() { close(p.stop) })
	select {
	case <-p.done:
	default:
		killGroup(p.cmd)
		<-p.done
	}
}

// lastWords quotes the end of the program's standard error, for an error.
func (p *process) lastWords() string {
	text := strings.TrimSpace(p.tail.String())
	if text == "" {
		return ""
	}
	// What a program prints is not to steer the terminal.
	text = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
	return "\nits last words on standard error:\n  " + strings.ReplaceAll(text, "\n", "\n  ")
}

// tail keeps the last bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
	cut bool
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - tailBytes; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
		t.cut = true
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut {
		return "..." + string(t.buf)
	}
	return string(t.buf)
}
