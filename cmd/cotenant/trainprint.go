package main

import (
	"fmt"
	"io"
	"strconv"
)

func (f *trainFlags) write(w io.Writer, r trainRow) error {
	switch f.output {
	case "json":
		return writeJSON(w, []trainRow{r})
	case "yaml":
		return writeYAML(w, []trainRow{r})
	case "csv":
		return writeCSV(w, []string{
			"policy", "seed", "updates", "updates_planned", "best_update", "jct_over_spread", "jct_over_greedy_wait",
			"untrained_over_spread", "untrained_over_greedy_wait", "seconds", "truth_calls",
		}, [][]string{{
			r.Policy, strconv.FormatUint(r.Seed, 10), strconv.Itoa(r.Updates), strconv.Itoa(r.Planned), strconv.Itoa(r.BestUpdate),
			r.Spread.exact(), r.GreedyWait.exact(), r.UntrainedSpread.exact(), r.UntrainedGreedyWait.exact(), r.Seconds.exact(),
			strconv.FormatInt(r.TruthCalls, 10),
		}})
	}
	rows := [][]string{
		{"untrained", "0", r.UntrainedSpread.text(3), r.UntrainedGreedyWait.text(3)},
		{"trained", strconv.Itoa(r.BestUpdate), r.Spread.text(3), r.GreedyWait.text(3)},
	}
	if err := writeTable(w, []string{"network", " updates", " JCT / spread", " JCT / greedy-wait"}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nOn validation seeds, in the worlds believed, greedy-wait with its default values. Seed %d; %d of %d updates in %s s.\nCalls of the truth: %d.\n",
		r.Seed, r.Updates, r.Planned, r.Seconds.text(0), r.TruthCalls)
	return err
}
