package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/kubernetes/bench"
)

func benchCommand() *cobra.Command {
	var f trialFlags
	var arrive bool
	var limits bench.Limits
	var patience time.Duration
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure schedulers on a control plane: JSON Lines on standard output",
		Long: `Start a control plane, create the nodes and the pods, and only then the
scheduler; wait until all pods are bound, or none was for --patience; print what
the placement is worth by the truth, how fast it was made, and the scheduler's
own latencies. Every run has a control plane of its own.`,
		Args: cobra.NoArgs,
		RunE: whole(func(cmd *cobra.Command) error {
			f.mixed = f.mixed || arrive
			trials, err := f.trials(cmd.Context())
			if err != nil {
				return err
			}
			var sequence bench.Worth
			if arrive {
				if sequence, err = trials[0].Truth.Sequence(trials[0].Batch); err != nil {
					return fmt.Errorf("the policy by itself, in sequence: %w", err)
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "the policy by itself, in sequence: %d of %d placed, mean performance %.4f, at most %.4f\n", sequence.Pods, sequence.Tasks, sequence.MeanPerformance, sequence.Bound)
			}
			lines := json.NewEncoder(cmd.OutOrStdout())
			for i, t := range trials {
				fmt.Fprintf(cmd.ErrOrStderr(), "round %d of %d: %s\n", i*f.rounds/len(trials)+1, f.rounds, t.Scheduler.Name)
				t.Limits, t.Arrive, t.Patience = limits, arrive, patience
				t.Sequence = sequence.MeanPerformance
				r, err := runTrial(cmd, t)
				if err != nil {
					return err
				}
				if err := lines.Encode(r); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	cmd.AddCommand(benchJobsCommand())
	fl := cmd.Flags()
	f.add(fl, 729, 3000, 2)
	fl.BoolVar(&arrive, "arrive", false, "submit services of 1 to 16 replicas (--mixed) one after another, each when the one before it is bound, and hold ours against the policy by itself on the same sequence")
	fl.Float32Var(&limits.QPS, "qps", 0, "requests a second that a scheduler's client may send; 0 is its default, 50")
	fl.Int32Var(&limits.Burst, "burst", 0, "requests that it may send at once; 0 is its default, 100")
	fl.DurationVar(&patience, "patience", 30*time.Second, "how long no pod may be bound before a run ends")
	return cmd
}
