package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/kubernetes/bench"
)

func demoCommand() *cobra.Command {
	var f trialFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the stock scheduler and ours on the same pods, and what each placement is worth",
		Long: `Submit the same services to the stock scheduler and to ours, each on a control
plane of its own, in turn; print both placements node by node, and what each is
worth by the measured table: the mean performance of the pods (1 is as fast as
alone), and its share of what no placement can exceed.`,
		Args: cobra.NoArgs,
		RunE: whole(func(cmd *cobra.Command) error { return demo(cmd, f) }),
	}
	f.add(cmd.Flags(), 12, 60, 2)
	return cmd
}

func demo(cmd *cobra.Command, f trialFlags) error {
	trials, err := f.trials(cmd.Context())
	if err != nil {
		return err
	}
	out, truth, batch := cmd.OutOrStdout(), trials[0].Truth, trials[0].Batch
	fmt.Fprintf(out, "%d pods of %s on %d nodes of %d slots, judged by %s\n", batch.Tasks(), strings.Join(truth.Workloads, ", "), batch.Nodes, batch.Slots, truth.Name)
	var results []bench.Result
	for _, t := range trials {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s places them:\n", t.Scheduler.Name)
		r, err := runTrial(cmd, t)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	if err := sideBySide(out, batch, results[:len(results)/f.rounds]); err != nil {
		return err
	}
	return summary(out, results)
}

// sideBySide prints the first round's placements, a node a line.
func sideBySide(out io.Writer, b bench.Batch, results []bench.Result) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprint(w, "\nnode")
	for _, r := range results {
		fmt.Fprintf(w, "\t%s", r.Scheduler)
	}
	fmt.Fprintln(w)
	for i := range b.Nodes {
		for j, r := range results {
			name, key := b.On(i, r.Placement)
			if j == 0 {
				fmt.Fprint(w, name)
			}
			fmt.Fprintf(w, "\t%s", key)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

func summary(out io.Writer, results []bench.Result) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "\nscheduler\tbound\tmean performance\tof the bound\tpods/s")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%d of %d\t%.3f\t%.1f %%\t%.0f\n", r.Scheduler, r.Bound, r.Pods, r.MeanPerformance, 100*r.Share, r.PodsPerSecond)
	}
	return w.Flush()
}
