package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/explain"
)

func reportCommand() *cobra.Command {
	return group("report", "Sum up what happened on a cluster", reportShadowCommand())
}

func reportShadowCommand() *cobra.Command {
	var f podsFlags
	var namespace string
	cmd := &cobra.Command{
		Use: "shadow", Short: "What a scheduler in the mode shadow would have gained", Args: cobra.NoArgs,
		Long: `Compare where pods are with where cotenant-scheduler, in the mode shadow, would
have put them: the mean performance of both by --model or --samples, the share of
pods with a plan, and how many of them would have other neighbours. Where fewer
than nine in ten of the pods can be valued, no gain of all is told: give a model, too.

Plans are read from the events CotenantShadow, which an API server keeps for an
hour (its flag --event-ttl): report within it, or save them with kubectl get
nodes,pods,events -A -o json and name the file. Each plan was made on the nodes as
the plans before would have filled them; pods for which all plans together leave
no room, since others came there, stay where they are, and are counted.`,
		Example: `  cotenant report shadow --samples samples.jsonl
  cotenant report shadow --samples samples.jsonl -n shop
  cotenant report shadow --cluster snapshot.json --model model.safetensors --slots 8 -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.source.model == "" && f.source.samples == "" {
				return wrongUse("by what is a place worth something? give --model FILE or --samples FILE")
			}
			objects, world, err := f.read(cmd)
			if err != nil {
				return err
			}
			s := world.Shadow(objects, namespace)
			switch {
			case s.Pods == 0:
				of := ""
				if namespace != "" {
					of = " of namespace " + namespace
				}
				return fmt.Errorf("--cluster: no pod%s is placed that is of a workload which %s knows%s; see the label cotenant.dev/workload (docs/kubernetes.md)", of, f.source.by(), unknownPods(s))
			case s.WithPlan == 0:
				fmt.Fprintln(cmd.ErrOrStderr(), "no plan of the mode shadow is recorded for any of these pods: is cotenant-scheduler running in it, were events switched off, or are they older than an hour?")
			}
			return writeShadow(cmd.OutOrStdout(), f.output, s, world.Silent())
		},
	}
	f.register(cmd)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "tell of the pods of this `namespace` alone; those of the others are still their neighbours (default: all)")
	return cmd
}

// writeShadow writes the report; silent is who is silent about co-locations.
func writeShadow(w io.Writer, form string, s explain.Shadow, silent string) error {
	switch form {
	case "json":
		return writeJSON(w, []explain.Shadow{s})
	case "yaml":
		return writeYAML(w, []explain.Shadow{s})
	}
	header := []string{"workload", " pods", " valued", " performance", " by the plans", " gain"}
	var cells [][]string
	row := func(name string, pods, valued int, actual, planned *float64) {
		gain := "-"
		if actual != nil && planned != nil && *actual > 0 {
			gain = fmt.Sprintf("%+.1f %%", 100*(*planned / *actual - 1))
		}
		cells = append(cells, []string{name, strconv.Itoa(pods), strconv.Itoa(valued), orDash(actual, "%.3f"), orDash(planned, "%.3f"), gain})
	}
	for _, of := range s.Workloads {
		row(of.Workload, of.Pods, of.Valued, of.Actual, of.Planned)
	}
	row("all", s.Pods, s.Valued, s.Actual, s.Planned)
	if s.Gain == nil {
		cells[len(cells)-1][len(header)-1] = "-"
	}
	if form == "csv" {
		for i := range header {
			header[i] = strings.TrimSpace(header[i])
		}
		return writeCSV(w, header, cells)
	}
	for _, text := range shadowWords(s, silent) {
		fmt.Fprintln(w, text)
	}
	fmt.Fprintln(w)
	return writeTable(w, header, cells)
}

// shadowWords are the lines above the table: what the plans would have gained, and
// of how many pods that is said.
func shadowWords(s explain.Shadow, silent string) []string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	base := fmt.Sprintf("%d of %s", s.Valued, count(s.Pods, "pod"))
	switch {
	case s.Planned == nil && s.Valued > 0:
		say("no plan of the mode shadow is recorded: what follows is the performance as it is, of %s", base)
	case s.Gain != nil:
		say("by the plans the mean performance of %s would be %.3f in place of %.3f: %+.1f %%", base, *s.Planned, *s.Actual, 100**s.Gain)
	default:
		say("what the plans would have gained cannot be told: both places of only %s can be valued", base)
	}
	if seen := s.WithPlan + s.Unplanned; seen > 0 {
		say("%d of %s that a scheduler in the mode shadow saw (%.0f %%) %s a plan; %d would have other neighbours by it, %d another node, where alike nodes are exchangeable",
			s.WithPlan, count(seen, "pod"), 100*float64(s.WithPlan)/float64(seen), have(s.WithPlan), s.OtherNeighbours, s.Elsewhere)
	}
	if s.NoRoom > 0 {
		say("%d of those %s in what follows: all plans together leave no room on the planned node", s.NoRoom, stay(s.NoRoom))
	}
	if s.Decided > 0 {
		say("%s placed in the modes assist and enforce can have no plan of the mode shadow, and %s", count(s.Decided, "pod"), stay(s.Decided))
	}
	if s.Unrecorded > 0 {
		say("%s without a record %s: another scheduler's, of namespaces to ignore, or placed longer ago than events are kept", count(s.Unrecorded, "pod"), stay(s.Unrecorded))
	}
	if text := unknownPods(s); text != "" {
		say("not in what follows%s", text)
	}
	if s.Valued < s.Pods {
		say("%s left out of the means: %s %s; --model with a model of the samples (cotenant fit --out) predicts it",
			count(s.Pods-s.Valued, "pod"), silent, some(s.Silent, 3))
	}
	return lines
}

// unknownPods tells of the pods of unknown workloads; "" where there are none.
func unknownPods(s explain.Shadow) string {
	if s.Unknown == 0 {
		return ""
	}
	return fmt.Sprintf(": %s of workloads that are unknown, %s; cotenant explain pod says more", count(s.Unknown, "pod"), some(s.UnknownWorkloads, 3))
}

func have(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

func stay(n int) string {
	if n == 1 {
		return "stays where it is"
	}
	return "stay where they are"
}
