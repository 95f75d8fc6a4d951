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
pods with a plan, and how many of them are elsewhere.

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
			case s.Pods == 0 && namespace != "":
				return fmt.Errorf("--cluster: no pod of namespace %s is placed that is of a workload which the model knows; see the label cotenant.dev/workload (docs/kubernetes.md)", namespace)
			case s.Pods == 0:
				return fmt.Errorf("--cluster: no pod of a workload that the model knows is placed; see the label cotenant.dev/workload (docs/kubernetes.md)")
			case s.WithPlan == 0:
				fmt.Fprintln(cmd.ErrOrStderr(), "no plan of the mode shadow is recorded for any of these pods: is cotenant-scheduler running in it, were events switched off, or are they older than an hour?")
			}
			return writeShadow(cmd.OutOrStdout(), f.output, s)
		},
	}
	f.register(cmd)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "tell of the pods of this `namespace` alone; those of the others are still their neighbours (default: all)")
	return cmd
}

func writeShadow(w io.Writer, form string, s explain.Shadow) error {
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
	if form == "csv" {
		for i := range header {
			header[i] = strings.TrimSpace(header[i])
		}
		return writeCSV(w, header, cells)
	}
	fmt.Fprintf(w, "%d of %d pods (%.0f %%) have a plan; %d of them are elsewhere than it had them\n",
		s.WithPlan, s.Pods, 100*float64(s.WithPlan)/float64(s.Pods), s.Elsewhere)
	if s.NoRoom > 0 {
		fmt.Fprintf(w, "%d of those stay where they are in what follows: all plans together leave no room on the node of theirs\n", s.NoRoom)
	}
	if s.Unjudged > 0 {
		fmt.Fprintf(w, "%d more pods have no plan, and are not in what follows: their workloads are unknown; see cotenant explain pod\n", s.Unjudged)
	}
	if s.Valued < s.Pods {
		fmt.Fprintf(w, "%d pods are left out of the means: the model is silent about %s\n", s.Pods-s.Valued, some(s.Silent, 3))
	}
	fmt.Fprintln(w)
	return writeTable(w, header, cells)
}
