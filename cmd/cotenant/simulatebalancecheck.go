package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
)

// Flags of `simulate balance` that say something about one kind of run only.
var (
	curvesFlags = []string{"noise", "change", "iterations", "delay"}
	drawFlags   = []string{"workers", "kind"}
	tracesFlags = []string{"traces", "step", "workers", "kind", "problem", "samples", "rate", "communicate", "overhead", "staleness", "predictor"}
)

// ignored refuses flags that would change nothing: whoever gives one expects that it does.
func (f *simulateBalanceFlags) ignored(cmd *cobra.Command) error {
	var errs []error
	refuse := func(flags []string, why string) {
		for _, name := range flags {
			if fl := cmd.Flags().Lookup(name); fl.Changed {
				errs = append(errs, wrongUse("--%s %s: %s", name, strings.Trim(fl.Value.String(), "[]"), why))
			}
		}
	}
	if f.curves != "" {
		refuse(tracesFlags, "is for training on traces, which --curves does not; leave out one of the two")
	} else {
		refuse(curvesFlags, "is for runs on measured curves; give --curves, or leave it out")
		if f.traces != "" {
			refuse(drawFlags, "is for traces that are drawn; --traces has its own, so leave out one of the two")
		}
	}
	return errors.Join(errs...)
}

// maxRate is the most that --rate takes. The problems diverge long before that.
const maxRate = 1000

// checkTraining refuses numbers that no training has.
func (f *simulateBalanceFlags) checkTraining() error {
	switch {
	case !(f.rate > 0 && f.rate <= maxRate):
		return wrongUse("--rate %g: give a learning rate above 0, at most %d, such as 0.5", f.rate, maxRate)
	case !(f.step >= 1e-3 && f.step <= 1e6):
		return wrongUse("--step %g: give seconds from 0.001 to 1e6", f.step)
	case !(f.upload >= 0 && f.upload <= 1e6):
		return wrongUse("--communicate %g: give seconds from 0 to 1e6", f.upload)
	case !(f.overhead >= 0 && f.overhead <= 1e6):
		return wrongUse("--overhead %g: give seconds from 0 to 1e6", f.overhead)
	case f.slack < 1:
		return wrongUse("--staleness %d: give at least 1 iteration; the policy that waits in each is bsp", f.slack)
	}
	return nil
}
