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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return newRoot().ExecuteContext(ctx)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "controlplane",
		Short:         "Run a real Kubernetes control plane on this machine, and schedulers on it",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(upCommand(), demoCommand(), benchCommand())
	return root
}
