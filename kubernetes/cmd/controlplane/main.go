// Command controlplane runs a real Kubernetes control plane on this machine and
// shows schedulers at work on it:
//
//	controlplane up      run one until Ctrl-C, and print its kubeconfig
//	controlplane demo    the stock scheduler and ours, side by side
//	controlplane bench   measure schedulers: JSON Lines on standard output
//
// `make kubernetes-build` builds it, and the programs that it starts.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), ends()...)
	defer stop()
	// A pipe that its reader has closed is then an error of writing, after which
	// all is tidied up; it would end us on the spot.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return newRoot().ExecuteContext(ctx)
}

// ends are the signals after which what was started is ended and the plane's
// folder removed, which holds the administrator's key. A terminal that is closed
// sends SIGHUP; who said nohup wants to outlive it.
func ends() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// whole is a run whose result is of use only where it came to its end: one that
// the user ended says that, and not at which step it was.
func whole(run func(*cobra.Command) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		err := run(cmd)
		if err != nil && cmd.Context().Err() != nil {
			return errInterrupted
		}
		return err
	}
}

var errInterrupted = errors.New("interrupted; what it started has ended")

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "controlplane",
		Short:         "Run a real Kubernetes control plane on this machine, and schedulers on it",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(plainly)
	root.AddCommand(upCommand(), demoCommand(), benchCommand())
	return root
}
