package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes.
const (
	exitDone     = 0
	exitFailed   = 1
	exitWrongUse = 2
	exitOutside  = 3 // of profile --verify
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second Ctrl-C ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(runAs(ctx, os.Args[0], os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program, with its surroundings as arguments.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	return runAs(ctx, "cotenant", args, in, out, errs)
}

// runAs is run under the name by which the program was called.
func runAs(ctx context.Context, name string, args []string, in io.Reader, out, errs io.Writer) int {
	root := newRoot()
	if isPlugin(name) {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl cotenant"}
	}
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	begun := false
	markBegin(root, &begun)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	var wrong *wrongUseError
	switch {
	case !begun || errors.As(err, &wrong):
		// What fails before a command begins is its flags and arguments.
		fmt.Fprintf(errs, "cotenant: %s\nSee `%s --help`.\n", strings.TrimSpace(err.Error()), cmd.CommandPath())
		return exitWrongUse
	case ctx.Err() != nil:
		// Whatever else is said of it, the interruption is said once.
		if said := (*interruptedError)(nil); errors.As(err, &said) {
			err = said
		} else {
			err = stopped("%s", err)
		}
		fmt.Fprintf(errs, "cotenant: %s\n", err)
		return exitFailed
	}
	fmt.Fprintf(errs, "cotenant: %s\n", err)
	return exitOf(err)
}

// exitOf is the exit code of what a command came to.
func exitOf(err error) int {
	var outside *outsideError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &outside):
		return exitOutside
	}
	return exitFailed
}

func newRoot() *cobra.Command {
	root := group("cotenant", "Place workloads where they interfere least",
		profileCommand(), fitCommand(), planCommand(), trainCommand(), simulateCommand(), serveCommand(), explainCommand(), reportCommand(), demoCommand(), importCommand(),
	)
	root.Long = "Cotenant places workloads where they interfere least.\n\n" +
		"It measures what co-located programs do to each other, learns it, and plans:\n" +
		"results on stdout, progress on stderr; exit 0 done, 1 failed, 2 wrong use,\n" +
		"3 of profile --verify, where a cell lies outside what its spread states."
	root.Version = version()
	root.SetVersionTemplate("cotenant {{.Version}}\n")
	root.SetFlagErrorFunc(clearFlag)
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.CompletionOptions.HiddenDefaultCmd = true
	return root
}

// clearFlag says what numbers a flag takes that was given something else, and
// which flag was likely meant by an unknown one.
func clearFlag(cmd *cobra.Command, err error) error {
	if bad := (*pflag.InvalidValueError)(nil); errors.As(err, &bad) {
		takes := map[string]string{
			"uint64": fmt.Sprintf("a whole number, 0 to %d", uint64(math.MaxUint64)), "int": "a whole number", "float64": "a number",
		}[bad.GetFlag().Value.Type()]
		if takes == "" {
			return err
		}
		return fmt.Errorf("--%s %s: give %s", bad.GetFlag().Name, bad.GetValue(), takes)
	}
	_, name, ok := strings.Cut(err.Error(), "unknown flag: --")
	if !ok {
		return err
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
	return fmt.Errorf("%w%s", err, didYouMean("--"+name, known))
}

// isPlugin reports whether the program was called as kubectl's plugin: kubectl
// runs kubectl-cotenant for `kubectl cotenant`.
func isPlugin(name string) bool {
	return strings.TrimSuffix(filepath.Base(name), ".exe") == "kubectl-cotenant"
}

// group is a command that only holds others: used alone or with a word it
// does not know, it is used wrongly.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs}
	// A misspelt noun is to be named, not the flags of the right one.
	c.FParseErrWhitelist.UnknownFlags = use != "cotenant"
	c.RunE = func(cmd *cobra.Command, args []string) error {
		var names []string
		for _, child := range cmd.Commands() {
			if child.IsAvailableCommand() {
				names = append(names, child.Name())
			}
		}
		known := strings.Join(names, ", ")
		if len(args) == 0 && !cmd.HasParent() {
			return cmd.Help()
		}
		if len(args) == 0 {
			return wrongUse("%s needs one of: %s", cmd.CommandPath(), known)
		}
		return wrongUse("%s knows no %q, only: %s%s", cmd.CommandPath(), args[0], known, didYouMean(args[0], names))
	}
	c.AddCommand(children...)
	return c
}

// markBegin sets begun when a command of the tree begins to run.
func markBegin(c *cobra.Command, begun *bool) {
	if f := c.RunE; f != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			*begun = true
			return interruptible(cmd, args, f)
		}
	}
	for _, child := range c.Commands() {
		markBegin(child, begun)
	}
}

// wrongUseError is an error of whoever typed the command: exit 2.
type wrongUseError struct{ words string }

func (e *wrongUseError) Error() string { return e.words }

func wrongUse(format string, args ...any) error {
	return &wrongUseError{fmt.Sprintf(format, args...)}
}

// outsideError is of a verification in which no more cells lie outside than
// chance explains: exit 3.
type outsideError struct{ words string }

func (e *outsideError) Error() string { return e.words }

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	if revision == "" {
		return "development"
	}
	return "development-" + revision + dirty
}
