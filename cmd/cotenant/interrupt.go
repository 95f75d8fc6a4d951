package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/internal/whole"
)

// How long work may take to notice that it is interrupted: a policy, and a
// whole command, which may have policies to end.
const (
	patience        = 300 * time.Millisecond
	commandPatience = time.Second
)

// endsItself marks commands that must not be left behind when interrupted:
// they put back what they changed on the machine.
const endsItself = "ends itself"

// await runs f and gives up on it when ctx is done: f should notice by itself,
// and is left behind where it does not.
func await[T any](ctx context.Context, f func() T) (result T, err error) {
	done := make(chan T, 1)
	go func() { done <- f() }()
	select {
	case result = <-done:
		return result, nil
	case <-ctx.Done():
		select {
		case <-done:
		case <-time.After(patience):
		}
		return result, ctx.Err()
	}
}

// interruptible runs a command so that Ctrl-C ends it at once, whatever it is
// doing. A command that is left behind can leave no half-written file, as none
// is in its place before it is whole, and says nothing any more.
func interruptible(cmd *cobra.Command, args []string, f func(*cobra.Command, []string) error) error {
	if cmd.Annotations[endsItself] != "" {
		return f(cmd, args)
	}
	out, errs := &gate{w: cmd.OutOrStdout()}, &gate{w: cmd.ErrOrStderr()}
	cmd.SetOut(out)
	cmd.SetErr(errs)
	done := make(chan error, 1)
	go func() { done <- f(cmd, args) }()
	select {
	case err := <-done:
		return err
	case <-cmd.Context().Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(commandPatience):
		out.close()
		errs.close()
		whole.Abandon()
		return stopped("files are whole or as they were")
	}
}

// interruptedError says what an interruption leaves behind.
type interruptedError struct{ words string }

func (e *interruptedError) Error() string { return "interrupted; " + e.words }

func stopped(format string, args ...any) error {
	return &interruptedError{fmt.Sprintf(format, args...)}
}

// gate is a writer until it is closed; then it swallows what comes.
type gate struct {
	mu     sync.Mutex
	w      io.Writer
	closed bool
}

func (g *gate) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return len(b), nil
	}
	return g.w.Write(b)
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}
